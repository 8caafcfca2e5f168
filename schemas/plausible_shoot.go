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
	// mostProcesses is the maximum of a 64-bit kernel
	// (https://man7.org/linux/man-pages/man5/proc_sys_kernel.5.html, pid_max).
	mostProcesses = 4194304
	// longGrace is longer than pods take to end, in seconds.
	longGrace = 3600
	// largeLog is larger than anybody reads, in bytes.
	largeLog = 10 << 30
)

func kubeletHabits(in ruleInput) []finding {
	r := &report{}
	root := tree{value: in.object}
	for _, kubelet := range append(each(root, "spec.provider.workers[].kubernetes.kubelet"), root.at("spec", "kubernetes", "kubelet")) {
		if most := kubelet.at("podPidsLimit"); most.count() > mostProcesses {
			r.add(most, TypeInvalid, "%v is more processes than a kernel has, which are %d", most.value, mostProcesses)
		}
		if grace := kubelet.at("evictionMaxPodGracePeriod"); grace.count() > longGrace {
			r.add(grace, TypeInvalid, "%v are seconds: pods would keep a node that has no room left for more than an hour", grace.value)
		}
		if log, ok := kubelet.at("containerLogMaxSize").quantity(); ok && log.CmpInt64(largeLog) > 0 {
			r.add(kubelet.at("containerLogMaxSize"), TypeInvalid, "%v is for one file of one container: the logs would fill the disk of the node", kubelet.at("containerLogMaxSize").value)
		}
		if rate, burst := kubelet.at("registryPullQPS"), kubelet.at("registryBurst"); burst.set() && burst.count() < rate.count() {
			r.add(burst, TypeInvalid, "%v is below %v of registryPullQPS, which is never reached then", burst.value, rate.value)
		}
	}
	if tolerance := root.at("spec", "kubernetes", "kubeControllerManager", "horizontalPodAutoscaler", "tolerance"); tolerance.set() {
		if share, ok := tolerance.number(); ok && share >= 1 {
			r.add(tolerance, TypeInvalid, "%v is a share: nothing is scaled until it is off by %v times what is wanted; the default is 0.1", tolerance.value, tolerance.value)
		}
	}
	return r.findings
}

// ownLabels lists the labels of nodes that Kubernetes, the cloud or Gardener set
// (https://kubernetes.io/docs/reference/labels-annotations-taints).
var ownLabels = []string{
	"kubernetes.io/arch", "kubernetes.io/hostname", "kubernetes.io/os", "node.gardener.cloud/machine-name", "node.kubernetes.io/instance-type",
	"topology.kubernetes.io/region", "topology.kubernetes.io/zone", "worker.garden.sapcloud.io/group", "worker.gardener.cloud/cri-name",
	"worker.gardener.cloud/image-name", "worker.gardener.cloud/image-version", "worker.gardener.cloud/kubernetes-version", "worker.gardener.cloud/pool",
}

// offParameters lists kernel parameters without which pods have no traffic.
var offParameters = []string{"net.ipv4.conf.all.forwarding", "net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"}

// parameterForm is the form of the values of kernelParameters: whole numbers.
var parameterForm = regexp.MustCompile(`^-?[0-9]+([ \t]+-?[0-9]+)*$`)

func nodeHabits(in ruleInput) []finding {
	r := &report{}
	for _, worker := range each(tree{value: in.object}, "spec.provider.workers[]") {
		for _, name := range worker.at("labels").keys() {
			if slices.Contains(ownLabels, name) {
				r.add(worker.at("labels").key(name), TypeForbidden, "Kubernetes, the cloud or Gardener set this label of a node: with another value pods and volumes get to the wrong nodes")
			}
		}
		for _, name := range worker.at("sysctls").keys() {
			value := worker.at("sysctls").key(name)
			switch {
			case slices.Contains(offParameters, name) && value.text() == "0":
				r.add(value, TypeInvalid, "0 takes the traffic from all pods of the node")
			case slices.Contains(kernelParameters, name) && value.text() != "" && !parameterForm.MatchString(value.text()):
				r.add(value, TypeInvalid, "%q is no whole number, as the kernel has it", value.text())
			}
		}
	}
	return r.findings
}

func proxyAndNetwork(in ruleInput) []finding {
	r, spec := &report{}, tree{value: in.object}.at("spec")
	enabled := spec.at("kubernetes", "kubeProxy", "enabled")
	off := enabled.set() && !enabled.is()
	network := spec.at("networking")
	ebpf := network.at("providerConfig", "ebpfDataplane", "enabled")
	switch {
	case network.at("type").text() != "calico":
	case off && !ebpf.is():
		r.add(enabled, TypeInvalid, "nothing takes the place of kube-proxy, so that Services have no traffic: set spec.networking.providerConfig.ebpfDataplane.enabled, or leave kube-proxy on")
	case ebpf.is() && !off:
		r.add(ebpf, TypeInvalid, "takes the place of kube-proxy, which is on: set spec.kubernetes.kubeProxy.enabled to false")
	}
	return r.findings
}

// renamedPools reports a new pool that equals a removed one except for the name: pools cannot be
// renamed, only recreated.
func renamedPools(in ruleInput) []finding {
	r := &report{}
	former, now := each(tree{value: in.old}, "spec.provider.workers[]"), each(tree{value: in.object}, "spec.provider.workers[]")
	named := func(list []tree, name string) bool {
		return slices.ContainsFunc(list, func(w tree) bool { return w.at("name").text() == name })
	}
	for _, pool := range now {
		if named(former, pool.at("name").text()) {
			continue
		}
		for _, gone := range former {
			if !named(now, gone.at("name").text()) && equal(pool.at("machine").value, gone.at("machine").value) && equal(pool.at("zones").value, gone.at("zones").value) {
				r.add(pool.at("name"), TypeInvalid, "if this is the pool %q under another name: no pool is renamed, so that all its nodes are drained and deleted", gone.at("name").text())
				break
			}
		}
	}
	return r.findings
}

// lostIssuers reports a replaced token issuer that is not accepted any more.
func lostIssuers(at string) func(ruleInput) []finding {
	return func(in ruleInput) []finding {
		r := &report{}
		config := func(object map[string]any) tree {
			return tree{value: object}.at(strings.Split(at, ".")...).at("serviceAccountConfig")
		}
		former, now := config(in.old).at("issuer"), config(in.object)
		if former.text() != "" && former.text() != now.at("issuer").text() && !slices.Contains(now.at("acceptedIssuers").texts(), former.text()) {
			field := now.at("issuer")
			r.add(field, TypeInvalid, "tokens of the former issuer %q are valid no longer, until each is made anew: add it to acceptedIssuers", former.text())
		}
		return r.findings
	}
}

// everybody lists groups that contain all users of a cluster.
var everybody = []string{"system:authenticated", "system:serviceaccounts", "system:unauthenticated"}

func openProjects(in ruleInput) []finding {
	r := &report{}
	for _, member := range each(tree{value: in.object}, "spec.members[]") {
		if name := member.at("name"); slices.Contains(everybody, name.text()) {
			r.add(name, TypeInvalid, "the group %q is everybody: each user gets the roles of the member", name.text())
		} else if words := requests.Subject(name.text()); words != "" {
			r.add(name, TypeNotSupported, "%s", words)
		}
	}
	return r.findings
}

// anonymousAccess reports an API server that answers requests without credentials.
func anonymousAccess(at string) func(ruleInput) []finding {
	return func(in ruleInput) []finding {
		r := &report{}
		if field := (tree{value: in.object}).at(strings.Split(at, ".")...).at("enableAnonymousAuthentication"); field.is() {
			r.add(field, TypeInvalid, "requests without credentials are answered for all paths; leave it out, and name those that are meant in structuredAuthentication (anonymous.conditions)")
		}
		return r.findings
	}
}

// securityLevels lists the levels of PodSecurity, the strictest last
// (https://kubernetes.io/docs/concepts/security/pod-security-standards).
var securityLevels = []string{"", "privileged", "baseline", "restricted"}

// lessProtection reports a change after which an API server records or refuses less.
func lessProtection(at string) func(ruleInput) []finding {
	return func(in ruleInput) []finding {
		r := &report{}
		server := func(object map[string]any) tree { return tree{value: object}.at(strings.Split(at, ".")...) }
		now, old := server(in.object), server(in.old)
		const policy = "auditPolicy"
		if was := old.at("auditConfig", policy, "configMapRef", "name"); was.text() != "" && !now.at("auditConfig", policy, "configMapRef", "name").set() {
			r.add(now.at("auditConfig"), TypeInvalid, "the audit policy %q is taken away: requests are recorded by the default policy only", was.text())
		}
		plugin := func(server tree) tree {
			for _, plugin := range server.at("admissionPlugins").items() {
				if plugin.at("name").text() == "PodSecurity" && !plugin.at("disabled").is() {
					return plugin
				}
			}
			return tree{}
		}
		was, is := plugin(old).at("config", "defaults", "enforce"), plugin(now).at("config", "defaults", "enforce")
		// an unknown level is ignored
		if level := slices.Index(securityLevels, is.text()); level >= 0 && slices.Index(securityLevels, was.text()) > level {
			if is.path == "" || !plugin(now).set() {
				is = now.at("admissionPlugins")
			}
			r.add(is, TypeInvalid, "PodSecurity refuses less: it enforced the level %q, and now %q", was.text(), cmp.Or(is.text(), "privileged"))
		}
		return r.findings
	}
}

// referredKinds lists the kinds of resources, by apiVersion, that Shoots bring to their control
// planes.
var referredKinds = map[string][]string{"v1": {"ConfigMap", "Secret"}, "security.gardener.cloud/v1alpha1": {"WorkloadIdentity"}}

func resourceKinds(in ruleInput) []finding {
	r := &report{}
	for _, ref := range each(tree{value: in.object}, "spec.resources[].resourceRef") {
		known, kind := referredKinds[ref.at("apiVersion").text()], ref.at("kind")
		if guess := suggest.Within(kind.text(), known, 2); guess != "" && !slices.Contains(known, kind.text()) {
			r.add(kind, TypeNotSupported, "there is no kind %q; did you mean %q?", kind.text(), guess)
		}
	}
	return r.findings
}

func eviction(in ruleInput) []finding {
	r := &report{}
	root := tree{value: in.object}
	for _, kubelet := range append(each(root, "spec.provider.workers[].kubernetes.kubelet"), root.at("spec", "kubernetes", "kubelet")) {
		hard, soft := kubelet.at("evictionHard"), kubelet.at("evictionSoft")
		for _, name := range soft.keys() {
			first, second := soft.at(name), hard.at(name)
			if less, comparable := isBelow(first.text(), second.text()); comparable && less {
				r.add(first, TypeInvalid, "%s is below %s of evictionHard, which evicts first", first.text(), second.text())
			}
		}
	}
	return r.findings
}

const fewPods = 10

func roomForPods(in ruleInput) []finding {
	r := &report{}
	root := tree{value: in.object}
	for _, kubelet := range append(each(root, "spec.provider.workers[].kubernetes.kubelet"), root.at("spec", "kubernetes", "kubelet")) {
		if most := kubelet.at("maxPods"); most.set() && most.count() >= 0 && most.count() < fewPods {
			r.add(most, TypeInvalid, "%v leaves no room beside the pods of the system; nodes have 110 pods by default", most.value)
		}
	}
	return r.findings
}

// isBelow compares two thresholds if both are percentages or both are amounts.
func isBelow(a, b string) (less, comparable bool) {
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

func shootNames(in ruleInput) []finding {
	r := &report{}
	near := func(at tree, name string, known []string) {
		if meant := suggest.Within(name, known, 2); meant != "" && !slices.Contains(known, name) {
			r.add(at, TypeNotSupported, "%q is not known; did you mean %q?", name, meant)
		}
	}
	for _, worker := range each(tree{value: in.object}, "spec.provider.workers[]") {
		for _, condition := range worker.at("machineControllerManager", "nodeConditions").items() {
			near(condition, condition.text(), nodeConditions)
			if condition.text() == "Ready" {
				r.add(condition, TypeInvalid, "a machine is replaced while a condition of the list is true, and Ready is true of each healthy node: leave it out")
			}
		}
		for _, name := range worker.at("sysctls").keys() {
			near(worker.at("sysctls").key(name), name, kernelParameters)
		}
	}
	return r.findings
}

// everyMinute reports a schedule that begins with an asterisk, which is every minute of an hour.
func everyMinute(in ruleInput) []finding {
	r := &report{}
	for _, schedule := range each(tree{value: in.object}, "spec.hibernation.schedules[]") {
		for _, name := range []string{"start", "end"} {
			if field := schedule.at(name); CronProblem(field.text()) == "" && strings.HasPrefix(field.text(), "* ") {
				r.add(field, TypeInvalid, "%q comes each minute, since its first field is *; write the minute, such as 0", field.text())
			}
		}
	}
	return r.findings
}

func dnsSecrets(in ruleInput) []finding {
	r, spec := &report{}, tree{value: in.object}.at("spec")
	var known []string
	for _, resource := range spec.at("resources").items() {
		known = append(known, resource.at("name").text())
	}
	for _, extension := range spec.at("extensions").items() {
		config := extension.at("providerConfig")
		if config.at("kind").text() != "DNSConfig" {
			continue
		}
		for _, provider := range config.at("providers").items() {
			if name := provider.at("secretName"); name.text() != "" && !slices.Contains(known, name.text()) {
				r.add(name, TypeInvalid, "spec.resources has no resource %q%s", name.text(), meant(name.text(), known))
			}
		}
	}
	return r.findings
}
