package apply

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Ref names one object.
type Ref struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
}

// RefOf is the reference of an object.
func RefOf(o *unstructured.Unstructured) Ref {
	return Ref{APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName()}
}

// String is the form used in messages: "Deployment garden/vpa-updater", "Namespace garden".
func (r Ref) String() string {
	if r.Namespace == "" {
		return r.Kind + " " + r.Name
	}
	return r.Kind + " " + r.Namespace + "/" + r.Name
}

// GVK is the group, version and kind of the object.
func (r Ref) GVK() schema.GroupVersionKind { return schema.FromAPIVersionAndKind(r.APIVersion, r.Kind) }

// GroupKind is the kind without its version.
func (r Ref) GroupKind() schema.GroupKind { return r.GVK().GroupKind() }

func (r Ref) key() key { return key{gk: r.GroupKind(), name: nsName{r.Namespace, r.Name}} }

// key is the identity of an object across API versions.
type key struct {
	gk   schema.GroupKind
	name nsName
}

type nsName struct{ namespace, name string }

func nameOf(o *unstructured.Unstructured) nsName { return nsName{o.GetNamespace(), o.GetName()} }

var (
	secretKind     = schema.GroupKind{Kind: "Secret"}
	configMapKind  = schema.GroupKind{Kind: "ConfigMap"}
	namespaceKind  = schema.GroupKind{Kind: "Namespace"}
	crdKind        = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
	deploymentKind = schema.GroupKind{Group: "apps", Kind: "Deployment"}
	statefulSet    = schema.GroupKind{Group: "apps", Kind: "StatefulSet"}
	hpaKind        = schema.GroupKind{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}
)

func groupKindOf(o *unstructured.Unstructured) schema.GroupKind {
	return o.GroupVersionKind().GroupKind()
}
