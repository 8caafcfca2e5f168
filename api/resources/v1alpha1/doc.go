// Package v1alpha1 holds ManagedResource of resources.gardener.cloud/v1alpha1: a set of manifests, kept in
// Secrets, that a resource manager applies to a cluster and watches. The wire format is upstream's; two
// optional status fields are Pergola's (see ObjectReference). What a resource manager does with it is in
// packages apply and controllers.
//
// +kubebuilder:object:generate=true
// +groupName=resources.gardener.cloud
package v1alpha1
