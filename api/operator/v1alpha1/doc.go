// Package v1alpha1 holds Garden of operator.gardener.cloud/v1alpha1, a landscape's virtual garden and the runtime
// cluster it runs in, and Extension, what is installed into both. The wire format is upstream's, field by field; documentation is ours. Rules that need more
// than one field live in package schemas, reconcilers in package controllers.
//
// +kubebuilder:object:generate=true
// +groupName=operator.gardener.cloud
package v1alpha1
