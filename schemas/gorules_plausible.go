// SPDX-License-Identifier: Apache-2.0

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
		newGoWarning("CloudProfile", "machine-amounts", "Machine types have plausible amounts, and volumes have a class that quotas count",
			"Mi is most likely a mistake for Gi. The rule is in Go because CUE has no arithmetic on quantities.",
			"ours", checkMachineAmounts).withFields("spec.machineTypes", "spec.volumeTypes"),
		newGoWarning("Shoot", "schedules-once", "A hibernation schedule does not run every minute",
			"An asterisk for the minute means every minute. The rule is in Go because it is about valid schedules.",
			"ours", checkEveryMinuteSchedules).withFields("spec.hibernation.schedules"),
		newGoWarning("Seed", "volume-purposes", "Volume providers have a known purpose",
			"A misspelt purpose has no effect. The rule is in Go because the message names the intended one.",
			"pkg/component/etcd of upstream", checkVolumePurpose).withFields("spec.volume.providers"),
		newGoWarning("Secret", "credential-keys", "Credentials of a provider have the keys that its extension reads",
			"The extension ignores a key with nearly the same name. The rule is in Go because no value may get into a message.",
			"docs of github.com/gardener/gardener-extension-provider-*", checkMisnamedCredentials).withFields("data", "stringData"),
		newGoWarning("Extension", "admission-charts", "The admission of an Extension has a chart for each cluster",
			"The same chart in both clusters is a mistake: one has the webhooks, the other one their server. The rule is in Go because two fields are compared.",
			"ours", checkSameAdmissionChart).withFields("spec.deployment.admission"),
		newGoWarning("CloudProfile", "supported-versions", "A cloud profile has a version of Kubernetes that is supported",
			"A version without a classification is supported. Without one, shortened versions cannot be completed, and maintenance raises none. The rule is in Go because it is about all items of a list.",
			"plugin/pkg/shoot/mutator", checkSupportedVersions).withFields("spec.kubernetes.versions"),
		newGoWarning("CredentialsBinding", "provider-labels", "The labels of a binding name its provider",
			"Bindings are found by these labels. The rule is in Go because names of labels are compared.",
			"pkg/controllermanager/controller/credentialsbinding", checkBindingLabels).withFields("metadata.labels"),
		newGoWarning("Shoot", "plausible-times", "Times are long enough for their purpose",
			"A machine is not healthy again within seconds. The rule is in Go because CUE has no arithmetic on durations.",
			"ours", shortTimesCheck("Shoot")).withFields("spec.kubernetes", "spec.provider.workers.machineControllerManager"),
		newGoWarning("Garden", "plausible-times", "Times are long enough for their purpose",
			"A certificate or a session that ends within seconds is useless. The rule is in Go because CUE has no arithmetic on durations.",
			"ours", shortTimesCheck("Garden")).withFields(garden+"kubernetes", garden+"gardener.gardenerDashboard"),
		newGoWarning("Shoot", "eviction", "Soft thresholds of an eviction come before the hard ones",
			"Otherwise the hard threshold evicts at once, and the soft one is never met. The rule is in Go because CUE has no arithmetic on quantities.",
			"https://kubernetes.io/docs/concepts/scheduling-eviction/node-pressure-eviction", checkEvictionThresholds).withFields("spec.kubernetes.kubelet", "spec.provider.workers.kubernetes.kubelet"),
		newGoWarning("Shoot", "known-names", "Conditions of nodes and kernel parameters have a known name",
			"A misspelt name has no effect. The rule is in Go because the message names the intended one.",
			"github.com/kubernetes/node-problem-detector/config, https://docs.kernel.org/admin-guide/sysctl", checkShootNames).withFields("spec.provider.workers.machineControllerManager.nodeConditions", "spec.provider.workers.sysctls"),
		newGoWarning("Shoot", "infrastructure-networks", "Zones and networks of the infrastructure fit the pools and each other",
			"The infrastructure has a subnet for each zone with machines; subnets are apart and within the network. The rule is in Go because ranges are compared.",
			"pkg/apis/aws/validation and pkg/apis/alicloud/validation of upstream's extensions", checkInfrastructureNetworks).withFields("spec.provider.infrastructureConfig", "spec.provider.workers.zones"),
		newGoWarning("Shoot", "infrastructure-fits", "Configurations of the provider fit the pools and networks",
			"Nodes are in the network for nodes, and settings of volumes are for volumes of the pool. The rule is in Go because ranges and lists are compared.",
			"pkg/apis/*/validation of upstream's extensions", checkInfrastructureFit).withFields("spec.provider"),
		newGoWarning("Shoot", "infrastructure-stays", "Networks of the infrastructure do not change",
			"Machines and load balancers are in them. The rule is in Go because two states are compared.",
			"pkg/apis/*/validation of upstream's extensions", checkInfrastructureUpdate).withFields("spec.provider.infrastructureConfig", "spec.provider.controlPlaneConfig").withChangeClass(),
		newGoWarning("WorkloadIdentity", "target-config", "The configuration of a WorkloadIdentity is one that its extension accepts",
			"Only the extension hands out tokens. The rule is in Go because the message must not have the value of credentials.",
			"pkg/apis/gcp/validation of upstream's extension", checkWorkloadIdentityTarget).withFields("spec.targetSystem.providerConfig"),
		newGoWarning("Garden", "admin-expiration", "Kubeconfigs with all rights expire soon",
			"They cannot be revoked. The rule is in Go because CUE has no arithmetic on durations.",
			"ours", checkAdminKubeconfigExpiration).withFields(garden + "gardener.gardenerAPIServer.shootAdminKubeconfigMaxExpiration"),
		newGoWarning("Garden", "zones-kept", "The runtime cluster keeps its zones",
			"Volumes of etcd and of Prometheus are in a zone. The rule is in Go because two states are compared.",
			"ours", checkRemovedZones).withFields("spec.runtimeCluster.provider.zones").withChangeClass(),
		newGoWarning("Shoot", "resource-kinds", "Resources that a Shoot refers to have an existing kind",
			"A misspelt kind does not exist. The rule is in Go because the message names the intended one.",
			"ours", checkResourceKinds).withFields("spec.resources"),
		newGoWarning("Garden", "server-names", "Certificates are for names of the virtual garden",
			"Clients ask for a name below its domains. The rule is in Go because names are compared.",
			"ours", checkServerCertificateNames).withFields(garden + "kubernetes.kubeAPIServer.sni"),
		newGoWarning("Shoot", "kubelet-habits", "Numbers of kubelets and of the pod autoscaler are plausible",
			"A number in the wrong unit is accepted. The rule is in Go because fields are compared.",
			"ours", checkKubeletPlausibility).withFields("spec.kubernetes.kubelet", "spec.provider.workers.kubernetes.kubelet", "spec.kubernetes.kubeControllerManager.horizontalPodAutoscaler"),
		newGoWarning("Shoot", "node-habits", "Pools may set the labels and kernel parameters of nodes",
			"Some labels are set by Kubernetes, the cloud and Gardener. The rule is in Go because the message depends on the name.",
			"https://kubernetes.io/docs/reference/labels-annotations-taints", checkNodePlausibility).withFields("spec.provider.workers.labels", "spec.provider.workers.sysctls"),
		newGoWarning("Shoot", "service-proxy", "Exactly one component forwards the traffic of Services",
			"kube-proxy and the data plane of the network do the same. The rule is in Go because two fields are compared.",
			"https://github.com/gardener/gardener-extension-networking-calico/blob/master/docs/usage/usage.md", checkProxyAndNetwork).withFields("spec.kubernetes.kubeProxy", "spec.networking.providerConfig"),
		newGoWarning("Shoot", "renamed-pools", "A pool keeps its name",
			"Machines belong to a pool by its name. The rule is in Go because lists of two states are compared.",
			"pkg/apis/extensions of upstream, Worker", checkRenamedPools).withFields("spec.provider.workers").withChangeClass(),
		newGoWarning("Project", "open-members", "Members of a Project are not all users",
			"A group of all users opens the Project to each user. The rule is in Go because the message depends on the name.",
			"ours", checkOpenProjects).withFields("spec.members"),
		newGoWarning("CloudProfile", "image-regions", "Images of the provider are for regions of the profile, each once",
			"An image of another region has no effect; an image of another architecture does not start. The rule is in Go because lists are compared.",
			"pkg/apis/aws/validation of upstream's extension", checkImageRegions).withFields("spec.providerConfig"),
		newGoWarning("Shoot", "dns-secrets", "Providers of the DNS service have a Secret that spec.resources names",
			"The extension finds the Secret by the name there. The rule is in Go because two lists are compared.",
			"docs of github.com/gardener/gardener-extension-shoot-dns-service", checkDNSSecrets).withFields("spec.extensions", "spec.resources"),
		newGoWarning("Shoot", "pod-ranges", "The network for pods has a range for each node",
			"A node without a range gets no pods. Make the network larger, or the range of a node smaller. The rule is in Go because CUE has no arithmetic on ranges.",
			"https://kubernetes.io/docs/reference/command-line-tools-reference/kube-controller-manager", checkPodRangeSize).withFields("spec.networking.pods"),
		newGoWarning("Shoot", "room-for-pods", "Nodes have room for pods",
			"The system alone has more than ten pods on a node. The rule is in Go because the number is in several places.",
			"ours", checkPodCapacity).withFields("spec.kubernetes.kubelet", "spec.provider.workers.kubernetes.kubelet"),
		newGoWarning("Seed", "blocked-networks", "Blocked ranges are not ranges of the seed itself",
			"Network policies stop pods from reaching blocked ranges. The rule is in Go because ranges are compared.",
			"pkg/component/networkpolicies of upstream", blockedNetworksCheck("spec.networks")).withFields("spec.networks.blockCIDRs"),
		newGoWarning("Garden", "blocked-networks", "Blocked ranges are not ranges of the runtime cluster itself",
			"Network policies stop pods from reaching blocked ranges. The rule is in Go because ranges are compared.",
			"pkg/component/networkpolicies of upstream", blockedNetworksCheck("spec.runtimeCluster.networking")).withFields("spec.runtimeCluster.networking.blockCIDRs"),
		newGoWarning("CloudProfile", "unavailable-types", "Unavailable types of a zone are types of the profile",
			"An entry for another type has no effect. The rule is in Go because the message names the intended type.",
			"ours", checkUnavailableTypes).withFields("spec.regions.zones"),
		newGoWarning("CloudProfile", "image-mappings", "The configuration of the provider has each machine image",
			"The extension cannot create a machine of another version. The rule is in Go because two lists are compared.",
			"pkg/apis/*/validation/cloudprofile.go of upstream's extensions", checkImageMappings).withFields("spec.machineImages", "spec.providerConfig"),
		newGoWarning("Seed", "shoot-defaults", "Default networks for Shoots are not networks of the seed",
			"A Shoot with such networks is rejected. The rule is in Go because ranges are compared.",
			"plugin/pkg/shoot/validator", checkSeedShootDefaults).withFields("spec.networks.shootDefaults"),
		newGoWarning("Garden", "runtime-families", "Ranges of the runtime cluster are of its IP families",
			"A range of another family has no effect. The rule is in Go because ranges are parsed.",
			"pkg/apis/operator/v1alpha1, RuntimeNetworking", checkRuntimeFamilies).withFields("spec.runtimeCluster.networking"),
		newGoWarning("Garden", "etcd-size", "The storage of an etcd is large enough",
			"An etcd has up to 8 GiB of data, and room for snapshots beside it. The rule is in Go because CUE has no arithmetic on quantities.",
			"https://etcd.io/docs/v3.5/dev-guide/limits", checkEtcdSize).withFields(garden + "etcd"),
		newGoWarning("Garden", "allowed-amounts", "The minimum of a component is not above the maximum of the autoscaler",
			"The autoscaler stays below its maximum, even if the component requests more. The rule is in Go because CUE has no arithmetic on quantities.",
			"ours", checkAllowedAmounts).withFields("spec.virtualCluster"),
		newGoWarning("Garden", "dns-providers-used", "A domain names each DNS provider of the Garden",
			"A provider that no domain names makes no record. The rule is in Go because domains are in several places.",
			"ours", checkDNSProvidersUsed).withFields("spec.dns.providers"),
		newGoWarning("Garden", "dashboard-addresses", "Addresses of the dashboard have the form that it reads",
			"The API of GitHub is a URL, and hosts of terminals are names. The rule is in Go because URLs are parsed.",
			"ours", checkDashboardAddresses).withFields(garden + "gardener.gardenerDashboard"),
	}
	for _, kind := range []string{"ControllerRegistration", "Extension"} {
		rules = append(rules, newGoWarning(kind, "reconcile-timeouts", "An extension has enough time",
			"A timeout in the wrong unit fails each Shoot. The rule is in Go because CUE has no arithmetic on durations.",
			"ours", reconcileTimeoutsCheck("spec.resources")).withFields("spec.resources"))
	}
	// callers sort the rules
	for kind, at := range map[string]string{"Shoot": "spec.kubernetes.kubeAPIServer", "Garden": garden + "kubernetes.kubeAPIServer"} {
		rules = append(rules, newGoWarning(kind, "issuer-replaced", "Tokens of the previous issuer are accepted while they are in use",
			"Pods get new tokens within an hour or a day. The rule is in Go because two states are compared.",
			"https://kubernetes.io/docs/reference/command-line-tools-reference/kube-apiserver, --service-account-issuer", lostIssuersCheck(at)).withFields(at+".serviceAccountConfig").withChangeClass(),
			newGoWarning(kind, "anonymous-access", "Anonymous requests are allowed only where intended",
				"Anonymous access to all paths answers everyone. The rule is in Go because Garden and Shoot share it.",
				"https://kubernetes.io/docs/reference/access-authn-authz/authentication/#anonymous-requests", anonymousAccessCheck(at)).withFields(at+".enableAnonymousAuthentication"),
			newGoWarning(kind, "less-protection", "A change does not remove protection unnoticed",
				"It is reported once, for the change itself. The rule is in Go because two states are compared.",
				"ours", protectionLossCheck(at)).withFields(at+".admissionPlugins", at+".auditConfig").withChangeClass())
	}
	for _, kind := range slices.Sorted(maps.Keys(configKinds)) {
		fields := []string{}
		for _, at := range slices.Sorted(maps.Keys(configKinds[kind])) {
			fields = append(fields, strings.ReplaceAll(at, "[]", ""))
		}
		rules = append(rules, newGoWarning(kind, "config-kinds", "Each provider configuration has the kind that its field requires",
			"The extension reads no other one. The rule is in Go because it is about several fields.",
			"docs of github.com/gardener/gardener-extension-provider-*", configKindsCheck(kind)).withFields(fields...))
	}
	for _, kind := range []string{"CloudProfile", "NamespacedCloudProfile"} {
		rules = append(rules, newGoWarning(kind, "earlier-expiration", "A version does not expire earlier than it did",
			"An update that was planned for the previous time comes too late. The rule is in Go because versions of two states are compared.",
			"https://github.com/gardener/gardener/blob/master/docs/usage/shoot/shoot_versions.md", checkEarlierExpiration).withFields("spec.kubernetes.versions", "spec.machineImages").withChangeClass())
	}
	for _, kind := range slices.Sorted(maps.Keys(chartReferenceFields)) {
		at := chartReferenceFields[kind]
		rules = append(rules, newGoWarning(kind, "chart-version", "A chart in a registry has a version",
			"Without a tag or a digest, the chart can change without a change in Git. The rule is in Go because references are parsed.",
			"ours", chartVersionsCheck(at)).withFields(at...))
		rules = append(rules, newGoWarning(kind, "chart-older", "The chart of an extension is not older than before",
			"A downgrade is seldom intended. The rule is in Go because versions are compared.",
			"ours", olderChartsCheck(at)).withFields(at...).withChangeClass())
		if len(at) > 1 {
			rules = append(rules, newGoWarning(kind, "chart-versions", "Charts of an extension have one version",
				"An extension and its admission are released together. The rule is in Go because versions are compared.",
				"ours", mixedChartsCheck(at)).withFields(at[1:]...))
		}
	}
	for _, kind := range gardenletKinds() {
		rules = append(rules, newGoWarning(kind.name, "plausible-deployment", "A gardenlet runs, in a fixed version",
			"A moving tag can change the gardenlet without a change in Git. The rule is in Go because Gardenlets and ManagedSeeds share it.",
			"ours", func(in ruleInput) []finding { return checkGardenletDeploymentPlausibility(in, kind.at) }).withFields(strings.Join(append(slices.Clone(kind.at), "deployment"), ".")))
		at := append(slices.Clone(kind.at), "config")
		rules = append(rules, newGoWarning(kind.name, "plausible-config", "Thresholds and times of a gardenlet are plausible",
			"A threshold is for a condition that is checked, and no controller works in milliseconds. The rule is in Go because the message names the intended condition.",
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
					r.add(field, TypeInvalid, "%s is probably a mistake: it is less than %s", field.text(), least)
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
			r.add(purpose, TypeNotSupported, "no component reads this purpose; did you mean %q?", meant)
		}
	}
	return r.findings
}
