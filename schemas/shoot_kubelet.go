// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

func checkShootKubelet(r *findingCollector, s shoot) {
	if len(s.workers) == 0 {
		return
	}
	common := s.spec.lookup("kubernetes", "kubelet")
	r.checkKubelet(common, s.version, true)
	for _, worker := range s.workers {
		section := worker.lookup("kubernetes")
		if !section.isSet() {
			continue
		}
		version := s.version
		if own := section.lookup("version"); own.isSet() {
			version = own.text()
		}
		if own := section.lookup("kubelet"); own.isSet() {
			r.checkKubelet(own, version, false)
		} else if version != s.version {
			// The settings of the Shoot also apply to the pool, at its version.
			common := common.withPath(section.path + ".kubelet")
			r.checkFeatureGates(common.lookup("featureGates"), version)
			r.checkPullPolicyVersion(common, version)
		}
	}
}

const minPodPIDs = 100

// checkKubelet checks kubelet settings of a Shoot or a worker pool. Only a Shoot has defaults for
// the garbage collection of images.
func (r *findingCollector) checkKubelet(config fieldValue, version string, defaulted bool) {
	if !config.isSet() {
		return
	}
	r.checkFeatureGates(config.lookup("featureGates"), version)
	r.requireOneOf(config.lookup("cpuManagerPolicy"), "none", "static")
	r.requireNonNegative(config.lookup("maxPods"), config.lookup("evictionMaxPodGracePeriod"), config.lookup("registryPullQPS"), config.lookup("registryBurst"))
	r.requireMinimum(config.lookup("podPidsLimit").withPath(config.path+".podPIDsLimit"), minPodPIDs)
	r.requireMinimum(config.lookup("containerLogMaxFiles"), 2)
	r.requireNonNegativeQuantities(config.lookup("containerLogMaxSize"))
	r.requireMinimumDurations(0, config.lookup("evictionPressureTransitionPeriod"), config.lookup("imageMinimumGCAge"), config.lookup("imageMaximumGCAge"))
	if idle := config.lookup("streamingConnectionIdleTimeout"); idle.isSet() {
		if time_, ok := idle.duration(); ok && (time_ < 30*time.Second || time_ > 4*time.Hour) {
			r.add(idle, TypeInvalid, "%s is out of range: it must be between 30s and 4h", idle.text())
		}
	}
	r.checkEviction(config)
	for _, name := range []string{"cpu", "memory", "ephemeralStorage", "pid"} {
		r.requireNonNegativeQuantities(config.lookup("kubeReserved", name))
	}
	r.checkImageGarbageCollection(config, defaulted)
	r.checkSwap(config)
	r.checkPullPolicyVersion(config, version)
	r.checkPullPolicy(config)
	pulls := config.lookup("maxParallelImagePulls")
	r.requireMinimum(pulls, 1)
	if config.lookup("serializeImagePulls").isTrue() && pulls.integer() > 1 {
		r.add(pulls, TypeForbidden, "must not be above 1 with serializeImagePulls, which pulls images one after the other")
	}
}

// evictionThresholdNames lists the thresholds that upstream checks, each with the name in its
// reports. Upstream does not check nodeFSInodesFree.
var evictionThresholdNames = [...][2]string{
	{"memoryAvailable", "memoryAvailable"}, {"imageFSAvailable", "imagefsAvailable"}, {"imageFSInodesFree", "imagefsInodesFree"},
	{"nodeFSAvailable", "nodefsAvailable"},
}

func (r *findingCollector) checkEviction(config fieldValue) {
	r.checkThresholds(config, evictionThresholdNames[:]...)
}

// checkShootEvictionInodes reports thresholds that API servers accept, but that the kubelet cannot
// read.
func checkShootEvictionInodes(r *findingCollector, s shoot) {
	r.checkThresholds(s.spec.lookup("kubernetes", "kubelet"), [2]string{"nodeFSInodesFree", "nodeFSInodesFree"})
	for _, worker := range s.workers {
		r.checkThresholds(worker.lookup("kubernetes", "kubelet"), [2]string{"nodeFSInodesFree", "nodeFSInodesFree"})
	}
}

func (r *findingCollector) checkThresholds(config fieldValue, pairs ...[2]string) {
	for _, names := range pairs {
		at := func(section string) fieldValue {
			return config.lookup(section, names[0]).withPath(config.path + "." + section + "." + names[1])
		}
		r.checkQuantityOrPercent(at("evictionHard"))
		r.checkQuantityOrPercent(at("evictionSoft"))
		r.requireNonNegativeQuantities(at("evictionMinimumReclaim"))
		r.requireMinimumDurations(0, at("evictionSoftGracePeriod"))
	}
}

var percentPattern = regexp.MustCompile(`^[0-9]+%$`)

func (r *findingCollector) checkQuantityOrPercent(field fieldValue) {
	if !field.isSet() {
		return
	}
	if quantity, ok := field.quantity(); ok && quantity.Sign() >= 0 {
		return
	}
	if !percentPattern.MatchString(field.text()) {
		r.add(field, TypeInvalid, "%q must be a quantity, such as 200Mi, or a percentage, such as 5%%", field.text())
	} else if percent, err := strconv.Atoi(strings.TrimSuffix(field.text(), "%")); err != nil || percent > 100 {
		r.add(field, TypeInvalid, "%q is out of range: it must be between 0%% and 100%%", field.text())
	}
}

func (r *findingCollector) checkImageGarbageCollection(config fieldValue, defaulted bool) {
	high, low := config.lookup("imageGCHighThresholdPercent"), config.lookup("imageGCLowThresholdPercent")
	r.requireRange(high, 0, 100)
	r.requireRange(low, 0, 100)
	if defaulted && !high.isSet() {
		high.value = 50
	}
	if defaulted && !low.isSet() {
		low.value = 40
	}
	if high.isSet() && low.isSet() && low.integer() >= high.integer() {
		r.add(low, TypeForbidden, "%d must be below imageGCHighThresholdPercent, which is %d", low.integer(), high.integer())
	}
}

func (r *findingCollector) checkSwap(config fieldValue) {
	swap, fails, gate := config.lookup("memorySwap"), config.lookup("failSwapOn"), config.lookup("featureGates", "NodeSwap")
	if !swap.isSet() {
		return
	}
	if !fails.isSet() || fails.isTrue() {
		r.add(swap, TypeForbidden, "needs failSwapOn: false, which is true by default")
	} else if swap.lookup("swapBehavior").isSet() && !gate.isTrue() {
		r.add(swap, TypeForbidden, "needs the feature gate NodeSwap: set featureGates.NodeSwap to true")
	}
}

// isUpdatedInPlace reports whether machines of a pool are updated without being replaced.
func isUpdatedInPlace(worker fieldValue) bool {
	return slices.Contains([]string{"AutoInPlaceUpdate", "ManualInPlaceUpdate"}, worker.lookup("updateStrategy").text())
}
