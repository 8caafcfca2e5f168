package schemas

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

func shootKubelet(r *report, s shoot) {
	if len(s.workers) == 0 {
		return
	}
	common := s.spec.at("kubernetes", "kubelet")
	r.kubelet(common, s.version, true)
	for _, worker := range s.workers {
		section := worker.at("kubernetes")
		if !section.set() {
			continue
		}
		version := s.version
		if own := section.at("version"); own.set() {
			version = own.text()
		}
		if own := section.at("kubelet"); own.set() {
			r.kubelet(own, version, false)
		} else if version != s.version {
			// The settings of the Shoot also apply to the pool, at its version.
			common := common.as(section.path + ".kubelet")
			r.featureGates(common.at("featureGates"), version)
			r.pullPolicyVersion(common, version)
		}
	}
}

const leastPodPIDs = 100

// kubelet checks kubelet settings of a Shoot or a worker pool. Only a Shoot has defaults for the
// garbage collection of images.
func (r *report) kubelet(config tree, version string, defaulted bool) {
	if !config.set() {
		return
	}
	r.featureGates(config.at("featureGates"), version)
	r.oneOf(config.at("cpuManagerPolicy"), "none", "static")
	r.notNegative(config.at("maxPods"), config.at("evictionMaxPodGracePeriod"), config.at("registryPullQPS"), config.at("registryBurst"))
	r.atLeast(config.at("podPidsLimit").as(config.path+".podPIDsLimit"), leastPodPIDs)
	r.atLeast(config.at("containerLogMaxFiles"), 2)
	r.quantities(config.at("containerLogMaxSize"))
	r.durations(0, config.at("evictionPressureTransitionPeriod"), config.at("imageMinimumGCAge"), config.at("imageMaximumGCAge"))
	if idle := config.at("streamingConnectionIdleTimeout"); idle.set() {
		if time_, ok := idle.duration(); ok && (time_ < 30*time.Second || time_ > 4*time.Hour) {
			r.add(idle, TypeInvalid, "%s is out of range: it must be between 30s and 4h", idle.text())
		}
	}
	r.eviction(config)
	for _, name := range []string{"cpu", "memory", "ephemeralStorage", "pid"} {
		r.quantities(config.at("kubeReserved", name))
	}
	r.imageCollection(config, defaulted)
	r.swap(config)
	r.pullPolicyVersion(config, version)
	r.pullPolicy(config)
	pulls := config.at("maxParallelImagePulls")
	r.atLeast(pulls, 1)
	if config.at("serializeImagePulls").is() && pulls.count() > 1 {
		r.add(pulls, TypeForbidden, "must not be above 1 with serializeImagePulls: images are pulled one after the other then")
	}
}

// evictionNames lists the thresholds that upstream checks, each with the name in its reports.
// Upstream does not check nodeFSInodesFree.
var evictionNames = [...][2]string{
	{"memoryAvailable", "memoryAvailable"}, {"imageFSAvailable", "imagefsAvailable"}, {"imageFSInodesFree", "imagefsInodesFree"},
	{"nodeFSAvailable", "nodefsAvailable"},
}

func (r *report) eviction(config tree) { r.thresholds(config, evictionNames[:]...) }

// shootEvictionInodes reports thresholds that API servers accept, but that the kubelet cannot read.
func shootEvictionInodes(r *report, s shoot) {
	r.thresholds(s.spec.at("kubernetes", "kubelet"), [2]string{"nodeFSInodesFree", "nodeFSInodesFree"})
	for _, worker := range s.workers {
		r.thresholds(worker.at("kubernetes", "kubelet"), [2]string{"nodeFSInodesFree", "nodeFSInodesFree"})
	}
}

func (r *report) thresholds(config tree, pairs ...[2]string) {
	for _, names := range pairs {
		at := func(section string) tree {
			return config.at(section, names[0]).as(config.path + "." + section + "." + names[1])
		}
		r.quantityOrPercent(at("evictionHard"))
		r.quantityOrPercent(at("evictionSoft"))
		r.quantities(at("evictionMinimumReclaim"))
		r.durations(0, at("evictionSoftGracePeriod"))
	}
}

var percentForm = regexp.MustCompile(`^[0-9]+%$`)

func (r *report) quantityOrPercent(field tree) {
	if !field.set() {
		return
	}
	if quantity, ok := field.quantity(); ok && quantity.Sign() >= 0 {
		return
	}
	if !percentForm.MatchString(field.text()) {
		r.add(field, TypeInvalid, "%q must be a quantity, such as 200Mi, or a percentage, such as 5%%", field.text())
	} else if percent, err := strconv.Atoi(strings.TrimSuffix(field.text(), "%")); err != nil || percent > 100 {
		r.add(field, TypeInvalid, "%q is out of range: it must be between 0%% and 100%%", field.text())
	}
}

func (r *report) imageCollection(config tree, defaulted bool) {
	high, low := config.at("imageGCHighThresholdPercent"), config.at("imageGCLowThresholdPercent")
	r.within(high, 0, 100)
	r.within(low, 0, 100)
	if defaulted && !high.set() {
		high.value = 50
	}
	if defaulted && !low.set() {
		low.value = 40
	}
	if high.set() && low.set() && low.count() >= high.count() {
		r.add(low, TypeForbidden, "%d must be below imageGCHighThresholdPercent, which is %d", low.count(), high.count())
	}
}

func (r *report) swap(config tree) {
	swap, fails, gate := config.at("memorySwap"), config.at("failSwapOn"), config.at("featureGates", "NodeSwap")
	if !swap.set() {
		return
	}
	if !fails.set() || fails.is() {
		r.add(swap, TypeForbidden, "needs failSwapOn: false, which is true by default")
	} else if swap.at("swapBehavior").set() && !gate.is() {
		r.add(swap, TypeForbidden, "needs the feature gate NodeSwap: set featureGates.NodeSwap to true")
	}
}

// inPlace reports whether machines of a pool are updated without being replaced.
func inPlace(worker tree) bool {
	return slices.Contains([]string{"AutoInPlaceUpdate", "ManualInPlaceUpdate"}, worker.at("updateStrategy").text())
}
