package render

import (
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	operatorv1alpha1 "github.com/pergola-dev/pergola/api/operator/v1alpha1"
	"github.com/pergola-dev/pergola/landscapes"
)

// Extension is an Extension of the operator as the components of the Garden see it.
type Extension struct {
	Name        string            `json:"name"`
	Annotations map[string]string `json:"annotations"`
	Spec        map[string]any    `json:"spec"`
	// Leaving says that somebody deletes it: of what was installed for it only that stays which the
	// Garden needs.
	Leaving bool `json:"leaving"`
	// Required says that the Garden has objects of its types in the runtime cluster
	// (SettleExtensions).
	Required bool `json:"required"`
}

// KindExtension are the Extensions of the operator: not the objects that extensions work on.
var KindExtension = schema.GroupKind{Group: operatorv1alpha1.SchemeGroupVersion.Group, Kind: "Extension"}

// annotationPodSecurity is the one annotation of an Extension that says how it is installed
// (upstream's).
const annotationPodSecurity = "security.gardener.cloud/pod-security-enforce"

// ExtensionOf reads an Extension, declared or live: both give the same.
func ExtensionOf(obj *unstructured.Unstructured) Extension {
	e := Extension{Name: obj.GetName(), Annotations: map[string]string{}, Spec: map[string]any{}}
	if level, has := obj.GetAnnotations()[annotationPodSecurity]; has {
		e.Annotations[annotationPodSecurity] = level
	}
	if spec, ok := obj.Object["spec"].(map[string]any); ok {
		e.Spec = runtime.DeepCopyJSON(spec)
		withoutEmpty(reflect.TypeFor[operatorv1alpha1.ExtensionSpec](), e.Spec)
	}
	resources, _ := e.Spec["resources"].([]any)
	for _, item := range resources {
		if r, ok := item.(map[string]any); ok && r["primary"] == nil {
			r["primary"] = true // the default of the API
		}
	}
	return e
}

// extensionsIn are those that a landscape declares.
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
