// SPDX-License-Identifier: Apache-2.0

package schemas

const sourceProfile = "pkg/api/core/validation/cloudprofile.go, utils.go"

// cloudProfileGoRules lists the Go rules of CloudProfiles, with the reason why each is not in CUE.
func cloudProfileGoRules() []goRule {
	rule := func(name, title, doc string, check func(ruleInput) []finding) goRule {
		return goRule{Rule: Rule{ID: "cloudprofile/" + name, Kind: "CloudProfile", Title: title, Doc: doc, Source: sourceProfile,
			Language: "go", Severity: SeverityError, Scope: scopeObject}, check: check}
	}
	return []goRule{
		rule("kubernetes-versions", "Kubernetes versions are valid, with stages in order and one supported for each minor",
			"The newest version does not expire. Lifecycles need a feature gate of gardener-apiserver. The rule is in Go because versions and times are compared.", checkProfileKubernetesVersions).withFields("spec.kubernetes.versions"),
		rule("image-versions", "Machine image versions are semantic, with stages in order and one supported for each minor",
			"Lifecycles need a feature gate of gardener-apiserver. The rule is in Go because versions and times are compared.", checkProfileImageVersions).withFields("spec.machineImages"),
		rule("capability-definitions", "Capabilities have names and values, and architecture is one of them",
			"Findings name a capability as a field of machineCapabilities, as upstream does. The rule is in Go because CUE has no way to give a value another path.", checkCapabilityDefinitions).withFields("spec.machineCapabilities"),
		rule("capability-uses", "Machine types and images use the capabilities that are defined",
			"A machine has one architecture. The rule is in Go because the message names the intended value.", checkCapabilityUses).withFields("spec.machineImages.versions.architectures", "spec.machineImages.versions.capabilityFlavors", "spec.machineTypes.architecture", "spec.machineTypes.capabilities"),
		rule("amounts", "Amounts of machine types and volumes are not negative",
			"The rule is in Go because CUE has no arithmetic on quantities.", checkProfileAmounts).withFields("spec.machineTypes", "spec.volumeTypes"),
		rule("selectors", "The seed selector and the labels of regions are valid",
			"The rule is in Go because the API server's own function decides.", checkProfileSelectors).withFields("spec.regions.labels", "spec.seedSelector"),
		rule("ca-bundle", "The CA bundle is a certificate",
			"Nodes trust it. The rule is in Go because certificates are parsed.", checkProfileCABundle).withFields("spec.caBundle"),
	}
}
