// Package v1alpha1 holds Landscape of landscape.pergola.dev/v1alpha1, Pergola's own kind. The same kind is the file
// `landscape.yaml` in a landscape folder and the object in the runtime cluster by which the operator syncs that
// folder from Git. Where a field has to be trusted (source, decryption, serviceAccountName, intervals), only
// the object in the cluster counts: a commit may tighten them, never loosen.
//
// +kubebuilder:object:generate=true
// +groupName=landscape.pergola.dev
package v1alpha1
