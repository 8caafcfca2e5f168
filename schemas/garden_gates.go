package schemas

import "slices"

// vpaFeatureGates lists the feature gates of the VerticalPodAutoscaler that Gardener deploys.
// Source: pkg/utils/validation/features/vpa.go.
var vpaFeatureGates = [...]string{"CPUStartupBoost", "InPlace", "PerVPAConfig"}

func (r *report) vpaFeatureGates(gates tree) {
	for _, name := range gates.keys() {
		if !slices.Contains(vpaFeatureGates[:], name) {
			r.add(gates.at(name), TypeInvalid, "the VerticalPodAutoscaler has no feature gate %q; it has %s%s", name, quotedList(vpaFeatureGates[:]), meant(name, vpaFeatureGates[:]))
		}
	}
}

func gardenVPAFeatureGates(in ruleInput) []finding {
	r := &report{}
	r.vpaFeatureGates(tree{value: in.object}.at("spec", "runtimeCluster", "settings", "verticalPodAutoscaler", "featureGates"))
	return r.findings
}

// gardenerGate is a feature gate of Gardener. A locked gate cannot be changed any more.
type gardenerGate struct {
	name       string
	on, locked bool
}

// gardenerGates lists the feature gates of all components. Source: pkg/features/features.go. The
// last two graduated and components may lack them; setting them to their value is harmless.
var gardenerGates = [...]gardenerGate{
	{name: "BackupEntryForGarden", on: true},
	{name: "CloudProfileCapabilities", on: true},
	{name: "CustomDNSServerInNodeLocalDNS", on: true},
	{name: "DefaultSeccompProfile"},
	{name: "DisableNginxIngressInGarden", on: true},
	{name: "DisableNginxIngressInSeed", on: true},
	{name: "DisableNginxIngressInShoot"},
	{name: "DoNotCopyBackupCredentials", on: true, locked: true},
	{name: "InPlaceNodeUpdates"},
	{name: "IstioTLSTermination", on: true},
	{name: "LiveControlPlaneMigration"},
	{name: "OpenTelemetryCollector", on: true},
	{name: "PrometheusHealthChecks"},
	{name: "RemoveHTTPProxyLegacyPort"},
	{name: "RemoveVali"},
	{name: "VPNBondingModeRoundRobin"},
	{name: "VersionClassificationLifecycle"},
	{name: "VictoriaLogsBackend"},
	{name: "UseUnifiedHTTPProxyPort", on: true, locked: true},
	{name: "VPAInPlaceUpdates", on: true, locked: true},
}

func findGardenerGate(name string) (gardenerGate, bool) {
	i := slices.IndexFunc(gardenerGates[:], func(g gardenerGate) bool { return g.name == name })
	if i < 0 {
		return gardenerGate{}, false
	}
	return gardenerGates[i], true
}

// gardenerGateOn reports whether a feature gate of gardener-apiserver is on, according to the
// Garden of the landscape.
func (s *surroundings) gardenerGateOn(name string) bool {
	gate, _ := findGardenerGate(name)
	if s == nil {
		return gate.on
	}
	for _, object := range s.objects("Garden") {
		garden, _ := object.(map[string]any)
		if set := gardenComponent(garden, "gardenerAPIServer").at("featureGates", name); set.set() {
			return set.is()
		}
	}
	return gate.on
}

func gardenGardenerFeatureGates(in ruleInput) []finding {
	r := &report{}
	for _, component := range []string{"gardenerAPIServer", "gardenerControllerManager", "gardenerScheduler"} {
		r.gardenerFeatureGates(gardenComponent(in.object, component).at("featureGates"))
	}
	return r.findings
}

// gardenerFeatureGates reports gates with which a component of Gardener does not start: unknown
// ones, and locked ones set to another value.
func (r *report) gardenerFeatureGates(gates tree) {
	names := make([]string, len(gardenerGates))
	for i, gate := range gardenerGates {
		names[i] = gate.name
	}
	for _, name := range gates.keys() {
		field := gates.at(name)
		gate, known := findGardenerGate(name)
		if !known {
			hint := meant(name, names)
			if hint == "" {
				hint = "; remove the line: the component does not start with it"
			}
			r.add(field, TypeForbidden, "Gardener has no feature gate %q%s", name, hint)
		} else if gate.locked && field.is() != gate.on {
			r.add(field, TypeForbidden, "must not be %t: the feature is locked to %t; remove the line", field.is(), gate.on)
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

func gardenGardenerAdmissionPlugins(in ruleInput) []finding {
	r := &report{}
	for _, plugin := range gardenComponent(in.object, "gardenerAPIServer").at("admissionPlugins").items() {
		name := plugin.at("name")
		switch {
		case !name.set():
		case name.text() == "":
			r.add(name, TypeRequired, "must name the admission plugin")
		default:
			r.oneOf(name, gardenerAdmissionPlugins[:]...)
		}
	}
	return r.findings
}

// gardenGardenerAdmissionConfigs reports configurations with which the plugins of
// gardener-apiserver do not start.
func gardenGardenerAdmissionConfigs(in ruleInput) []finding {
	return admissionConfigurations(gardenComponent(in.object, "gardenerAPIServer"), "").refused.findings
}

// gardenGardenerAdmissionIgnored reports configurations that the plugins of gardener-apiserver
// ignore.
func gardenGardenerAdmissionIgnored(in ruleInput) []finding {
	return admissionConfigurations(gardenComponent(in.object, "gardenerAPIServer"), "").ignored.findings
}
