// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/pergola-dev/pergola/internal/suggest"
	"github.com/pergola-dev/pergola/schemas/requests"
)

// This file has the warnings about implausible values of a Shoot; gorules_plausible.go lists them.

const (
	// maxProcesses is the maximum of a 64-bit kernel
	// (https://man7.org/linux/man-pages/man5/proc_sys_kernel.5.html, pid_max).
	maxProcesses = 4194304
	// maxPlausibleGracePeriodSeconds is longer than pods take to end, in seconds.
	maxPlausibleGracePeriodSeconds = 3600
	// maxPlausibleLogBytes is larger than anybody reads, in bytes.
	maxPlausibleLogBytes = 10 << 30
)

func checkKubeletPlausibility(in ruleInput) []finding {
	r := &findingCollector{}
	root := fieldValue{value: in.object}
	for _, kubelet := range append(fieldsAtPath(root, "spec.provider.workers[].kubernetes.kubelet"), root.lookup("spec", "kubernetes", "kubelet")) {
		if most := kubelet.lookup("podPidsLimit"); most.integer() > maxProcesses {
			r.add(most, TypeInvalid, "%v processes are more than a kernel allows, which is %d", most.value, maxProcesses)
		}
		if grace := kubelet.lookup("evictionMaxPodGracePeriod"); grace.integer() > maxPlausibleGracePeriodSeconds {
			r.add(grace, TypeInvalid, "%v is in seconds: pods would stay on a full node for more than an hour", grace.value)
		}
		if log, ok := kubelet.lookup("containerLogMaxSize").quantity(); ok && log.CmpInt64(maxPlausibleLogBytes) > 0 {
			r.add(kubelet.lookup("containerLogMaxSize"), TypeInvalid, "%v is for one file of one container: the logs would fill the disk of the node", kubelet.lookup("containerLogMaxSize").value)
		}
		if rate, burst := kubelet.lookup("registryPullQPS"), kubelet.lookup("registryBurst"); burst.isSet() && burst.integer() < rate.integer() {
			r.add(burst, TypeInvalid, "%v is below %v of registryPullQPS, which is then never reached", burst.value, rate.value)
		}
	}
	if tolerance := root.lookup("spec", "kubernetes", "kubeControllerManager", "horizontalPodAutoscaler", "tolerance"); tolerance.isSet() {
		if share, ok := tolerance.number(); ok && share >= 1 {
			r.add(tolerance, TypeInvalid, "%v is a ratio: nothing is scaled until the use differs by %v times the target; the default is 0.1", tolerance.value, tolerance.value)
		}
	}
	return r.findings
}

// managedNodeLabels lists the labels of nodes that Kubernetes, the cloud or Gardener set
// (https://kubernetes.io/docs/reference/labels-annotations-taints).
var managedNodeLabels = []string{
	"kubernetes.io/arch", "kubernetes.io/hostname", "kubernetes.io/os", "node.gardener.cloud/machine-name", "node.kubernetes.io/instance-type",
	"topology.kubernetes.io/region", "topology.kubernetes.io/zone", "worker.garden.sapcloud.io/group", "worker.gardener.cloud/cri-name",
	"worker.gardener.cloud/image-name", "worker.gardener.cloud/image-version", "worker.gardener.cloud/kubernetes-version", "worker.gardener.cloud/pool",
}

// trafficKernelParameters lists kernel parameters without which pods have no traffic.
var trafficKernelParameters = []string{"net.ipv4.conf.all.forwarding", "net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"}

// kernelParameterPattern is the form of the values of kernelParameters: whole numbers.
var kernelParameterPattern = regexp.MustCompile(`^-?[0-9]+([ \t]+-?[0-9]+)*$`)

func checkNodePlausibility(in ruleInput) []finding {
	r := &findingCollector{}
	for _, worker := range fieldsAtPath(fieldValue{value: in.object}, "spec.provider.workers[]") {
		for _, name := range worker.lookup("labels").keys() {
			if slices.Contains(managedNodeLabels, name) {
				r.add(worker.lookup("labels").entry(name), TypeForbidden, "Kubernetes, the cloud or Gardener set this label of a node: another value puts pods and volumes on the wrong nodes")
			}
		}
		for _, name := range worker.lookup("sysctls").keys() {
			value := worker.lookup("sysctls").entry(name)
			switch {
			case slices.Contains(trafficKernelParameters, name) && value.text() == "0":
				r.add(value, TypeInvalid, "0 stops the traffic of all pods of the node")
			case slices.Contains(kernelParameters, name) && value.text() != "" && !kernelParameterPattern.MatchString(value.text()):
				r.add(value, TypeInvalid, "%q is not a whole number, which the kernel expects", value.text())
			}
		}
	}
	return r.findings
}

func checkProxyAndNetwork(in ruleInput) []finding {
	r, spec := &findingCollector{}, fieldValue{value: in.object}.lookup("spec")
	enabled := spec.lookup("kubernetes", "kubeProxy", "enabled")
	off := enabled.isSet() && !enabled.isTrue()
	network := spec.lookup("networking")
	ebpf := network.lookup("providerConfig", "ebpfDataplane", "enabled")
	switch {
	case network.lookup("type").text() != "calico":
	case off && !ebpf.isTrue():
		r.add(enabled, TypeInvalid, "nothing replaces kube-proxy, so Services have no traffic; set spec.networking.providerConfig.ebpfDataplane.enabled, or leave kube-proxy on")
	case ebpf.isTrue() && !off:
		r.add(ebpf, TypeInvalid, "replaces kube-proxy, which is on; set spec.kubernetes.kubeProxy.enabled to false")
	}
	return r.findings
}

// checkRenamedPools reports a new pool that equals a removed one except for the name: pools cannot
// be renamed, only recreated.
func checkRenamedPools(in ruleInput) []finding {
	r := &findingCollector{}
	former, now := fieldsAtPath(fieldValue{value: in.old}, "spec.provider.workers[]"), fieldsAtPath(fieldValue{value: in.object}, "spec.provider.workers[]")
	named := func(list []fieldValue, name string) bool {
		return slices.ContainsFunc(list, func(w fieldValue) bool { return w.lookup("name").text() == name })
	}
	for _, pool := range now {
		if named(former, pool.lookup("name").text()) {
			continue
		}
		for _, gone := range former {
			if !named(now, gone.lookup("name").text()) && isEqual(pool.lookup("machine").value, gone.lookup("machine").value) && isEqual(pool.lookup("zones").value, gone.lookup("zones").value) {
				r.add(pool.lookup("name"), TypeInvalid, "a pool cannot be renamed: if this is the pool %q under another name, all its nodes are drained and deleted", gone.lookup("name").text())
				break
			}
		}
	}
	return r.findings
}

// lostIssuersCheck reports a replaced token issuer that is no longer accepted.
func lostIssuersCheck(at string) func(ruleInput) []finding {
	return func(in ruleInput) []finding {
		r := &findingCollector{}
		config := func(object map[string]any) fieldValue {
			return fieldValue{value: object}.lookup(strings.Split(at, ".")...).lookup("serviceAccountConfig")
		}
		former, now := config(in.old).lookup("issuer"), config(in.object)
		if former.text() != "" && former.text() != now.lookup("issuer").text() && !slices.Contains(now.lookup("acceptedIssuers").texts(), former.text()) {
			field := now.lookup("issuer")
			r.add(field, TypeInvalid, "tokens of the previous issuer %q become invalid until they are renewed; add it to acceptedIssuers", former.text())
		}
		return r.findings
	}
}

// allUserGroups lists groups that contain all users of a cluster.
var allUserGroups = []string{"system:authenticated", "system:serviceaccounts", "system:unauthenticated"}

func checkOpenProjects(in ruleInput) []finding {
	r := &findingCollector{}
	for _, member := range fieldsAtPath(fieldValue{value: in.object}, "spec.members[]") {
		if name := member.lookup("name"); slices.Contains(allUserGroups, name.text()) {
			r.add(name, TypeInvalid, "the group %q contains every user, so each user gets the roles of the member", name.text())
		} else if words := requests.CheckSubject(name.text()); words != "" {
			r.add(name, TypeNotSupported, "%s", words)
		}
	}
	return r.findings
}

// anonymousAccessCheck reports an API server that answers requests without credentials.
func anonymousAccessCheck(at string) func(ruleInput) []finding {
	return func(in ruleInput) []finding {
		r := &findingCollector{}
		if field := (fieldValue{value: in.object}).lookup(strings.Split(at, ".")...).lookup("enableAnonymousAuthentication"); field.isTrue() {
			r.add(field, TypeInvalid, "anonymous requests are allowed to all paths; leave it out, and list the intended paths in structuredAuthentication (anonymous.conditions)")
		}
		return r.findings
	}
}

// securityLevels lists the levels of PodSecurity, the strictest last
// (https://kubernetes.io/docs/concepts/security/pod-security-standards).
var securityLevels = []string{"", "privileged", "baseline", "restricted"}

// protectionLossCheck reports a change after which an API server records or refuses less.
func protectionLossCheck(at string) func(ruleInput) []finding {
	return func(in ruleInput) []finding {
		r := &findingCollector{}
		server := func(object map[string]any) fieldValue {
			return fieldValue{value: object}.lookup(strings.Split(at, ".")...)
		}
		now, old := server(in.object), server(in.old)
		const policy = "auditPolicy"
		if was := old.lookup("auditConfig", policy, "configMapRef", "name"); was.text() != "" && !now.lookup("auditConfig", policy, "configMapRef", "name").isSet() {
			r.add(now.lookup("auditConfig"), TypeInvalid, "the audit policy %q is removed, so only the default policy records requests", was.text())
		}
		plugin := func(server fieldValue) fieldValue {
			for _, plugin := range server.lookup("admissionPlugins").items() {
				if plugin.lookup("name").text() == "PodSecurity" && !plugin.lookup("disabled").isTrue() {
					return plugin
				}
			}
			return fieldValue{}
		}
		was, is := plugin(old).lookup("config", "defaults", "enforce"), plugin(now).lookup("config", "defaults", "enforce")
		// an unknown level is ignored
		if level := slices.Index(securityLevels, is.text()); level >= 0 && slices.Index(securityLevels, was.text()) > level {
			if is.path == "" || !plugin(now).isSet() {
				is = now.lookup("admissionPlugins")
			}
			r.add(is, TypeInvalid, "PodSecurity rejects less: it enforced the level %q and now enforces %q", was.text(), cmp.Or(is.text(), "privileged"))
		}
		return r.findings
	}
}

// referencedKinds lists the kinds of resources, by apiVersion, that Shoots bring to their control
// planes.
var referencedKinds = map[string][]string{"v1": {"ConfigMap", "Secret"}, "security.gardener.cloud/v1alpha1": {"WorkloadIdentity"}}

func checkResourceKinds(in ruleInput) []finding {
	r := &findingCollector{}
	for _, ref := range fieldsAtPath(fieldValue{value: in.object}, "spec.resources[].resourceRef") {
		known, kind := referencedKinds[ref.lookup("apiVersion").text()], ref.lookup("kind")
		if guess := suggest.ClosestWithin(kind.text(), known, 2); guess != "" && !slices.Contains(known, kind.text()) {
			r.add(kind, TypeNotSupported, "there is no kind %q; did you mean %q?", kind.text(), guess)
		}
	}
	return r.findings
}

func checkEvictionThresholds(in ruleInput) []finding {
	r := &findingCollector{}
	root := fieldValue{value: in.object}
	for _, kubelet := range append(fieldsAtPath(root, "spec.provider.workers[].kubernetes.kubelet"), root.lookup("spec", "kubernetes", "kubelet")) {
		hard, soft := kubelet.lookup("evictionHard"), kubelet.lookup("evictionSoft")
		for _, name := range soft.keys() {
			first, second := soft.lookup(name), hard.lookup(name)
			if less, comparable := isLowerThreshold(first.text(), second.text()); comparable && less {
				r.add(first, TypeInvalid, "%s is below %s of evictionHard, which evicts first", first.text(), second.text())
			}
		}
	}
	return r.findings
}

const minPlausibleMaxPods = 10

func checkPodCapacity(in ruleInput) []finding {
	r := &findingCollector{}
	root := fieldValue{value: in.object}
	for _, kubelet := range append(fieldsAtPath(root, "spec.provider.workers[].kubernetes.kubelet"), root.lookup("spec", "kubernetes", "kubelet")) {
		if most := kubelet.lookup("maxPods"); most.isSet() && most.integer() >= 0 && most.integer() < minPlausibleMaxPods {
			r.add(most, TypeInvalid, "%v leaves no room beside the pods of the system; nodes have 110 pods by default", most.value)
		}
	}
	return r.findings
}

// isLowerThreshold compares two thresholds if both are percentages or both are amounts.
func isLowerThreshold(a, b string) (less, comparable bool) {
	shareA, isShareA := strings.CutSuffix(a, "%")
	shareB, isShareB := strings.CutSuffix(b, "%")
	if isShareA != isShareB {
		return false, false
	}
	x, errX := resource.ParseQuantity(shareA)
	y, errY := resource.ParseQuantity(shareB)
	return errX == nil && errY == nil && x.Cmp(y) < 0, errX == nil && errY == nil
}

// nodeConditions lists the conditions of Kubernetes and of the node problem detector.
var nodeConditions = []string{
	"CorruptDockerOverlay2", "DiskPressure", "FrequentContainerdRestart", "FrequentDockerRestart", "FrequentKubeletRestart", "FrequentUnregisterNetDevice",
	"KernelDeadlock", "MemoryPressure", "NetworkUnavailable", "PIDPressure", "ReadonlyFilesystem",
}

// kernelParameters lists parameters that people set on nodes.
var kernelParameters = []string{
	"fs.file-max", "fs.inotify.max_user_instances", "fs.inotify.max_user_watches", "kernel.msgmax", "kernel.pid_max", "kernel.sem", "kernel.shmall",
	"kernel.shmmax", "kernel.threads-max", "net.core.netdev_max_backlog", "net.core.rmem_max", "net.core.somaxconn", "net.core.wmem_max", "net.ipv4.conf.all.rp_filter",
	"net.ipv4.ip_forward", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl", "net.ipv4.tcp_keepalive_probes",
	"net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_max_syn_backlog", "net.ipv4.tcp_rmem", "net.ipv4.tcp_syncookies", "net.ipv4.tcp_tw_reuse", "net.ipv4.tcp_wmem",
	"net.ipv6.conf.all.forwarding", "net.netfilter.nf_conntrack_max", "user.max_user_namespaces", "vm.dirty_ratio", "vm.max_map_count", "vm.overcommit_memory", "vm.swappiness",
}

func checkShootNames(in ruleInput) []finding {
	r := &findingCollector{}
	near := func(at fieldValue, name string, known []string) {
		if meant := suggest.ClosestWithin(name, known, 2); meant != "" && !slices.Contains(known, name) {
			r.add(at, TypeNotSupported, "%q is not known; did you mean %q?", name, meant)
		}
	}
	for _, worker := range fieldsAtPath(fieldValue{value: in.object}, "spec.provider.workers[]") {
		for _, condition := range worker.lookup("machineControllerManager", "nodeConditions").items() {
			near(condition, condition.text(), nodeConditions)
			if condition.text() == "Ready" {
				r.add(condition, TypeInvalid, "a machine is replaced while a condition of the list is true, but Ready is true for each healthy node; leave it out")
			}
		}
		for _, name := range worker.lookup("sysctls").keys() {
			near(worker.lookup("sysctls").entry(name), name, kernelParameters)
		}
	}
	return r.findings
}

// checkEveryMinuteSchedules reports a schedule that begins with an asterisk, which is every minute
// of an hour.
func checkEveryMinuteSchedules(in ruleInput) []finding {
	r := &findingCollector{}
	for _, schedule := range fieldsAtPath(fieldValue{value: in.object}, "spec.hibernation.schedules[]") {
		for _, name := range []string{"start", "end"} {
			if field := schedule.lookup(name); CronProblem(field.text()) == "" && strings.HasPrefix(field.text(), "* ") {
				r.add(field, TypeInvalid, "%q runs every minute, because its first field is *; write the minute, such as 0", field.text())
			}
		}
	}
	return r.findings
}

func checkDNSSecrets(in ruleInput) []finding {
	r, spec := &findingCollector{}, fieldValue{value: in.object}.lookup("spec")
	var known []string
	for _, resource := range spec.lookup("resources").items() {
		known = append(known, resource.lookup("name").text())
	}
	for _, extension := range spec.lookup("extensions").items() {
		config := extension.lookup("providerConfig")
		if config.lookup("kind").text() != "DNSConfig" {
			continue
		}
		for _, provider := range config.lookup("providers").items() {
			if name := provider.lookup("secretName"); name.text() != "" && !slices.Contains(known, name.text()) {
				r.add(name, TypeInvalid, "spec.resources has no resource %q%s", name.text(), suggestionHint(name.text(), known))
			}
		}
	}
	return r.findings
}
