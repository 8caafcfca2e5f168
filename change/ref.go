// SPDX-License-Identifier: Apache-2.0

package change

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Ref names one object of a cluster.
type Ref struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
}

// RefOf returns the reference of an object.
func RefOf(o *unstructured.Unstructured) Ref {
	return Ref{APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName()}
}

// String returns the form for messages: "Deployment garden/vpa-updater", "Namespace garden"; "Seed"
// for the kind as such.
func (r Ref) String() string {
	if r.Name == "" {
		return r.Kind
	}
	if r.Namespace == "" {
		return r.Kind + " " + r.Name
	}
	return r.Kind + " " + r.Namespace + "/" + r.Name
}

// Group returns the API group of the object, or "" for the core group.
func (r Ref) Group() string {
	group, _, found := strings.Cut(r.APIVersion, "/")
	if !found {
		return ""
	}
	return group
}

// GVK returns the group, version and kind of the object.
func (r Ref) GVK() schema.GroupVersionKind { return schema.FromAPIVersionAndKind(r.APIVersion, r.Kind) }

// GroupKind returns the kind without its version.
func (r Ref) GroupKind() schema.GroupKind { return schema.GroupKind{Group: r.Group(), Kind: r.Kind} }

// IsGardener reports whether the kind is in one of Gardener's API groups.
func (r Ref) IsGardener() bool { return strings.HasSuffix(r.Group(), "gardener.cloud") }
