// SPDX-License-Identifier: Apache-2.0

package schemas

import "slices"

// checkAPIServerStart reports settings that Gardener accepts, but with which kube-apiserver does
// not start: no new one ever comes up beside the old one.
func checkAPIServerStart(kubernetes fieldValue, in apiServerContext) []finding {
	config := kubernetes.lookup("kubeAPIServer")
	admission := admissionConfigurations(config, in.version)
	r := &admission.rejected
	reading, writing := config.lookup("requests", "maxNonMutatingInflight"), config.lookup("requests", "maxMutatingInflight")
	if reading.isSet() && writing.isSet() && reading.integer() == 0 && writing.integer() == 0 {
		r.add(config.lookup("requests"), TypeInvalid, "allows no request: maxNonMutatingInflight and maxMutatingInflight are both 0; at least one must be above 0")
	}
	r.checkDisabledAPIs(kubernetes, in)
	return r.findings
}

// checkDisabledAPIs reports APIs that cannot be switched off, although Gardener allows it.
func (r *findingCollector) checkDisabledAPIs(kubernetes fieldValue, in apiServerContext) {
	switches := kubernetes.lookup("kubeAPIServer", "runtimeConfig")
	schedulerWaits := !in.workerless && minorOf(in.version) >= 34
	if gate := kubernetes.lookup("kubeScheduler", "featureGates", "DynamicResourceAllocation"); gate.isSet() && !gate.isTrue() {
		schedulerWaits = false
	}
	for _, api := range switches.keys() {
		field := switches.entry(api)
		switch {
		case field.isTrue():
		case requiredAPIs[api] != "":
			r.add(field, TypeForbidden, "%q cannot be switched off: %s", api, requiredAPIs[api])
		case schedulerWaits && slices.Contains(schedulerAPIs[:], api):
			r.add(field, TypeForbidden, "kube-scheduler waits for %q, so no Pod would get a node", api)
		}
	}
}

// requiredAPIs maps the APIs that control planes require to the reasons.
var requiredAPIs = map[string]string{
	"flowcontrol.apiserver.k8s.io/v1": "kube-apiserver does not start without it, because it recognizes requests of the system by it",
	"admissionregistration.k8s.io/v1": "kube-apiserver does not become ready without it, because it waits for its webhooks",
	"coordination.k8s.io/v1":          "kube-controller-manager and kube-scheduler elect their leaders with it and would do nothing",
}

// schedulerAPIs lists the APIs that kube-scheduler reads before it starts and Gardener does not
// need.
var schedulerAPIs = [...]string{"resource.k8s.io/v1", "resource.k8s.io/v1/deviceclasses", "resource.k8s.io/v1/resourceclaims", "resource.k8s.io/v1/resourceslices"}

// checkIgnoredAPIServerSettings reports settings that kube-apiserver accepts and ignores.
func checkIgnoredAPIServerSettings(kubernetes fieldValue, in apiServerContext) []finding {
	return admissionConfigurations(kubernetes.lookup("kubeAPIServer"), in.version).ignored.findings
}
