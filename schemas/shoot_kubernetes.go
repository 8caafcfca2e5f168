package schemas

import (
	"math"
	"math/big"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// shoot is the Shoot under test with values that many rules read.
type shoot struct {
	tree
	old      tree // not set for a new Shoot
	spec     tree
	version  string // Kubernetes version
	workers  []tree
	families []string // IP families, after defaulting
}

func readShoot(in ruleInput) shoot {
	s := shoot{tree: tree{value: map[string]any(in.object)}}
	if in.old != nil {
		s.old = tree{value: map[string]any(in.old)}
	}
	s.spec = s.at("spec")
	s.version = s.spec.at("kubernetes", "version").text()
	s.workers = s.spec.at("provider", "workers").items()
	if s.families = s.spec.at("networking", "ipFamilies").texts(); len(s.families) == 0 {
		s.families = []string{"IPv4"}
	}
	return s
}

// shootRule converts a check of Shoots to that of a rule.
func shootRule(check func(*report, shoot)) func(ruleInput) []finding {
	return func(in ruleInput) []finding {
		r := &report{}
		check(r, readShoot(in))
		return r.findings
	}
}

func shootAPIServer(r *report, s shoot) {
	r.findings = append(r.findings, kubeAPIServerFindings(s.spec.at("kubernetes", "kubeAPIServer"), apiServerContext{
		version: s.version, workerless: len(s.workers) == 0, alwaysEncrypted: []string{"secrets"},
		old: s.old.at("spec", "kubernetes", "kubeAPIServer"),
	})...)
}

func shootEtcd(r *report, s shoot) {
	etcd := s.spec.at("kubernetes", "etcd")
	r.minAllowed(etcd.at("main", "autoscaling"), map[string]string{"memory": "300M"})
	r.minAllowed(etcd.at("events", "autoscaling"), map[string]string{"memory": "60M"})
}

func shootControllerManager(r *report, s shoot) {
	config := s.spec.at("kubernetes", "kubeControllerManager")
	r.featureGates(config.at("featureGates"), s.version)
	if len(s.workers) == 0 {
		return
	}
	if field := config.at("podEvictionTimeout"); field.set() && minorOf(s.version) >= 33 {
		r.add(field, TypeForbidden, "Kubernetes 1.33 does not have it any more; use kubeAPIServer.defaultNotReadyTolerationSeconds and defaultUnreachableTolerationSeconds")
	} else {
		r.durations(1, field)
	}
	r.durations(1, config.at("nodeMonitorGracePeriod"))
	hpa := config.at("horizontalPodAutoscaler")
	r.durations(time.Second, hpa.at("syncPeriod"), hpa.at("downscaleStabilization"), hpa.at("cpuInitializationPeriod"))
	r.durations(1, hpa.at("initialReadinessDelay"))
	if tolerance, ok := hpa.at("tolerance").number(); ok && tolerance <= 0 {
		r.add(hpa.at("tolerance"), TypeInvalid, "%v is too small: it must be above 0", hpa.at("tolerance").value)
	}
}

const kubeletDefaultMaxPods = 110

// shootNodeMasks checks the size of the pod range of every node. It must have as many addresses as
// a node may have pods, without the first and the last one.
func shootNodeMasks(r *report, s shoot) {
	config := s.spec.at("kubernetes", "kubeControllerManager")
	mask, maskIPv6 := config.at("nodeCIDRMaskSize"), config.at("nodeCIDRMaskSizeIPv6")
	if len(s.workers) == 0 {
		return
	}
	switch {
	case slices.Equal(s.families, []string{"IPv4"}):
		r.within(mask, 16, 28)
	case slices.Equal(s.families, []string{"IPv6"}):
		r.within(mask, 64, 124)
		if mask.set() && maskIPv6.set() {
			r.add(mask, TypeForbidden, "must not be set together with nodeCIDRMaskSizeIPv6, because spec.networking.ipFamilies has IPv6 only")
		}
	}
	if !slices.Contains(s.families, "IPv6") {
		if maskIPv6.set() {
			r.add(maskIPv6, TypeForbidden, "must not be set, because spec.networking.ipFamilies has no IPv6")
		}
	} else {
		r.within(maskIPv6, 64, 124)
	}
	maxPods := s.spec.at("kubernetes", "kubelet", "maxPods").count()
	for _, worker := range s.workers {
		maxPods = max(maxPods, worker.at("kubernetes", "kubelet", "maxPods").count())
	}
	if maxPods == 0 {
		maxPods = kubeletDefaultMaxPods
	}
	bits := 32
	if !slices.Contains(s.families, "IPv4") {
		bits = 128
	}
	if mask.set() {
		r.roomForPods(mask, bits, maxPods)
	}
	if maskIPv6.set() {
		r.roomForPods(maskIPv6, 128, maxPods)
	}
}

// nodeMaskIPv4 is the default of kube-controller-manager for a node (upstream:
// pkg/component/kubernetes/controllermanager).
const nodeMaskIPv4 = 24

// shootNodeRanges checks that the pod range has a part for every node that the pools may have. A
// node without a part gets no pods.
func shootNodeRanges(r *report, s shoot) {
	pods := s.spec.at("networking", "pods")
	prefix, err := netip.ParsePrefix(pods.text())
	if err != nil || !prefix.Addr().Is4() || len(s.workers) == 0 {
		return
	}
	mask := nodeMaskIPv4
	if own := s.spec.at("kubernetes", "kubeControllerManager", "nodeCIDRMaskSize"); own.set() {
		mask = own.count()
	}
	if prefix.Bits() > mask {
		r.add(pods, TypeInvalid, "the range has no part for a single node, which gets a range /%d of it; take a larger one, or set spec.kubernetes.kubeControllerManager.nodeCIDRMaskSize", mask)
		return
	}
	most, room := 0, 1<<min(mask-prefix.Bits(), 30)
	for _, worker := range s.workers {
		most += max(worker.at("maximum").count(), 0)
	}
	if most > room {
		r.add(pods, TypeInvalid, "the range has parts /%d for %d nodes, and the pools may have %d together (maximum); take a larger one, or make the pools smaller", mask, room, most)
	}
}

func (r *report) roomForPods(mask tree, bits, maxPods int) {
	size := mask.count()
	if size < 0 {
		return
	}
	addresses := new(big.Int).Lsh(big.NewInt(1), uint(max(bits-size, 0)))
	addresses.Sub(addresses, big.NewInt(2))
	if addresses.Cmp(big.NewInt(int64(maxPods))) >= 0 {
		return
	}
	most := bits - int(math.Ceil(math.Log2(float64(maxPods+2))))
	r.add(mask, TypeInvalid, "a range /%d has addresses for %s pods, but kubelet.maxPods allows %d pods on a node; set %d or less, or lower maxPods", size, addresses, maxPods, most)
}

func shootScheduler(r *report, s shoot) {
	config := s.spec.at("kubernetes", "kubeScheduler")
	if len(s.workers) == 0 {
		return
	}
	r.featureGates(config.at("featureGates"), s.version)
	volumes := config.at("kubeMaxPDVols")
	switch number, err := strconv.Atoi(volumes.text()); {
	case !volumes.set():
	case minorOf(s.version) >= 35:
		r.add(volumes, TypeForbidden, "Kubernetes 1.35 does not have it any more; the limits come from the CSI drivers")
	case err != nil || number < 1:
		r.add(volumes, TypeInvalid, "%q is not a number of volumes; it must be 1 or more", volumes.text())
	}
}

func shootProxy(r *report, s shoot) {
	config := s.spec.at("kubernetes", "kubeProxy")
	if len(s.workers) == 0 {
		return
	}
	r.featureGates(config.at("featureGates"), s.version)
	if gate := config.at("featureGates", "NFTablesProxyMode"); config.at("mode").text() == "NFTables" && gate.set() && !gate.is() {
		r.add(config.at("mode"), TypeInvalid, "NFTables needs the feature gate NFTablesProxyMode, which %s turns off", gate.path)
	}
}

func shootAutoscaler(r *report, s shoot) {
	config := s.spec.at("kubernetes", "clusterAutoscaler")
	if len(s.workers) == 0 || !config.set() {
		return
	}
	r.durations(0, config.at("scaleDownDelayAfterAdd"), config.at("scaleDownDelayAfterDelete"), config.at("scaleDownDelayAfterFailure"),
		config.at("scaleDownUnneededTime"), config.at("scanInterval"), config.at("maxNodeProvisionTime"), config.at("newPodScaleUpDelay"),
		config.at("initialNodeGroupBackoffDuration"), config.at("maxNodeGroupBackoffDuration"), config.at("nodeGroupBackoffResetTimeout"), config.at("maxBinpackingTime"))
	r.within(config.at("scaleDownUtilizationThreshold"), 0, 1)
	r.notNegative(config.at("maxGracefulTerminationSeconds"), config.at("maxScaleDownParallelism"), config.at("maxDrainParallelism"), config.at("verbosity"))
	if expander := config.at("expander"); expander.set() {
		for _, name := range strings.Split(expander.text(), ",") {
			r.oneOf(tree{path: expander.path, value: name}, "least-waste", "most-pods", "priority", "random")
		}
	}
	bulk, parallel := config.at("maxEmptyBulkDelete"), config.at("maxScaleDownParallelism")
	if bulk.set() && minorOf(s.version) >= 33 {
		r.add(bulk, TypeForbidden, "Kubernetes 1.33 does not have it any more; use maxScaleDownParallelism")
	}
	r.notNegative(bulk)
	if bulk.set() && parallel.set() && bulk.count() != parallel.count() {
		r.add(bulk, TypeInvalid, "must be equal to maxScaleDownParallelism, which is %d", parallel.count())
	}
	if taints := config.at("ignoreTaints"); taints.set() && minorOf(s.version) >= 32 {
		r.add(taints.at("IgnoreTaints"), TypeForbidden, "Kubernetes 1.32 does not have it any more; use startupTaints or statusTaints")
	}
	for _, list := range []string{"startupTaints", "statusTaints", "ignoreTaints"} {
		r.taintKeys(config.at(list))
	}
	r.minAllowed(config.at("autoscaling"), map[string]string{"cpu": "10m", "memory": "30M"})
}

func (r *report) taintKeys(list tree) {
	seen := map[string]string{}
	for _, item := range list.items() {
		r.taintKey(item)
		if first, double := seen[item.text()]; double {
			r.add(item, TypeDuplicate, "%q is listed already as %s", item.text(), first)
		}
		seen[item.text()] = item.path
	}
}

func shootVerticalAutoscaler(r *report, s shoot) {
	config := s.spec.at("kubernetes", "verticalPodAutoscaler")
	if len(s.workers) == 0 || !config.set() {
		return
	}
	r.durations(0, config.at("evictAfterOOMThreshold"), config.at("updaterInterval"), config.at("recommenderInterval"),
		config.at("cpuHistogramDecayHalfLife"), config.at("memoryHistogramDecayHalfLife"), config.at("memoryAggregationInterval"))
	r.notNegative(config.at("evictionRateBurst"), config.at("memoryAggregationIntervalCount"))
	for _, name := range []string{"evictionTolerance", "recommendationMarginFraction"} {
		if fraction, ok := config.at(name).number(); ok && (fraction < 0 || fraction >= 1) {
			r.add(config.at(name), TypeInvalid, "%v is out of range: it must be 0 or more, and below 1", fraction)
		}
	}
	for _, what := range []string{"CPUPercentile", "MemoryPercentile"} {
		for _, which := range []string{"target", "recommendationLowerBound", "recommendationUpperBound"} {
			r.within(config.at(which+what), 0, 1)
		}
	}
	for _, gate := range config.at("featureGates").keys() {
		if known := []string{"CPUStartupBoost", "InPlace", "InPlaceOrRecreate", "PerVPAConfig"}; !slices.Contains(known, gate) {
			r.add(config.at("featureGates", gate), TypeInvalid, "the vertical pod autoscaler has no feature gate %q; known are %s", gate, quotedList(known))
		}
	}
	for _, name := range config.at("maxAllowed").keys() {
		field := config.at("maxAllowed", name)
		r.oneOf(tree{path: field.path, value: name}, "cpu", "memory")
		r.quantities(field)
	}
	r.atLeast(config.at("recommenderUpdateWorkerCount"), 1)
}
