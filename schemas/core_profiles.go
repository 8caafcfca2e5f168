package schemas

// namespacedVersions checks the versions of a NamespacedCloudProfile. The versions of its parent
// are unknown here, so it does not check for the newest or the only supported version.
func namespacedVersions(in ruleInput) []finding {
	r, spec := &report{}, tree{value: in.object}.at("spec")
	lifecycles := in.landscape.gardenerGateOn("VersionClassificationLifecycle")
	for _, version := range spec.at("kubernetes", "versions").items() {
		if text := version.at("version").text(); !kubernetesVersionForm.MatchString(text) {
			r.add(version.at("version").as(version.path), TypeInvalid, "the version %q has not the form 1.34.1", text)
		}
		r.expirable(version, lifecycles)
	}
	r.newestImages(spec.at("machineImages"))
	for _, image := range spec.at("machineImages").items() {
		for _, version := range image.at("versions").items() {
			r.imageVersion(version)
			for _, architecture := range version.at("architectures").items() {
				r.oneOf(architecture, architectures[:]...)
			}
		}
	}
	return r.findings
}
