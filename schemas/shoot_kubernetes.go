// SPDX-License-Identifier: Apache-2.0

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
	fieldValue
	old        fieldValue // not set for a new Shoot
	spec       fieldValue
	version    string // Kubernetes version
	workers    []fieldValue
	ipFamilies []string // IP families, after defaulting
}

func readShoot(in ruleInput) shoot {
	s := shoot{fieldValue: fieldValue{value: map[string]any(in.object)}}
	if in.old != nil {
		s.old = fieldValue{value: map[string]any(in.old)}
	}
	s.spec = s.lookup("spec")
	s.version = s.spec.lookup("kubernetes", "version").text()
	s.workers = s.spec.lookup("provider", "workers").items()
	if s.ipFamilies = s.spec.lookup("networking", "ipFamilies").texts(); len(s.ipFamilies) == 0 {
		s.ipFamilies = []string{"IPv4"}
	}
	return s
}

// shootCheck converts a check of Shoots to that of a rule.
func shootCheck(check func(*findingCollector, shoot)) func(ruleInput) []finding {
	return func(in ruleInput) []finding {
		r := &findingCollector{}
		check(r, readShoot(in))
		return r.findings
	}
}

func checkShootAPIServer(r *findingCollector, s shoot) {
	r.findings = append(r.findings, checkKubeAPIServer(s.spec.lookup("kubernetes", "kubeAPIServer"), apiServerContext{
		version: s.version, workerless: len(s.workers) == 0, alwaysEncrypted: []string{"secrets"},
		old: s.old.lookup("spec", "kubernetes", "kubeAPIServer"),
	})...)
}

func checkShootEtcd(r *findingCollector, s shoot) {
	etcd := s.spec.lookup("kubernetes", "etcd")
	r.checkMinAllowed(etcd.lookup("main", "autoscaling"), map[string]string{"memory": "300M"})
	r.checkMinAllowed(etcd.lookup("events", "autoscaling"), map[string]string{"memory": "60M"})
}

func checkShootControllerManager(r *findingCollector, s shoot) {
	config := s.spec.lookup("kubernetes", "kubeControllerManager")
	r.checkFeatureGates(config.lookup("featureGates"), s.version)
	if len(s.workers) == 0 {
		return
	}
	if field := config.lookup("podEvictionTimeout"); field.isSet() && minorOf(s.version) >= 33 {
		r.add(field, TypeForbidden, "Kubernetes 1.33 no longer has it; use kubeAPIServer.defaultNotReadyTolerationSeconds and defaultUnreachableTolerationSeconds")
	} else {
		r.requireMinimumDurations(1, field)
	}
	r.requireMinimumDurations(1, config.lookup("nodeMonitorGracePeriod"))
	hpa := config.lookup("horizontalPodAutoscaler")
	r.requireMinimumDurations(time.Second, hpa.lookup("syncPeriod"), hpa.lookup("downscaleStabilization"), hpa.lookup("cpuInitializationPeriod"))
	r.requireMinimumDurations(1, hpa.lookup("initialReadinessDelay"))
	if tolerance, ok := hpa.lookup("tolerance").number(); ok && tolerance <= 0 {
		r.add(hpa.lookup("tolerance"), TypeInvalid, "%v is too small: it must be above 0", hpa.lookup("tolerance").value)
	}
}

const kubeletDefaultMaxPods = 110

// checkShootNodeMasks checks the size of the pod range of every node. It must have as many
// addresses as a node may have pods, without the first and the last one.
func checkShootNodeMasks(r *findingCollector, s shoot) {
	config := s.spec.lookup("kubernetes", "kubeControllerManager")
	mask, maskIPv6 := config.lookup("nodeCIDRMaskSize"), config.lookup("nodeCIDRMaskSizeIPv6")
	if len(s.workers) == 0 {
		return
	}
	switch {
	case slices.Equal(s.ipFamilies, []string{"IPv4"}):
		r.requireRange(mask, 16, 28)
	case slices.Equal(s.ipFamilies, []string{"IPv6"}):
		r.requireRange(mask, 64, 124)
		if mask.isSet() && maskIPv6.isSet() {
			r.add(mask, TypeForbidden, "must not be set together with nodeCIDRMaskSizeIPv6, because spec.networking.ipFamilies has only IPv6")
		}
	}
	if !slices.Contains(s.ipFamilies, "IPv6") {
		if maskIPv6.isSet() {
			r.add(maskIPv6, TypeForbidden, "must not be set, because spec.networking.ipFamilies has no IPv6")
		}
	} else {
		r.requireRange(maskIPv6, 64, 124)
	}
	maxPods := s.spec.lookup("kubernetes", "kubelet", "maxPods").integer()
	for _, worker := range s.workers {
		maxPods = max(maxPods, worker.lookup("kubernetes", "kubelet", "maxPods").integer())
	}
	if maxPods == 0 {
		maxPods = kubeletDefaultMaxPods
	}
	bits := 32
	if !slices.Contains(s.ipFamilies, "IPv4") {
		bits = 128
	}
	if mask.isSet() {
		r.checkPodCapacity(mask, bits, maxPods)
	}
	if maskIPv6.isSet() {
		r.checkPodCapacity(maskIPv6, 128, maxPods)
	}
}

// defaultNodeMaskIPv4 is the default of kube-controller-manager for a node (upstream:
// pkg/component/kubernetes/controllermanager).
const defaultNodeMaskIPv4 = 24

// checkShootNodeRanges checks that the pod range has a part for every node that the pools may have.
// A node without a part gets no pods.
func checkShootNodeRanges(r *findingCollector, s shoot) {
	pods := s.spec.lookup("networking", "pods")
	prefix, err := netip.ParsePrefix(pods.text())
	if err != nil || !prefix.Addr().Is4() || len(s.workers) == 0 {
		return
	}
	mask := defaultNodeMaskIPv4
	if own := s.spec.lookup("kubernetes", "kubeControllerManager", "nodeCIDRMaskSize"); own.isSet() {
		mask = own.integer()
	}
	if prefix.Bits() > mask {
		r.add(pods, TypeInvalid, "the range is too small for a single node, which gets a range /%d of it; use a larger one, or set spec.kubernetes.kubeControllerManager.nodeCIDRMaskSize", mask)
		return
	}
	most, room := 0, 1<<min(mask-prefix.Bits(), 30)
	for _, worker := range s.workers {
		most += max(worker.lookup("maximum").integer(), 0)
	}
	if most > room {
		r.add(pods, TypeInvalid, "the range has parts /%d for %d nodes, but the pools may have %d together (maximum); use a larger one, or make the pools smaller", mask, room, most)
	}
}

func (r *findingCollector) checkPodCapacity(mask fieldValue, bits, maxPods int) {
	size := mask.integer()
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

func checkShootScheduler(r *findingCollector, s shoot) {
	config := s.spec.lookup("kubernetes", "kubeScheduler")
	if len(s.workers) == 0 {
		return
	}
	r.checkFeatureGates(config.lookup("featureGates"), s.version)
	volumes := config.lookup("kubeMaxPDVols")
	switch number, err := strconv.Atoi(volumes.text()); {
	case !volumes.isSet():
	case minorOf(s.version) >= 35:
		r.add(volumes, TypeForbidden, "Kubernetes 1.35 no longer has it; the limits come from the CSI drivers")
	case err != nil || number < 1:
		r.add(volumes, TypeInvalid, "%q is not a number of volumes; it must be 1 or more", volumes.text())
	}
}

func checkShootProxy(r *findingCollector, s shoot) {
	config := s.spec.lookup("kubernetes", "kubeProxy")
	if len(s.workers) == 0 {
		return
	}
	r.checkFeatureGates(config.lookup("featureGates"), s.version)
	if gate := config.lookup("featureGates", "NFTablesProxyMode"); config.lookup("mode").text() == "NFTables" && gate.isSet() && !gate.isTrue() {
		r.add(config.lookup("mode"), TypeInvalid, "NFTables needs the feature gate NFTablesProxyMode, which %s turns off", gate.path)
	}
}

func checkShootAutoscaler(r *findingCollector, s shoot) {
	config := s.spec.lookup("kubernetes", "clusterAutoscaler")
	if len(s.workers) == 0 || !config.isSet() {
		return
	}
	r.requireMinimumDurations(0, config.lookup("scaleDownDelayAfterAdd"), config.lookup("scaleDownDelayAfterDelete"), config.lookup("scaleDownDelayAfterFailure"),
		config.lookup("scaleDownUnneededTime"), config.lookup("scanInterval"), config.lookup("maxNodeProvisionTime"), config.lookup("newPodScaleUpDelay"),
		config.lookup("initialNodeGroupBackoffDuration"), config.lookup("maxNodeGroupBackoffDuration"), config.lookup("nodeGroupBackoffResetTimeout"), config.lookup("maxBinpackingTime"))
	r.requireRange(config.lookup("scaleDownUtilizationThreshold"), 0, 1)
	r.requireNonNegative(config.lookup("maxGracefulTerminationSeconds"), config.lookup("maxScaleDownParallelism"), config.lookup("maxDrainParallelism"), config.lookup("verbosity"))
	if expander := config.lookup("expander"); expander.isSet() {
		for _, name := range strings.Split(expander.text(), ",") {
			r.requireOneOf(fieldValue{path: expander.path, value: name}, "least-waste", "most-pods", "priority", "random")
		}
	}
	bulk, parallel := config.lookup("maxEmptyBulkDelete"), config.lookup("maxScaleDownParallelism")
	if bulk.isSet() && minorOf(s.version) >= 33 {
		r.add(bulk, TypeForbidden, "Kubernetes 1.33 no longer has it; use maxScaleDownParallelism")
	}
	r.requireNonNegative(bulk)
	if bulk.isSet() && parallel.isSet() && bulk.integer() != parallel.integer() {
		r.add(bulk, TypeInvalid, "must be equal to maxScaleDownParallelism, which is %d", parallel.integer())
	}
	if taints := config.lookup("ignoreTaints"); taints.isSet() && minorOf(s.version) >= 32 {
		r.add(taints.lookup("IgnoreTaints"), TypeForbidden, "Kubernetes 1.32 no longer has it; use startupTaints or statusTaints")
	}
	for _, list := range []string{"startupTaints", "statusTaints", "ignoreTaints"} {
		r.checkTaintKeys(config.lookup(list))
	}
	r.checkMinAllowed(config.lookup("autoscaling"), map[string]string{"cpu": "10m", "memory": "30M"})
}

func (r *findingCollector) checkTaintKeys(list fieldValue) {
	seen := map[string]string{}
	for _, item := range list.items() {
		r.checkTaintKey(item)
		if first, double := seen[item.text()]; double {
			r.add(item, TypeDuplicate, "%q is already listed as %s", item.text(), first)
		}
		seen[item.text()] = item.path
	}
}

func checkShootVerticalAutoscaler(r *findingCollector, s shoot) {
	config := s.spec.lookup("kubernetes", "verticalPodAutoscaler")
	if len(s.workers) == 0 || !config.isSet() {
		return
	}
	r.requireMinimumDurations(0, config.lookup("evictAfterOOMThreshold"), config.lookup("updaterInterval"), config.lookup("recommenderInterval"),
		config.lookup("cpuHistogramDecayHalfLife"), config.lookup("memoryHistogramDecayHalfLife"), config.lookup("memoryAggregationInterval"))
	r.requireNonNegative(config.lookup("evictionRateBurst"), config.lookup("memoryAggregationIntervalCount"))
	for _, name := range []string{"evictionTolerance", "recommendationMarginFraction"} {
		if fraction, ok := config.lookup(name).number(); ok && (fraction < 0 || fraction >= 1) {
			r.add(config.lookup(name), TypeInvalid, "%v is out of range: it must be 0 or more, and below 1", fraction)
		}
	}
	for _, what := range []string{"CPUPercentile", "MemoryPercentile"} {
		for _, which := range []string{"target", "recommendationLowerBound", "recommendationUpperBound"} {
			r.requireRange(config.lookup(which+what), 0, 1)
		}
	}
	for _, gate := range config.lookup("featureGates").keys() {
		if known := []string{"CPUStartupBoost", "InPlace", "InPlaceOrRecreate", "PerVPAConfig"}; !slices.Contains(known, gate) {
			r.add(config.lookup("featureGates", gate), TypeInvalid, "the vertical pod autoscaler has no feature gate %q; known are %s", gate, quotedList(known))
		}
	}
	for _, name := range config.lookup("maxAllowed").keys() {
		field := config.lookup("maxAllowed", name)
		r.requireOneOf(fieldValue{path: field.path, value: name}, "cpu", "memory")
		r.requireNonNegativeQuantities(field)
	}
	r.requireMinimum(config.lookup("recommenderUpdateWorkerCount"), 1)
}
