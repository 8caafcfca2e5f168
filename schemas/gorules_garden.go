package schemas

const sourceGardenGates = "pkg/features/features.go, plugin/pkg/plugins.go, pkg/utils/validation/features/vpa.go"

// gardenGoRules are the rules of Gardens in Go, with the reason why each is not in CUE.
func gardenGoRules() []goRule {
	rule := func(name, title, doc, source string, check func(ruleInput) []finding) goRule {
		return goRule{Rule: Rule{ID: "garden/" + name, Kind: "Garden", Title: title, Doc: doc, Source: source,
			In: "go", Severity: SeverityError, Scope: scopeObject}, check: check}
	}
	return []goRule{
		rule("networks-disjoint", "Network ranges of the runtime cluster and the virtual garden do not overlap",
			"Addresses must be told apart by their range. In Go, because CUE has no arithmetic on addresses.",
			sourceGardenNetworks, gardenNetworks).about("spec.runtimeCluster.networking.nodes", "spec.runtimeCluster.networking.pods", "spec.virtualCluster.networking.services"),
		rule("hosts-unique", "Every name of a garden leads to one component",
			"API server, dashboard, discovery server and monitoring share a gateway, which tells them apart by the name that is called. The API server is api.DOMAIN and gardener.DOMAIN of each virtual domain; monitoring is below the first ingress domain, and so are dashboard and discovery server, unless they have a domain of their own. In Go, because the names are made of several lists.",
			"ours: two Gateways for one host, of which one is not served", gardenHosts).about("spec.virtualCluster.gardener.gardenerDashboard.domain.name", "spec.virtualCluster.gardener.gardenerDiscoveryServer.domain.name"),
		rule("host-lengths", "Names that are made of the domains of a garden are not too long",
			"A name of DNS has at most 253 characters, and at most 63 between two dots. Names of components are put before a domain, and a DNSRecord is called as its name with the type of the provider behind it, which has at most 253 characters, too. Choose a shorter domain. In Go, because the names are made of several lists.",
			"ours: the API server of the runtime cluster refuses the DNSRecord, and DNS the name", gardenHostLengths).about("spec.runtimeCluster.ingress.domains.name", "spec.virtualCluster.dns.domains.name", "spec.virtualCluster.gardener.gardenerDashboard.domain.name", "spec.virtualCluster.gardener.gardenerDiscoveryServer.domain.name"),
		rule("autoscaling", "Limits of autoscaling are amounts of cpu and memory, and not below what a component needs",
			"The main etcd needs 300M of memory, the one for events 60M. In Go, because CUE has no arithmetic on quantities.",
			"pkg/api/core/validation/shoot.go", gardenAutoscaling).about("spec.runtimeCluster.settings.verticalPodAutoscaler.maxAllowed", "spec.virtualCluster.etcd.events.autoscaling", "spec.virtualCluster.etcd.main.autoscaling"),
		rule("kubeconfig-expiration", "Kubeconfigs for administrators of Shoots expire between one hour and 2^32 seconds",
			"shootAdminKubeconfigMaxExpiration is the longest time a user may ask for. In Go, because CUE does not compare durations.",
			sourceGardenNetworks, gardenKubeconfigExpiration).about("spec.virtualCluster.gardener.gardenerAPIServer.shootAdminKubeconfigMaxExpiration"),
		rule("vpa-feature-gates", "Feature gates of the VerticalPodAutoscaler exist",
			"A gate that does not exist keeps the component from starting. In Go, because the message names the gate that was meant.",
			sourceGardenGates, gardenVPAFeatureGates).about("spec.runtimeCluster.settings.verticalPodAutoscaler.featureGates"),
		rule("gardener-feature-gates", "Feature gates of Gardener's components exist, and locked ones stay as they are",
			"A gate that does not exist keeps the component from starting. In Go, because the message names the gate that was meant.",
			sourceGardenGates, gardenGardenerFeatureGates).about("spec.virtualCluster.gardener.gardenerAPIServer.featureGates", "spec.virtualCluster.gardener.gardenerControllerManager.featureGates", "spec.virtualCluster.gardener.gardenerScheduler.featureGates"),
		rule("gardener-admission-plugins", "Admission plugins of gardener-apiserver exist",
			"A plugin that does not exist keeps gardener-apiserver from starting. In Go, because the message names the plugin that was meant.",
			sourceGardenGates, gardenGardenerAdmissionPlugins).about("spec.virtualCluster.gardener.gardenerAPIServer.admissionPlugins.name"),
		rule("ingress-config", "Settings of the ingress controller are lines of a ConfigMap",
			"Each is a key of the ConfigMap of the controller, with a text; the ConfigMap has room for 1 MiB. In Go, because Kubernetes' own function decides.",
			"pkg/operator/controller/garden/garden/components.go", gardenIngressConfig).about("spec.runtimeCluster.ingress.controller.providerConfig"),
		rule("quota-selectors", "Selectors of default quotas are selectors of labels",
			"A quota is for the projects whose labels match. In Go, because the API server's own function decides.",
			"k8s.io/apimachinery/pkg/apis/meta/v1/validation", gardenQuotaSelectors).about("spec.virtualCluster.gardener.gardenerControllerManager.defaultProjectQuotas.projectSelector"),
		rule("dashboard-issuer", "The issuer of the dashboard's tokens is an https URL",
			"No user, query or fragment is allowed in it. In Go, because CUE has no parser of URLs.",
			"pkg/api/core/validation/shoot.go", gardenDashboardIssuer).about("spec.virtualCluster.gardener.gardenerDashboard.oidcConfig.issuerURL"),
		rule("kube-apiserver", "The configuration of kube-apiserver holds the rules that Shoots have, too",
			"Feature gates, admission plugins, APIs, issuers, encryption and limits fit the version of Kubernetes. In Go, because it is shared with Shoots.",
			"pkg/api/core/validation/shoot.go, ValidateKubeAPIServer", gardenAPIServer).about("spec.virtualCluster.kubernetes.kubeAPIServer"),
		rule("controller-manager-gates", "Feature gates of kube-controller-manager exist in its version",
			"A gate that does not exist keeps the component from starting. In Go, because the table is shared with Shoots.",
			"pkg/utils/validation/features/featuregates.go", gardenControllerManagerGates).about("spec.virtualCluster.kubernetes.kubeControllerManager.featureGates"),
		rule("operations", "Operations on a Garden exist, fit each other and the state of the Garden",
			"A rotation is completed after it was prepared, and started after the one before it was completed. In Go, because phases and sets of resources are compared.",
			sourceGardenNetworks, gardenOperations).about("metadata.annotations[gardener.cloud/operation]"),
		rule("encryption-update", "The encryption is changed in one way at a time, and not during a rotation",
			"Objects are written again with every change; a second change meanwhile would make some of them unreadable. In Go, because sets of resources are compared.",
			sourceGardenNetworks, gardenEncryptionUpdate).about("spec.virtualCluster.gardener.gardenerAPIServer.encryptionConfig", "spec.virtualCluster.kubernetes.kubeAPIServer.encryptionConfig"),
		rule("kubernetes-version-update", "The version of the virtual garden never goes back and skips no minor version",
			"Stored objects are converted from one minor version to the next. In Go, because versions are compared by their parts.",
			"pkg/api/core/validation/shoot.go", gardenVersionUpdate).about("spec.virtualCluster.kubernetes.version"),
	}
}
