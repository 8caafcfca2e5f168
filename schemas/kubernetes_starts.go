package schemas

// apiServerRefusals is what kube-apiserver refuses to start with although Gardener accepts it, so that a new one never comes up beside the
// old one.
func apiServerRefusals(kubernetes tree, in apiServerContext) []finding {
	config := kubernetes.at("kubeAPIServer")
	admission := admissionConfigurations(config, in.version)
	r := &admission.refused
	reading, writing := config.at("requests", "maxNonMutatingInflight"), config.at("requests", "maxMutatingInflight")
	if reading.set() && writing.set() && reading.count() == 0 && writing.count() == 0 {
		r.add(config.at("requests"), TypeInvalid, "lets no request through: maxNonMutatingInflight and maxMutatingInflight are both 0, and at least one must be above")
	}
	return r.findings
}

// apiServerIgnored is what kube-apiserver accepts and does nothing with.
func apiServerIgnored(kubernetes tree, in apiServerContext) []finding {
	return admissionConfigurations(kubernetes.at("kubeAPIServer"), in.version).ignored.findings
}
