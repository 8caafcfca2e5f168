package schemas

import "slices"

// apiServerRefusals reports settings that Gardener accepts, but with which kube-apiserver does not
// start: no new one ever comes up beside the old one.
func apiServerRefusals(kubernetes tree, in apiServerContext) []finding {
	config := kubernetes.at("kubeAPIServer")
	admission := admissionConfigurations(config, in.version)
	r := &admission.refused
	reading, writing := config.at("requests", "maxNonMutatingInflight"), config.at("requests", "maxMutatingInflight")
	if reading.set() && writing.set() && reading.count() == 0 && writing.count() == 0 {
		r.add(config.at("requests"), TypeInvalid, "lets no request through: maxNonMutatingInflight and maxMutatingInflight are both 0, and at least one must be above")
	}
	r.apisOff(kubernetes, in)
	return r.findings
}

// apisOff reports APIs that cannot be switched off, although Gardener allows it.
func (r *report) apisOff(kubernetes tree, in apiServerContext) {
	switches := kubernetes.at("kubeAPIServer", "runtimeConfig")
	schedulerWaits := !in.workerless && minorOf(in.version) >= 34
	if gate := kubernetes.at("kubeScheduler", "featureGates", "DynamicResourceAllocation"); gate.set() && !gate.is() {
		schedulerWaits = false
	}
	for _, api := range switches.keys() {
		field := switches.key(api)
		switch {
		case field.is():
		case needed[api] != "":
			r.add(field, TypeForbidden, "%q cannot be switched off: %s", api, needed[api])
		case schedulerWaits && slices.Contains(readByScheduler[:], api):
			r.add(field, TypeForbidden, "kube-scheduler waits for %q: no Pod would get a node", api)
		}
	}
}

// needed maps the APIs that control planes require to the reasons.
var needed = map[string]string{
	"flowcontrol.apiserver.k8s.io/v1": "kube-apiserver does not start without it, by which it tells requests of the system from others",
	"admissionregistration.k8s.io/v1": "kube-apiserver does not get ready without it, whose webhooks it waits for before it answers",
	"coordination.k8s.io/v1":          "kube-controller-manager and kube-scheduler elect their leaders by it, and would do nothing",
}

// readByScheduler lists the APIs that kube-scheduler reads before it starts and Gardener does not
// need.
var readByScheduler = [...]string{"resource.k8s.io/v1", "resource.k8s.io/v1/deviceclasses", "resource.k8s.io/v1/resourceclaims", "resource.k8s.io/v1/resourceslices"}

// apiServerIgnored reports settings that kube-apiserver accepts and ignores.
func apiServerIgnored(kubernetes tree, in apiServerContext) []finding {
	return admissionConfigurations(kubernetes.at("kubeAPIServer"), in.version).ignored.findings
}
