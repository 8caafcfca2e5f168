// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pergola-dev/pergola/change"
)

// Ref names one object; plans, errors and results share it.
type Ref = change.Ref

// RefOf returns the reference of an object.
func RefOf(o *unstructured.Unstructured) Ref { return change.RefOf(o) }

func objectKeyOf(r Ref) objectKey {
	return objectKey{gk: r.GroupKind(), name: nsName{r.Namespace, r.Name}}
}

// objectKey is the identity of an object across API versions.
type objectKey struct {
	gk   schema.GroupKind
	name nsName
}

type nsName struct{ namespace, name string }

func nameOf(o *unstructured.Unstructured) nsName { return nsName{o.GetNamespace(), o.GetName()} }

var (
	secretKind     = schema.GroupKind{Kind: "Secret"}
	configMapKind  = schema.GroupKind{Kind: "ConfigMap"}
	serviceKind    = schema.GroupKind{Kind: "Service"}
	namespaceKind  = schema.GroupKind{Kind: "Namespace"}
	crdKind        = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
	deploymentKind = schema.GroupKind{Group: "apps", Kind: "Deployment"}
	statefulSet    = schema.GroupKind{Group: "apps", Kind: "StatefulSet"}
	jobKind        = schema.GroupKind{Group: "batch", Kind: "Job"}
	hpaKind        = schema.GroupKind{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}
)

func groupKindOf(o *unstructured.Unstructured) schema.GroupKind {
	return o.GroupVersionKind().GroupKind()
}

// KubectlName returns the arguments by which kubectl addresses an object: "shoot -n garden-local
// local".
func KubectlName(r Ref) string {
	out := strings.ToLower(r.Kind) + " "
	if r.Namespace != "" {
		out += "-n " + r.Namespace + " "
	}
	return out + r.Name
}
