// Package gardenwebhooks answers what upstream's gardener-admission-controller is asked in the
// virtual garden, at upstream's paths, so that its webhook configurations keep working: what nobody
// may break by hand (namespaces of Projects, kubeconfigs and configurations that Shoots refer to,
// the internal domain, what gardenlets publish), how large objects may be, what gardenlets may
// make, and the labels of credentials. (upstream: pkg/admissioncontroller/webhook/admission)
//
// Each webhook is in a file of its own. What lists of objects are needed come from a cache, as far
// as whoever serves it has one; what decides about a single object is read anew.
//
// What does not live here: what belongs to whom (package authorizer), rules about configurations
// (package across), the server, its metrics and time limits (package admission), and the webhook
// configurations (component garden/gardener-admission-controller).
package garden
