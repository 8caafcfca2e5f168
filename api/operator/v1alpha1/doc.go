// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds Garden and Extension of operator.gardener.cloud/v1alpha1. A Garden is a
// landscape's virtual garden and the runtime cluster it runs in; an Extension is installed into
// both. The wire format is upstream's, field by field; the documentation is ours. Rules over
// several fields are in package schemas, reconcilers in package controllers.
//
// +kubebuilder:object:generate=true
// +groupName=operator.gardener.cloud
package v1alpha1
