package schemas

// namespacedVersions checks the versions of a NamespacedCloudProfile. What its parent says about
// the same versions is not known here, so that no version has to be the newest, or the only one
// that is supported.
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
