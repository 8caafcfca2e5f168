// SPDX-License-Identifier: Apache-2.0

package schemas

// checkNamespacedVersions checks the versions of a NamespacedCloudProfile. The versions of its
// parent are unknown here, so it does not check for the newest or the only supported version.
func checkNamespacedVersions(in ruleInput) []finding {
	r, spec := &findingCollector{}, fieldValue{value: in.object}.lookup("spec")
	lifecycles := in.landscape.isGardenerGateOn("VersionClassificationLifecycle")
	for _, version := range spec.lookup("kubernetes", "versions").items() {
		if text := version.lookup("version").text(); !kubernetesVersionPattern.MatchString(text) {
			r.add(version.lookup("version").withPath(version.path), TypeInvalid, "the version %q does not have the form 1.34.1", text)
		}
		r.checkClassifications(version, lifecycles)
	}
	r.checkImageVersionsParse(spec.lookup("machineImages"))
	for _, image := range spec.lookup("machineImages").items() {
		for _, version := range image.lookup("versions").items() {
			r.checkImageVersion(version)
			for _, architecture := range version.lookup("architectures").items() {
				r.requireOneOf(architecture, architectures[:]...)
			}
		}
	}
	return r.findings
}
