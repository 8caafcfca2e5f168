package schemas

import (
	"net"
	"slices"
	"time"

	utilvalidation "k8s.io/apimachinery/pkg/util/validation"

	gardenletconfigv1alpha1 "github.com/pergola-dev/pergola/api/gardenletconfig/v1alpha1"
)

const (
	bootstrapToken   = "BootstrapToken"
	bootstrapNone    = "None"
	leastValidity    = 10 * time.Minute
	leastEntryTTL    = 30
	greatestEntryTTL = 600
)

// shootPurposes lists the purposes that Gardener supports.
var shootPurposes = [...]string{"development", "evaluation", "infrastructure", "production", "testing"}

// gardenletAccess checks the gardenlet configuration that the controller sets itself.
func (r *report) gardenletAccess(in ruleInput, gardenlet tree) {
	config := gardenlet.at("config")
	if name := config.at("seedConfig", "metadata", "name"); name.text() != "" {
		r.add(name, TypeForbidden, "must not be set: the seed has the name of the %s", in.kind.GVK.Kind)
	}
	connection := config.at("gardenClientConnection")
	if !connection.set() {
		return
	}
	bootstrap, merge := bootstrapToken, true
	if in.kind.GVK.Kind == "Gardenlet" {
		merge = false
	} else {
		if gardenlet.at("bootstrap").set() {
			bootstrap = gardenlet.at("bootstrap").text()
		}
		if gardenlet.at("mergeWithParent").set() {
			merge = gardenlet.at("mergeWithParent").is()
		}
	}
	kubeconfig := connection.at("kubeconfig")
	if bootstrap != bootstrapNone {
		if kubeconfig.text() != "" {
			r.add(kubeconfig, TypeForbidden, "must not be set, because the gardenlet gets its first access by %s", bootstrap)
		}
		return
	}
	if kubeconfig.text() == "" && !merge {
		r.add(kubeconfig, TypeRequired, "must be set, because bootstrap is None and mergeWithParent false")
	}
	for _, name := range []string{"bootstrapKubeconfig", "kubeconfigSecret"} {
		if connection.at(name).set() {
			r.add(connection.at(name), TypeForbidden, "must not be set, because bootstrap is None")
		}
	}
}

// gardenletConfig checks a GardenletConfiguration. Its seedConfig is checked as a template.
func (r *report) gardenletConfig(config tree) {
	if !config.set() {
		return
	}
	// findings are sorted later
	for field, want := range map[string]string{"apiVersion": gardenletconfigv1alpha1.APIVersion, "kind": gardenletconfigv1alpha1.Kind} {
		if written := config.at(field); written.text() != "" && written.text() != want {
			r.add(written.as(config.path), TypeInvalid, "%s is %q, but a gardenlet reads a %s of %s", field, written.text(), gardenletconfigv1alpha1.Kind, gardenletconfigv1alpha1.APIVersion)
		}
	}
	for _, name := range []string{"gardenClientConnection", "seedClientConnection", "shootClientConnection"} {
		if burst, ok := config.at(name, "burst").number(); ok && burst < 0 {
			r.add(config.at(name, "burst"), TypeInvalid, "%v is negative; it must be 0 or more", burst)
		}
	}
	r.gardenerFeatureGates(config.at("featureGates"))
	r.kubeconfigValidity(config.at("gardenClientConnection", "kubeconfigValidity"))
	r.gardenletLeader(config.at("leaderElection").as("leaderElection"))
	r.gardenletControllers(config.at("controllers"))
	if level := config.at("logLevel"); level.text() != "" {
		r.oneOf(level.as("logLevel"), "debug", "error", "info")
	}
	if format := config.at("logFormat"); format.text() != "" {
		r.oneOf(format.as("logFormat"), "json", "text")
	}
	capacity, reserved := config.at("resources", "capacity"), config.at("resources", "reserved")
	for _, name := range reserved.keys() {
		if !capacity.at(name).set() {
			r.add(reserved.at(name), TypeInvalid, "must not be set without resources.capacity.%s", name)
			continue
		}
		has, known := capacity.at(name).quantity()
		if kept, ok := reserved.at(name).quantity(); ok && known && kept.Value() > has.Value() {
			r.add(reserved.at(name), TypeInvalid, "%v is more than resources.capacity.%s, which is %v", reserved.at(name).value, name, capacity.at(name).value)
		}
	}
	r.externalIP(config)
	for _, handler := range config.at("exposureClassHandlers").items() {
		if name := handler.at("name"); len(utilvalidation.IsDNS1123Label(name.text())) > 0 {
			r.add(name, TypeInvalid, "%q %s", name.text(), labelWords)
		}
		if class := handler.at("loadBalancerService", "class"); class.set() && len(utilvalidation.IsQualifiedName(class.text())) > 0 {
			r.add(class, TypeInvalid, "%q %s", class.text(), qualifiedWords)
		}
		r.externalIP(handler)
	}
	tolerations := config.at("nodeToleration")
	r.notNegative(tolerations.at("defaultNotReadyTolerationSeconds"), tolerations.at("defaultUnreachableTolerationSeconds"))
}

func (r *report) externalIP(parent tree) {
	if ip := parent.at("sni", "ingress", "serviceExternalIP"); ip.set() && net.ParseIP(ip.text()) == nil {
		r.add(ip, TypeInvalid, "%q is no IP address such as 192.0.2.1 or 2001:db8::1", ip.text())
	}
}

func (r *report) kubeconfigValidity(validity tree) {
	r.durations(leastValidity, validity.at("validity"))
	low, high := validity.at("autoRotationJitterPercentageMin"), validity.at("autoRotationJitterPercentageMax")
	r.atLeast(low, 1)
	if high.count() > 100 {
		r.add(high, TypeInvalid, "%d must be 100 or less", high.count())
	}
	if low.set() && high.set() && low.count() >= high.count() {
		r.add(low, TypeInvalid, "%d must be less than autoRotationJitterPercentageMax, which is %d", low.count(), high.count())
	}
}

// gardenletLeader checks the leader election. Upstream reports it at the top.
func (r *report) gardenletLeader(election tree) {
	if !election.set() || !election.at("leaderElect").is() {
		return
	}
	lease, renew, retry := election.at("leaseDuration"), election.at("renewDeadline"), election.at("retryPeriod")
	for _, field := range []tree{lease, renew, retry} {
		if duration, ok := field.duration(); ok && duration <= 0 {
			r.add(field, TypeInvalid, "%s must be longer than 0", field.text())
		}
	}
	leaseFor, known := lease.duration()
	if renewFor, ok := renew.duration(); ok && known && leaseFor <= renewFor {
		r.add(lease, TypeInvalid, "%s must be longer than renewDeadline, which is %s", lease.text(), renew.text())
	}
}

func (r *report) gardenletControllers(controllers tree) {
	for _, name := range []string{"bastion", "managedSeed", "networkPolicy", "shoot", "shootCare"} {
		r.notNegative(controllers.at(name, "concurrentSyncs"))
	}
	shoot, care, managed := controllers.at("shoot"), controllers.at("shootCare"), controllers.at("managedSeed")
	if period := shoot.at("progressReportPeriod"); period.set() {
		r.durations(0, period.as(shoot.path+".progressReporterPeriod")) // as upstream names it
	}
	r.durations(0, shoot.at("retryDuration"), shoot.at("syncPeriod"), care.at("syncPeriod"), care.at("staleExtensionHealthChecks", "threshold"),
		care.at("managedResourceProgressingThreshold"), managed.at("syncPeriod"), managed.at("waitSyncPeriod"), managed.at("syncJitterPeriod"),
		controllers.at("tokenRequestorWorkloadIdentity", "tokenExpirationDuration"))
	r.within(shoot.at("dnsEntryTTLSeconds"), leastEntryTTL, greatestEntryTTL)
	for _, threshold := range care.at("conditionThresholds").items() {
		r.durations(0, threshold.at("duration"))
	}
	for _, selector := range controllers.at("networkPolicy", "additionalNamespaceSelectors").items() {
		r.labelSelector(selector)
	}
	entry := controllers.at("backupEntry")
	purposes := entry.at("deletionGracePeriodShootPurposes")
	if len(purposes.items()) > 0 && entry.at("deletionGracePeriodHours").count() <= 0 {
		r.add(purposes, TypeForbidden, "must not be set without deletionGracePeriodHours")
	}
	for _, purpose := range purposes.items() {
		if !slices.Contains(shootPurposes[:], purpose.text()) {
			r.oneOf(purpose, shootPurposes[:]...)
		}
	}
}
