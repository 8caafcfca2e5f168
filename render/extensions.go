// SPDX-License-Identifier: Apache-2.0

package render

import (
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	operatorv1alpha1 "github.com/pergola-dev/pergola/api/operator/v1alpha1"
	"github.com/pergola-dev/pergola/landscapes"
)

// Extension is an Extension of the operator as the Garden's components see it.
type Extension struct {
	Name        string            `json:"name"`
	Annotations map[string]string `json:"annotations"`
	Spec        map[string]any    `json:"spec"`
	// Deleting means that the Extension is being deleted: only the parts that the Garden needs stay
	// installed.
	Deleting bool `json:"leaving"`
	// Required means that the Garden has objects of its types in the runtime cluster
	// (MarkRequiredExtensions).
	Required bool `json:"required"`
}

// KindExtension is the kind of the operator's Extensions, not of objects that extensions reconcile.
var KindExtension = schema.GroupKind{Group: operatorv1alpha1.SchemeGroupVersion.Group, Kind: "Extension"}

// annotationPodSecurity is the only annotation of an Extension that affects its installation
// (upstream's).
const annotationPodSecurity = "security.gardener.cloud/pod-security-enforce"

// ExtensionOf reads an Extension; a declared and a live object give equal results.
func ExtensionOf(obj *unstructured.Unstructured) Extension {
	e := Extension{Name: obj.GetName(), Annotations: map[string]string{}, Spec: map[string]any{}}
	if level, has := obj.GetAnnotations()[annotationPodSecurity]; has {
		e.Annotations[annotationPodSecurity] = level
	}
	if spec, ok := obj.Object["spec"].(map[string]any); ok {
		e.Spec = runtime.DeepCopyJSON(spec)
		removeNulls(reflect.TypeFor[operatorv1alpha1.ExtensionSpec](), e.Spec)
	}
	resources, _ := e.Spec["resources"].([]any)
	for _, item := range resources {
		if r, ok := item.(map[string]any); ok && r["primary"] == nil {
			r["primary"] = true // the API default
		}
	}
	return e
}

// extensionsIn returns the Extensions that a landscape declares.
func extensionsIn(l *landscapes.Landscape) map[string]Extension {
	var out map[string]Extension
	for i := range l.Declarations {
		d := &l.Declarations[i]
		if d.GroupVersionKind().GroupKind() != KindExtension {
			continue
		}
		if out == nil {
			out = map[string]Extension{}
		}
		out[d.Name()] = ExtensionOf(d.Object())
	}
	return out
}
