// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/plan"
	"github.com/pergola-dev/pergola/render"
)

// DeclarationsBundle is the bundle name of declarations in plans and for Options.OnObject.
const DeclarationsBundle = "declarations"

// DeclarationBundles returns the declarations for the runtime cluster and the virtual garden as
// bundles, only for comparison. Secrets in sealed, and undecryptable ones, are in their encrypted
// form.
func DeclarationBundles(l *landscapes.Landscape, sealed map[apply.Ref]bool) []plan.ClusterBundle {
	referenced := l.RuntimeReferences()
	objects := map[string][]render.Object{}
	for _, d := range l.Declarations {
		if d.GroupVersionKind().Group == landscapev1alpha1.SchemeGroupVersion.Group {
			continue
		}
		obj := d.Copy()
		cluster := landscapes.ClusterOf(obj, referenced)
		if d.EncryptedContent() != nil && (d.Secret == landscapes.SecretEncrypted || sealed[apply.RefOf(obj)]) {
			obj = (&unstructured.Unstructured{Object: d.EncryptedContent()}).DeepCopy()
		}
		obj.SetAnnotations(withoutKey(obj.GetAnnotations(), AnnotationCluster))
		objects[cluster] = append(objects[cluster], render.Object{Unstructured: obj, Origin: render.Origin{File: d.File, Line: d.Line}})
	}
	var out []plan.ClusterBundle
	for _, cluster := range []string{Runtime, Virtual} {
		if len(objects[cluster]) > 0 {
			out = append(out, plan.ClusterBundle{Cluster: cluster, Bundle: render.Bundle{
				Name: DeclarationsBundle, Cluster: cluster, Objects: objects[cluster],
				Owner: render.Owner{Kind: "landscape", Name: l.Config.Name},
			}})
		}
	}
	return out
}
