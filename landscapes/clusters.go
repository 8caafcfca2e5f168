// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	operatorv1alpha1 "github.com/pergola-dev/pergola/api/operator/v1alpha1"
	"github.com/pergola-dev/pergola/schemas"
)

// AnnotationCluster on a Secret, ConfigMap or Namespace selects its cluster: runtime or virtual.
const AnnotationCluster = "landscape.pergola.dev/cluster"

// ruleClusterMove is the rule id of findings about objects that would leave the runtime cluster.
const ruleClusterMove = "landscape/cluster-stays"

// ClusterOf returns the cluster of a declaration, runtime or virtual. Its annotation, its API group
// or the names in RuntimeReferences decide.
func ClusterOf(obj *unstructured.Unstructured, referenced map[string]bool) string {
	const runtime, virtual = "runtime", "virtual"
	if c, ok := obj.GetAnnotations()[AnnotationCluster]; ok && (c == runtime || c == virtual) {
		return c
	}
	if obj.GroupVersionKind().Group == operatorv1alpha1.SchemeGroupVersion.Group {
		return runtime
	}
	kind := obj.GetKind()
	if (kind == "Secret" || kind == "ConfigMap") && obj.GetNamespace() == gardencorev1beta1.GardenNamespace && referenced[obj.GetName()] {
		return runtime
	}
	return virtual
}

// RuntimeReferences returns the names of Secrets and ConfigMaps in namespace garden that the Garden
// and the operator's Extensions refer to. Such objects belong to the runtime cluster.
func (l *Landscape) RuntimeReferences() map[string]bool {
	out := map[string]bool{}
	for i := range l.Declarations {
		if d := &l.Declarations[i]; d.isOperatorKind("Garden") || d.isOperatorKind("Extension") {
			collectReferences(d.Object().Object, "", out)
		}
	}
	return out
}

func (d *Declaration) isOperatorKind(kind string) bool {
	return d.kind.Group == operatorv1alpha1.SchemeGroupVersion.Group && d.kind.Kind == kind
}

// ReferencedNames returns the names of Secrets and ConfigMaps that a value refers to.
func ReferencedNames(v any) map[string]bool {
	out := map[string]bool{}
	collectReferences(v, "", out)
	return out
}

func collectReferences(v any, field string, out map[string]bool) {
	switch x := v.(type) {
	case map[string]any:
		if name, ok := x["name"].(string); ok && (strings.HasSuffix(field, "Ref") || strings.HasSuffix(field, "secretRef")) {
			out[name] = true
		}
		for k, item := range x {
			if name, ok := item.(string); ok && (strings.HasSuffix(k, "SecretName") || k == "secretName" || strings.HasSuffix(k, "configMapName")) {
				out[name] = true
			}
			collectReferences(item, k, out)
		}
	case []any:
		for _, item := range x {
			collectReferences(item, field, out)
		}
	}
}

// checkClusterMoves finds Secrets and ConfigMaps that the runtime cluster no longer refers to. They
// would move to the virtual garden, whose administrators and gardenlets must not get them because
// of a forgotten file. Without a Garden in the landscape, it reports nothing.
func (l *Landscape) checkClusterMoves(before *Landscape) []schemas.Violation {
	former := map[identity]bool{}
	for i := range before.Declarations {
		former[identityOf(&before.Declarations[i])] = true
	}
	var was, is map[string]bool
	var out []schemas.Violation
	for i := range l.Declarations {
		d := &l.Declarations[i]
		if d.kind.Group != "" || d.kind.Kind != "Secret" && d.kind.Kind != "ConfigMap" || d.namespace != gardencorev1beta1.GardenNamespace || !former[identityOf(d)] {
			continue
		}
		if was == nil {
			was, is = before.RuntimeReferences(), l.RuntimeReferences()
		}
		if !was[d.name] || is[d.name] || d.Object().GetAnnotations()[AnnotationCluster] != "" || !l.hasGarden() {
			continue
		}
		field := fmt.Sprintf("metadata.annotations[%s]", AnnotationCluster)
		place := d.Position("metadata.name")
		out = append(out, schemas.Violation{
			Severity: schemas.SeverityError, File: place.File, Line: place.Line, Column: place.Column, Kind: d.kind.Kind, Namespace: d.namespace, Name: d.name,
			Field: field, Type: schemas.TypeRequired, Rule: ruleClusterMove,
			Message: "no object of the runtime cluster refers to it, so it would move to the virtual garden; remove it, or set runtime or virtual here",
		})
	}
	return out
}

func (l *Landscape) hasGarden() bool {
	for i := range l.Declarations {
		if l.Declarations[i].isOperatorKind("Garden") {
			return true
		}
	}
	return false
}
