// Package v1 holds ControllerDeployment of core.gardener.cloud/v1, the only kind of that version, and what it refers
// to. The wire format is upstream's, field by field; documentation is ours.
//
// Two versions of one kind, and no conversion webhook: both are stored as they were written (version v1 is the one
// that etcd holds), and each has the fields of the other too, so that none is lost on the way. A manifest may use
// the fields of its own version only; HelmDeployment reads either form.
//
// +kubebuilder:object:generate=true
// +groupName=core.gardener.cloud
package v1
