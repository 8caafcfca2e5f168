package schemas

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pergola-dev/pergola/internal/suggest"
)

// plausibilityGoRules lists warnings about well-formed values that hardly anybody means. The API
// and the components accept them.
func plausibilityGoRules() []goRule {
	const garden = "spec.virtualCluster."
	rules := []goRule{
		newGoWarning("CloudProfile", "machine-amounts", "Machine types have amounts that machines have, and volumes a class that is counted",
			"Gi is meant where Mi is written. In Go, because CUE has no arithmetic on quantities.",
			"ours", checkMachineAmounts).withFields("spec.machineTypes", "spec.volumeTypes"),
		newGoWarning("Shoot", "schedules-once", "A schedule of hibernation comes once in its hour",
			"An asterisk for the minute is each minute. In Go, because it is about schedules that are valid.",
			"ours", checkEveryMinuteSchedules).withFields("spec.hibernation.schedules"),
		newGoWarning("Seed", "volume-purposes", "Providers of volumes are for a purpose that is read",
			"A purpose nearly like one is that of nothing. In Go, because the message names the one that was meant.",
			"pkg/component/etcd of upstream", checkVolumePurpose).withFields("spec.volume.providers"),
		newGoWarning("Secret", "credential-keys", "Credentials of a provider have the keys that its extension reads",
			"A key of nearly the same name is not read. In Go, because no value may get into a message.",
			"docs of github.com/gardener/gardener-extension-provider-*", checkMisnamedCredentials).withFields("data", "stringData"),
		newGoWarning("Extension", "admission-charts", "The admission of an Extension has a chart for each cluster",
			"The same chart in both clusters is a slip: one has the webhooks, the other one what runs them. In Go, because two fields are compared.",
			"ours", checkSameAdmissionChart).withFields("spec.deployment.admission"),
		newGoWarning("CloudProfile", "supported-versions", "A cloud profile has a version of Kubernetes that is supported",
			"A version without a classification is supported. Without any, versions that are written in part cannot be completed, and maintenance raises none. In Go, because it is about all items of a list.",
			"plugin/pkg/shoot/mutator", checkSupportedVersions).withFields("spec.kubernetes.versions"),
		newGoWarning("CredentialsBinding", "provider-labels", "The labels of a binding are those of its provider",
			"By them bindings are found. In Go, because names of labels are compared.",
			"pkg/controllermanager/controller/credentialsbinding", checkBindingLabels).withFields("metadata.labels"),
		newGoWarning("Shoot", "plausible-times", "Times are as long as what they are for",
			"A machine is not healthy again within seconds. In Go, because CUE has no arithmetic on durations.",
			"ours", shortTimesCheck("Shoot")).withFields("spec.kubernetes", "spec.provider.workers.machineControllerManager"),
		newGoWarning("Garden", "plausible-times", "Times are as long as what they are for",
			"A certificate or a session that ends within seconds is of no use. In Go, because CUE has no arithmetic on durations.",
			"ours", shortTimesCheck("Garden")).withFields(garden+"kubernetes", garden+"gardener.gardenerDashboard"),
		newGoWarning("Shoot", "eviction", "Soft thresholds of an eviction come before the hard ones",
			"Otherwise the hard threshold evicts at once, and the soft one is never met. In Go, because CUE has no arithmetic on quantities.",
			"https://kubernetes.io/docs/concepts/scheduling-eviction/node-pressure-eviction", checkEvictionThresholds).withFields("spec.kubernetes.kubelet", "spec.provider.workers.kubernetes.kubelet"),
		newGoWarning("Shoot", "known-names", "Conditions of nodes and kernel parameters have a name that is known",
			"A name nearly like a known one is that of nothing. In Go, because the message names the one that was meant.",
			"github.com/kubernetes/node-problem-detector/config, https://docs.kernel.org/admin-guide/sysctl", checkShootNames).withFields("spec.provider.workers.machineControllerManager.nodeConditions", "spec.provider.workers.sysctls"),
		newGoWarning("Shoot", "infrastructure-networks", "Zones and networks of the infrastructure fit the pools and each other",
			"The infrastructure has a subnet for each zone with machines; subnets are apart and within the network. In Go, because ranges are compared.",
			"pkg/apis/aws/validation and pkg/apis/alicloud/validation of upstream's extensions", checkInfrastructureNetworks).withFields("spec.provider.infrastructureConfig", "spec.provider.workers.zones"),
		newGoWarning("Shoot", "infrastructure-fits", "Configurations of the provider fit the pools and networks",
			"Nodes are in the network for nodes, and settings of volumes are for volumes of the pool. In Go, because ranges and lists are compared.",
			"pkg/apis/*/validation of upstream's extensions", checkInfrastructureFit).withFields("spec.provider"),
		newGoWarning("Shoot", "infrastructure-stays", "Networks of the infrastructure stay",
			"Machines and load balancers are in them. In Go, because two states are compared.",
			"pkg/apis/*/validation of upstream's extensions", checkInfrastructureUpdate).withFields("spec.provider.infrastructureConfig", "spec.provider.controlPlaneConfig").withChangeClass(),
		newGoWarning("WorkloadIdentity", "target-config", "The configuration of a WorkloadIdentity is one that its extension accepts",
			"Only the extension hands out tokens. In Go, because the message must not have the value of credentials.",
			"pkg/apis/gcp/validation of upstream's extension", checkWorkloadIdentityTarget).withFields("spec.targetSystem.providerConfig"),
		newGoWarning("Garden", "admin-expiration", "Kubeconfigs with all rights end soon",
			"None of them can be taken back. In Go, because CUE has no arithmetic on durations.",
			"ours", checkAdminKubeconfigExpiration).withFields(garden + "gardener.gardenerAPIServer.shootAdminKubeconfigMaxExpiration"),
		newGoWarning("Garden", "zones-kept", "The runtime cluster keeps its zones",
			"Volumes of etcd and of Prometheus are in a zone. In Go, because two states are compared.",
			"ours", checkRemovedZones).withFields("spec.runtimeCluster.provider.zones").withChangeClass(),
		newGoWarning("Shoot", "resource-kinds", "Resources that a Shoot refers to are of a kind that there is",
			"A kind nearly like one is none. In Go, because the message names the one that was meant.",
			"ours", checkResourceKinds).withFields("spec.resources"),
		newGoWarning("Garden", "server-names", "Certificates are for names of the virtual garden",
			"Clients ask for a name below its domains. In Go, because names are compared.",
			"ours", checkServerCertificateNames).withFields(garden + "kubernetes.kubeAPIServer.sni"),
		newGoWarning("Shoot", "kubelet-habits", "Numbers of kubelets and of the autoscaler of pods are those that are meant",
			"A number in the wrong unit is taken as it is. In Go, because fields are compared.",
			"ours", checkKubeletPlausibility).withFields("spec.kubernetes.kubelet", "spec.provider.workers.kubernetes.kubelet", "spec.kubernetes.kubeControllerManager.horizontalPodAutoscaler"),
		newGoWarning("Shoot", "node-habits", "Labels and kernel parameters of nodes are for pools to set",
			"Some labels are set by Kubernetes, the cloud and Gardener. In Go, because the message depends on the name.",
			"https://kubernetes.io/docs/reference/labels-annotations-taints", checkNodePlausibility).withFields("spec.provider.workers.labels", "spec.provider.workers.sysctls"),
		newGoWarning("Shoot", "service-proxy", "Something forwards the traffic of Services, and one thing only",
			"kube-proxy and the data plane of the network do the same. In Go, because two fields are compared.",
			"https://github.com/gardener/gardener-extension-networking-calico/blob/master/docs/usage/usage.md", checkProxyAndNetwork).withFields("spec.kubernetes.kubeProxy", "spec.networking.providerConfig"),
		newGoWarning("Shoot", "renamed-pools", "A pool keeps its name",
			"Machines belong to a pool by its name. In Go, because lists of two states are compared.",
			"pkg/apis/extensions of upstream, Worker", checkRenamedPools).withFields("spec.provider.workers").withChangeClass(),
		newGoWarning("Project", "open-members", "Members of a Project are somebody",
			"A group of everybody opens the Project to each user. In Go, because the message depends on the name.",
			"ours", checkOpenProjects).withFields("spec.members"),
		newGoWarning("CloudProfile", "image-regions", "Images of the provider are for regions of the profile, each once",
			"An image of another region is for nothing; one of another architecture does not start. In Go, because lists are compared.",
			"pkg/apis/aws/validation of upstream's extension", checkImageRegions).withFields("spec.providerConfig"),
		newGoWarning("Shoot", "dns-secrets", "Providers of the DNS service have a Secret that spec.resources names",
			"The extension finds the Secret by the name there. In Go, because two lists are compared.",
			"docs of github.com/gardener/gardener-extension-shoot-dns-service", checkDNSSecrets).withFields("spec.extensions", "spec.resources"),
		newGoWarning("Shoot", "pod-ranges", "The network for pods has a range for each node",
			"A node without a range gets no pods. Make the network larger, or the range of a node smaller. In Go, because CUE has no arithmetic on ranges.",
			"https://kubernetes.io/docs/reference/command-line-tools-reference/kube-controller-manager", checkPodRangeSize).withFields("spec.networking.pods"),
		newGoWarning("Shoot", "room-for-pods", "Nodes have room for pods",
			"The system alone has more than ten pods on a node. In Go, because the number is in several places.",
			"ours", checkPodCapacity).withFields("spec.kubernetes.kubelet", "spec.provider.workers.kubernetes.kubelet"),
		newGoWarning("Seed", "blocked-networks", "Ranges that are blocked are not those of the seed itself",
			"Network policies keep pods from what is blocked. In Go, because ranges are compared.",
			"pkg/component/networkpolicies of upstream", blockedNetworksCheck("spec.networks")).withFields("spec.networks.blockCIDRs"),
		newGoWarning("Garden", "blocked-networks", "Ranges that are blocked are not those of the runtime cluster itself",
			"Network policies keep pods from what is blocked. In Go, because ranges are compared.",
			"pkg/component/networkpolicies of upstream", blockedNetworksCheck("spec.runtimeCluster.networking")).withFields("spec.runtimeCluster.networking.blockCIDRs"),
		newGoWarning("CloudProfile", "unavailable-types", "Types that a zone does not have are types of the profile",
			"The entry for another type is for nothing. In Go, because the message names the type that was meant.",
			"ours", checkUnavailableTypes).withFields("spec.regions.zones"),
		newGoWarning("CloudProfile", "image-mappings", "The configuration of the provider has each machine image",
			"The extension cannot make a machine of another version. In Go, because two lists are compared.",
			"pkg/apis/*/validation/cloudprofile.go of upstream's extensions", checkImageMappings).withFields("spec.machineImages", "spec.providerConfig"),
		newGoWarning("Seed", "shoot-defaults", "Default networks for Shoots are not those of the seed",
			"A Shoot that takes them is refused. In Go, because ranges are compared.",
			"plugin/pkg/shoot/validator", checkSeedShootDefaults).withFields("spec.networks.shootDefaults"),
		newGoWarning("Garden", "runtime-families", "Ranges of the runtime cluster are of its IP families",
			"A range of another family is that of nothing. In Go, because ranges are parsed.",
			"pkg/apis/operator/v1alpha1, RuntimeNetworking", checkRuntimeFamilies).withFields("spec.runtimeCluster.networking"),
		newGoWarning("Garden", "etcd-size", "The storage of an etcd holds an etcd",
			"An etcd has up to 8 GiB of data, and room for snapshots beside it. In Go, because CUE has no arithmetic on quantities.",
			"https://etcd.io/docs/v3.5/dev-guide/limits", checkEtcdSize).withFields(garden + "etcd"),
		newGoWarning("Garden", "allowed-amounts", "The least of a component is not above the most that the autoscaler allows",
			"The autoscaler stays below its bound, whatever the component asks for. In Go, because CUE has no arithmetic on quantities.",
			"ours", checkAllowedAmounts).withFields("spec.virtualCluster"),
		newGoWarning("Garden", "dns-providers-used", "A DNS provider of the Garden is that of a domain",
			"A provider that no domain names makes no record. In Go, because domains are in several places.",
			"ours", checkDNSProvidersUsed).withFields("spec.dns.providers"),
		newGoWarning("Garden", "dashboard-addresses", "Addresses of the dashboard have the form that it reads",
			"The API of GitHub is a URL, and hosts of terminals are names. In Go, because URLs are parsed.",
			"ours", checkDashboardAddresses).withFields(garden + "gardener.gardenerDashboard"),
	}
	for _, kind := range []string{"ControllerRegistration", "Extension"} {
		rules = append(rules, newGoWarning(kind, "reconcile-timeouts", "An extension has time",
			"A timeout in the wrong unit fails each Shoot. In Go, because CUE has no arithmetic on durations.",
			"ours", reconcileTimeoutsCheck("spec.resources")).withFields("spec.resources"))
	}
	// callers sort the rules
	for kind, at := range map[string]string{"Shoot": "spec.kubernetes.kubeAPIServer", "Garden": garden + "kubernetes.kubeAPIServer"} {
		rules = append(rules, newGoWarning(kind, "issuer-replaced", "Tokens of the former issuer are accepted while they are in use",
			"Pods get new tokens within an hour or a day. In Go, because two states are compared.",
			"https://kubernetes.io/docs/reference/command-line-tools-reference/kube-apiserver, --service-account-issuer", lostIssuersCheck(at)).withFields(at+".serviceAccountConfig").withChangeClass(),
			newGoWarning(kind, "anonymous-access", "Requests without credentials are answered where that is meant",
				"Anonymous access to all paths lets anybody ask. In Go, because Garden and Shoot share it.",
				"https://kubernetes.io/docs/reference/access-authn-authz/authentication/#anonymous-requests", anonymousAccessCheck(at)).withFields(at+".enableAnonymousAuthentication"),
			newGoWarning(kind, "less-protection", "A change does not take protection away unseen",
				"It is said once, by the change itself. In Go, because two states are compared.",
				"ours", protectionLossCheck(at)).withFields(at+".admissionPlugins", at+".auditConfig").withChangeClass())
	}
	for _, kind := range slices.Sorted(maps.Keys(configKinds)) {
		fields := []string{}
		for _, at := range slices.Sorted(maps.Keys(configKinds[kind])) {
			fields = append(fields, strings.ReplaceAll(at, "[]", ""))
		}
		rules = append(rules, newGoWarning(kind, "config-kinds", "Each configuration of a provider is of the kind that its place is for",
			"The extension reads no other one. In Go, because it is about several fields.",
			"docs of github.com/gardener/gardener-extension-provider-*", configKindsCheck(kind)).withFields(fields...))
	}
	for _, kind := range []string{"CloudProfile", "NamespacedCloudProfile"} {
		rules = append(rules, newGoWarning(kind, "earlier-expiration", "A version does not expire earlier than it did",
			"An update that was planned by the former time comes too late. In Go, because versions of two states are compared.",
			"https://github.com/gardener/gardener/blob/master/docs/usage/shoot/shoot_versions.md", checkEarlierExpiration).withFields("spec.kubernetes.versions", "spec.machineImages").withChangeClass())
	}
	for _, kind := range slices.Sorted(maps.Keys(chartReferenceFields)) {
		at := chartReferenceFields[kind]
		rules = append(rules, newGoWarning(kind, "chart-version", "A chart in a registry has a version",
			"Without a tag or a digest it is another chart tomorrow, without a change in Git. In Go, because references are parsed.",
			"ours", chartVersionsCheck(at)).withFields(at...))
		rules = append(rules, newGoWarning(kind, "chart-older", "The chart of an extension is not older than before",
			"A downgrade is seldom meant. In Go, because versions are compared.",
			"ours", olderChartsCheck(at)).withFields(at...).withChangeClass())
		if len(at) > 1 {
			rules = append(rules, newGoWarning(kind, "chart-versions", "Charts of an extension are of one version",
				"An extension and its admission are released together. In Go, because versions are compared.",
				"ours", mixedChartsCheck(at)).withFields(at[1:]...))
		}
	}
	for _, kind := range gardenletKinds() {
		rules = append(rules, newGoWarning(kind.name, "plausible-deployment", "A gardenlet runs, in a version that is known",
			"A tag that moves is another gardenlet tomorrow. In Go, because Gardenlets and ManagedSeeds share it.",
			"ours", func(in ruleInput) []finding { return checkGardenletDeploymentPlausibility(in, kind.at) }).withFields(strings.Join(append(slices.Clone(kind.at), "deployment"), ".")))
		at := append(slices.Clone(kind.at), "config")
		rules = append(rules, newGoWarning(kind.name, "plausible-config", "Thresholds and times of a gardenlet are those that are meant",
			"A threshold is for a condition that is checked, and no controller works in milliseconds. In Go, because the message names the condition that was meant.",
			"ours", func(in ruleInput) []finding {
				return checkGardenletPlausibility(fieldValue{value: in.object}.lookup(at...))
			}).withFields(strings.Join(at, ".")))
	}
	return rules
}

// plausibleMinimumTimes holds the times below which a field most likely has the wrong unit.
var plausibleMinimumTimes = map[string]map[string]time.Duration{
	"Garden": {
		"spec.virtualCluster.kubernetes.kubeAPIServer.eventTTL":                           time.Minute,
		"spec.virtualCluster.kubernetes.kubeControllerManager.certificateSigningDuration": time.Hour,
		"spec.virtualCluster.gardener.gardenerDashboard.oidcConfig.sessionLifetime":       time.Minute,
		"spec.virtualCluster.gardener.gardenerDashboard.gitHub.pollInterval":              time.Second,
	},
	"Shoot": {
		"spec.kubernetes.kubeAPIServer.eventTTL": time.Minute,
		// time of two reports of a kubelet
		"spec.kubernetes.kubeControllerManager.nodeMonitorGracePeriod":            20 * time.Second,
		"spec.provider.workers[].machineControllerManager.machineCreationTimeout": time.Minute,
		"spec.provider.workers[].machineControllerManager.machineDrainTimeout":    time.Minute,
		"spec.provider.workers[].machineControllerManager.machineHealthTimeout":   time.Minute,
	},
}

func shortTimesCheck(kind string) func(ruleInput) []finding {
	return func(in ruleInput) []finding {
		r := &findingCollector{}
		for path, least := range plausibleMinimumTimes[kind] { // findings are sorted later
			for _, field := range fieldsAtPath(fieldValue{value: in.object}, path) {
				if duration, ok := field.duration(); ok && duration >= 0 && duration < least {
					r.add(field, TypeInvalid, "%s is hardly meant: it is less than %s", field.text(), least)
				}
			}
		}
		return r.findings
	}
}

// fieldsAtPath returns the fields at a path, in which name[] means every item of a list.
func fieldsAtPath(t fieldValue, path string) []fieldValue {
	found := []fieldValue{t}
	for step := range strings.SplitSeq(path, ".") {
		name, isList := strings.CutSuffix(step, "[]")
		var next []fieldValue
		for _, one := range found {
			if one = one.lookup(name); isList {
				next = append(next, one.items()...)
			} else {
				next = append(next, one)
			}
		}
		found = next
	}
	return found
}

// volumePurposes lists the purposes that Gardener reads.
var volumePurposes = []string{"etcd-main"}

func checkVolumePurpose(in ruleInput) []finding {
	r := &findingCollector{}
	for _, purpose := range fieldsAtPath(fieldValue{value: in.object}, "spec.volume.providers[].purpose") {
		if meant := suggest.ClosestWithin(purpose.text(), volumePurposes, 5); meant != "" && meant != purpose.text() {
			r.add(purpose, TypeNotSupported, "nobody reads this purpose; did you mean %q?", meant)
		}
	}
	return r.findings
}
