// SPDX-License-Identifier: Apache-2.0

package schemas

import "slices"

// vpaFeatureGates lists the feature gates of the VerticalPodAutoscaler that Gardener deploys.
// Source: pkg/utils/validation/features/vpa.go.
var vpaFeatureGates = [...]string{"CPUStartupBoost", "InPlace", "PerVPAConfig"}

func (r *findingCollector) checkVPAFeatureGates(gates fieldValue) {
	for _, name := range gates.keys() {
		if !slices.Contains(vpaFeatureGates[:], name) {
			r.add(gates.lookup(name), TypeInvalid, "the VerticalPodAutoscaler has no feature gate %q; it has %s%s", name, quotedList(vpaFeatureGates[:]), suggestionHint(name, vpaFeatureGates[:]))
		}
	}
}

func checkGardenVPAFeatureGates(in ruleInput) []finding {
	r := &findingCollector{}
	r.checkVPAFeatureGates(fieldValue{value: in.object}.lookup("spec", "runtimeCluster", "settings", "verticalPodAutoscaler", "featureGates"))
	return r.findings
}

// gardenerGate is a feature gate of Gardener. A locked gate can no longer be changed.
type gardenerGate struct {
	name            string
	enabled, locked bool
}

// gardenerGates lists the feature gates of all components. Source: pkg/features/features.go. The
// last two graduated and components may lack them; setting them to their value is harmless.
var gardenerGates = [...]gardenerGate{
	{name: "BackupEntryForGarden", enabled: true},
	{name: "CloudProfileCapabilities", enabled: true},
	{name: "CustomDNSServerInNodeLocalDNS", enabled: true},
	{name: "DefaultSeccompProfile"},
	{name: "DisableNginxIngressInGarden", enabled: true},
	{name: "DisableNginxIngressInSeed", enabled: true},
	{name: "DisableNginxIngressInShoot"},
	{name: "DoNotCopyBackupCredentials", enabled: true, locked: true},
	{name: "InPlaceNodeUpdates"},
	{name: "IstioTLSTermination", enabled: true},
	{name: "LiveControlPlaneMigration"},
	{name: "OpenTelemetryCollector", enabled: true},
	{name: "PrometheusHealthChecks"},
	{name: "RemoveHTTPProxyLegacyPort"},
	{name: "RemoveVali"},
	{name: "VPNBondingModeRoundRobin"},
	{name: "VersionClassificationLifecycle"},
	{name: "VictoriaLogsBackend"},
	{name: "UseUnifiedHTTPProxyPort", enabled: true, locked: true},
	{name: "VPAInPlaceUpdates", enabled: true, locked: true},
}

func findGardenerGate(name string) (gardenerGate, bool) {
	i := slices.IndexFunc(gardenerGates[:], func(g gardenerGate) bool { return g.name == name })
	if i < 0 {
		return gardenerGate{}, false
	}
	return gardenerGates[i], true
}

// isGardenerGateOn reports whether a feature gate of gardener-apiserver is on, according to the
// Garden of the landscape.
func (s *landscapeIndex) isGardenerGateOn(name string) bool {
	gate, _ := findGardenerGate(name)
	if s == nil {
		return gate.enabled
	}
	for _, object := range s.objects("Garden") {
		garden, _ := object.(map[string]any)
		if set := gardenComponent(garden, "gardenerAPIServer").lookup("featureGates", name); set.isSet() {
			return set.isTrue()
		}
	}
	return gate.enabled
}

func checkGardenerFeatureGates(in ruleInput) []finding {
	r := &findingCollector{}
	for _, component := range []string{"gardenerAPIServer", "gardenerControllerManager", "gardenerScheduler"} {
		r.checkGardenerFeatureGates(gardenComponent(in.object, component).lookup("featureGates"))
	}
	return r.findings
}

// checkGardenerFeatureGates reports gates with which a component of Gardener does not start:
// unknown ones, and locked ones set to another value.
func (r *findingCollector) checkGardenerFeatureGates(gates fieldValue) {
	names := make([]string, len(gardenerGates))
	for i, gate := range gardenerGates {
		names[i] = gate.name
	}
	for _, name := range gates.keys() {
		field := gates.lookup(name)
		gate, known := findGardenerGate(name)
		if !known {
			hint := suggestionHint(name, names)
			if hint == "" {
				hint = "; remove the line: the component does not start with it"
			}
			r.add(field, TypeForbidden, "Gardener has no feature gate %q%s", name, hint)
		} else if gate.locked && field.isTrue() != gate.enabled {
			r.add(field, TypeForbidden, "must not be %t: the feature is locked to %t; remove the line", field.isTrue(), gate.enabled)
		}
	}
}

// gardenerAdmissionPlugins lists the plugins of gardener-apiserver. Source: plugin/pkg/plugins.go.
var gardenerAdmissionPlugins = [...]string{
	"BackupBucketValidator", "Bastion", "ControllerRegistrationResources", "CustomVerbAuthorizer", "DeletionConfirmation",
	"ExtensionLabels", "ExtensionValidator", "FinalizerRemoval", "ManagedSeed", "ManagedSeedShoot", "MutatingAdmissionPolicy",
	"MutatingAdmissionWebhook", "NamespaceLifecycle", "NamespacedCloudProfileValidator", "ProjectMutator", "ResourceQuota",
	"ResourceReferenceManager", "SeedMutator", "SeedValidator", "ShootDNS", "ShootDNSRewriting", "ShootExposureClass",
	"ShootManagedSeed", "ShootMutator", "ShootNodeLocalDNSEnabledByDefault", "ShootQuotaValidator", "ShootResourceReservation",
	"ShootTolerationRestriction", "ShootVPAEnabledByDefault", "ShootValidator", "ValidatingAdmissionPolicy", "ValidatingAdmissionWebhook",
}

func checkGardenerAdmissionPlugins(in ruleInput) []finding {
	r := &findingCollector{}
	for _, plugin := range gardenComponent(in.object, "gardenerAPIServer").lookup("admissionPlugins").items() {
		name := plugin.lookup("name")
		switch {
		case !name.isSet():
		case name.text() == "":
			r.add(name, TypeRequired, "must name the admission plugin")
		default:
			r.requireOneOf(name, gardenerAdmissionPlugins[:]...)
		}
	}
	return r.findings
}

// checkGardenerAdmissionConfigs reports configurations with which the plugins of
// gardener-apiserver do not start.
func checkGardenerAdmissionConfigs(in ruleInput) []finding {
	return admissionConfigurations(gardenComponent(in.object, "gardenerAPIServer"), "").rejected.findings
}

// checkIgnoredGardenerAdmissionConfigs reports configurations that the plugins of
// gardener-apiserver ignore.
func checkIgnoredGardenerAdmissionConfigs(in ruleInput) []finding {
	return admissionConfigurations(gardenComponent(in.object, "gardenerAPIServer"), "").ignored.findings
}
