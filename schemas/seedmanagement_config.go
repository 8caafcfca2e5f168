// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"net"
	"slices"
	"time"

	utilvalidation "k8s.io/apimachinery/pkg/util/validation"

	gardenletconfigv1alpha1 "github.com/pergola-dev/pergola/api/gardenletconfig/v1alpha1"
)

const (
	bootstrapToken        = "BootstrapToken"
	bootstrapNone         = "None"
	minKubeconfigValidity = 10 * time.Minute
	minDNSEntryTTL        = 30
	maxDNSEntryTTL        = 600
)

// shootPurposes lists the purposes that Gardener supports.
var shootPurposes = [...]string{"development", "evaluation", "infrastructure", "production", "testing"}

// checkGardenletAccess checks the gardenlet configuration that the controller sets itself.
func (r *findingCollector) checkGardenletAccess(in ruleInput, gardenlet fieldValue) {
	config := gardenlet.lookup("config")
	if name := config.lookup("seedConfig", "metadata", "name"); name.text() != "" {
		r.add(name, TypeForbidden, "must not be set: the seed has the name of the %s", in.kind.GVK.Kind)
	}
	connection := config.lookup("gardenClientConnection")
	if !connection.isSet() {
		return
	}
	bootstrap, merge := bootstrapToken, true
	if in.kind.GVK.Kind == "Gardenlet" {
		merge = false
	} else {
		if gardenlet.lookup("bootstrap").isSet() {
			bootstrap = gardenlet.lookup("bootstrap").text()
		}
		if gardenlet.lookup("mergeWithParent").isSet() {
			merge = gardenlet.lookup("mergeWithParent").isTrue()
		}
	}
	kubeconfig := connection.lookup("kubeconfig")
	if bootstrap != bootstrapNone {
		if kubeconfig.text() != "" {
			r.add(kubeconfig, TypeForbidden, "must not be set, because the gardenlet gets its first access through %s", bootstrap)
		}
		return
	}
	if kubeconfig.text() == "" && !merge {
		r.add(kubeconfig, TypeRequired, "must be set, because bootstrap is None and mergeWithParent false")
	}
	for _, name := range []string{"bootstrapKubeconfig", "kubeconfigSecret"} {
		if connection.lookup(name).isSet() {
			r.add(connection.lookup(name), TypeForbidden, "must not be set, because bootstrap is None")
		}
	}
}

// checkGardenletConfig checks a GardenletConfiguration. Its seedConfig is checked as a template.
func (r *findingCollector) checkGardenletConfig(config fieldValue) {
	if !config.isSet() {
		return
	}
	// findings are sorted later
	for field, want := range map[string]string{"apiVersion": gardenletconfigv1alpha1.APIVersion, "kind": gardenletconfigv1alpha1.Kind} {
		if written := config.lookup(field); written.text() != "" && written.text() != want {
			r.add(written.withPath(config.path), TypeInvalid, "%s is %q, but a gardenlet reads a %s of %s", field, written.text(), gardenletconfigv1alpha1.Kind, gardenletconfigv1alpha1.APIVersion)
		}
	}
	for _, name := range []string{"gardenClientConnection", "seedClientConnection", "shootClientConnection"} {
		if burst, ok := config.lookup(name, "burst").number(); ok && burst < 0 {
			r.add(config.lookup(name, "burst"), TypeInvalid, "%v is negative; it must be 0 or more", burst)
		}
	}
	r.checkGardenerFeatureGates(config.lookup("featureGates"))
	r.checkKubeconfigValidity(config.lookup("gardenClientConnection", "kubeconfigValidity"))
	r.checkGardenletLeaderElection(config.lookup("leaderElection").withPath("leaderElection"))
	r.checkGardenletControllers(config.lookup("controllers"))
	if level := config.lookup("logLevel"); level.text() != "" {
		r.requireOneOf(level.withPath("logLevel"), "debug", "error", "info")
	}
	if format := config.lookup("logFormat"); format.text() != "" {
		r.requireOneOf(format.withPath("logFormat"), "json", "text")
	}
	capacity, reserved := config.lookup("resources", "capacity"), config.lookup("resources", "reserved")
	for _, name := range reserved.keys() {
		if !capacity.lookup(name).isSet() {
			r.add(reserved.lookup(name), TypeInvalid, "must not be set without resources.capacity.%s", name)
			continue
		}
		has, known := capacity.lookup(name).quantity()
		if kept, ok := reserved.lookup(name).quantity(); ok && known && kept.Value() > has.Value() {
			r.add(reserved.lookup(name), TypeInvalid, "%v is more than resources.capacity.%s, which is %v", reserved.lookup(name).value, name, capacity.lookup(name).value)
		}
	}
	r.checkExternalIP(config)
	for _, handler := range config.lookup("exposureClassHandlers").items() {
		if name := handler.lookup("name"); len(utilvalidation.IsDNS1123Label(name.text())) > 0 {
			r.add(name, TypeInvalid, "%q %s", name.text(), dnsLabelMessage)
		}
		if class := handler.lookup("loadBalancerService", "class"); class.isSet() && len(utilvalidation.IsQualifiedName(class.text())) > 0 {
			r.add(class, TypeInvalid, "%q %s", class.text(), qualifiedNameMessage)
		}
		r.checkExternalIP(handler)
	}
	tolerations := config.lookup("nodeToleration")
	r.requireNonNegative(tolerations.lookup("defaultNotReadyTolerationSeconds"), tolerations.lookup("defaultUnreachableTolerationSeconds"))
}

func (r *findingCollector) checkExternalIP(parent fieldValue) {
	if ip := parent.lookup("sni", "ingress", "serviceExternalIP"); ip.isSet() && net.ParseIP(ip.text()) == nil {
		r.add(ip, TypeInvalid, "%q is not an IP address such as 192.0.2.1 or 2001:db8::1", ip.text())
	}
}

func (r *findingCollector) checkKubeconfigValidity(validity fieldValue) {
	r.requireMinimumDurations(minKubeconfigValidity, validity.lookup("validity"))
	low, high := validity.lookup("autoRotationJitterPercentageMin"), validity.lookup("autoRotationJitterPercentageMax")
	r.requireMinimum(low, 1)
	if high.integer() > 100 {
		r.add(high, TypeInvalid, "%d must be 100 or less", high.integer())
	}
	if low.isSet() && high.isSet() && low.integer() >= high.integer() {
		r.add(low, TypeInvalid, "%d must be less than autoRotationJitterPercentageMax, which is %d", low.integer(), high.integer())
	}
}

// checkGardenletLeaderElection checks the leader election. Upstream reports it at the top.
func (r *findingCollector) checkGardenletLeaderElection(election fieldValue) {
	if !election.isSet() || !election.lookup("leaderElect").isTrue() {
		return
	}
	lease, renew, retry := election.lookup("leaseDuration"), election.lookup("renewDeadline"), election.lookup("retryPeriod")
	for _, field := range []fieldValue{lease, renew, retry} {
		if duration, ok := field.duration(); ok && duration <= 0 {
			r.add(field, TypeInvalid, "%s must be longer than 0", field.text())
		}
	}
	leaseFor, known := lease.duration()
	if renewFor, ok := renew.duration(); ok && known && leaseFor <= renewFor {
		r.add(lease, TypeInvalid, "%s must be longer than renewDeadline, which is %s", lease.text(), renew.text())
	}
}

func (r *findingCollector) checkGardenletControllers(controllers fieldValue) {
	for _, name := range []string{"bastion", "managedSeed", "networkPolicy", "shoot", "shootCare"} {
		r.requireNonNegative(controllers.lookup(name, "concurrentSyncs"))
	}
	shoot, care, managed := controllers.lookup("shoot"), controllers.lookup("shootCare"), controllers.lookup("managedSeed")
	if period := shoot.lookup("progressReportPeriod"); period.isSet() {
		// as upstream names it
		r.requireMinimumDurations(0, period.withPath(shoot.path+".progressReporterPeriod"))
	}
	r.requireMinimumDurations(0, shoot.lookup("retryDuration"), shoot.lookup("syncPeriod"), care.lookup("syncPeriod"), care.lookup("staleExtensionHealthChecks", "threshold"),
		care.lookup("managedResourceProgressingThreshold"), managed.lookup("syncPeriod"), managed.lookup("waitSyncPeriod"), managed.lookup("syncJitterPeriod"),
		controllers.lookup("tokenRequestorWorkloadIdentity", "tokenExpirationDuration"))
	r.requireRange(shoot.lookup("dnsEntryTTLSeconds"), minDNSEntryTTL, maxDNSEntryTTL)
	for _, threshold := range care.lookup("conditionThresholds").items() {
		r.requireMinimumDurations(0, threshold.lookup("duration"))
	}
	for _, selector := range controllers.lookup("networkPolicy", "additionalNamespaceSelectors").items() {
		r.checkLabelSelector(selector)
	}
	entry := controllers.lookup("backupEntry")
	purposes := entry.lookup("deletionGracePeriodShootPurposes")
	if len(purposes.items()) > 0 && entry.lookup("deletionGracePeriodHours").integer() <= 0 {
		r.add(purposes, TypeForbidden, "must not be set without deletionGracePeriodHours")
	}
	for _, purpose := range purposes.items() {
		if !slices.Contains(shootPurposes[:], purpose.text()) {
			r.requireOneOf(purpose, shootPurposes[:]...)
		}
	}
}
