// SPDX-License-Identifier: Apache-2.0

package schemas

const sourceSeed = "pkg/api/core/validation/seed.go"

// seedGoRules lists the Go rules of Seeds, with the reason why each is not in CUE.
func seedGoRules() []goRule {
	rule := func(name, title, doc, source string, check func(ruleInput) []finding) goRule {
		return goRule{Rule: Rule{ID: "seed/" + name, Kind: "Seed", Title: title, Doc: doc, Source: source,
			Language: "go", Severity: SeverityError, Scope: scopeObject}, check: check}
	}
	return []goRule{
		rule("networks-disjoint", "Network ranges of a seed are of its IP families and overlap with nothing",
			"Ranges must not share addresses, also not with the ranges that Gardener uses itself (240.0.0.0/8 to 244.0.0.0/8). Services have at most a /8. The rule is in Go because CUE has no arithmetic on addresses.",
			sourceSeed, checkSeedNetworkRanges).withFields("spec.networks"),
		rule("amounts", "Amounts of resources are not negative, and whole where the resource is counted",
			"Autoscaling knows cpu and memory. The rule is in Go because CUE has no arithmetic on quantities.",
			sourceSeed, checkSeedAmounts).withFields("spec.settings", "spec.volume"),
		rule("vpa-feature-gates", "Feature gates of the VerticalPodAutoscaler exist",
			"A gate that does not exist keeps the component from starting. The rule is in Go because the message names the intended gate.",
			sourceGardenGates, checkSeedVPAFeatureGates).withFields("spec.settings.verticalPodAutoscaler.featureGates"),
		rule("annotations", "Annotations of load balancers have keys that the API server accepts",
			"They are copied to Services. The rule is in Go because the API server's own function decides.",
			"k8s.io/apimachinery/pkg/api/validation, ValidateAnnotations", checkSeedAnnotations).withFields("spec.settings.loadBalancerServices"),
		rule("tolerations", "Tolerations of reserved capacity are tolerations of pods",
			"They are copied to the pods that reserve capacity. The rule is in Go because the API server's own functions decide about names.",
			"k8s.io/kubernetes/pkg/apis/core/validation, ValidateTolerations", checkSeedTolerations).withFields("spec.settings.excessCapacityReservation.configs.tolerations"),
	}
}
