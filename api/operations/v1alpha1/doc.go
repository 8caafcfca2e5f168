// Package v1alpha1 holds Bastion of operations.gardener.cloud/v1alpha1. The wire format is upstream's, field by field;
// documentation is ours. Rules live in package schemas.
//
// +kubebuilder:object:generate=true
// +groupName=operations.gardener.cloud
package v1alpha1
