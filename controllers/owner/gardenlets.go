// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	gardencorev1 "github.com/pergola-dev/pergola/api/core/v1"
	operatorv1alpha1 "github.com/pergola-dev/pergola/api/operator/v1alpha1"
	seedmanagementv1alpha1 "github.com/pergola-dev/pergola/api/seedmanagement/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/render"
)

// updateGardenlets sets the chart version of Gardenlets with the auto-update label to the version
// of the garden; the gardenlets then update themselves. They come last, because no gardenlet may be
// newer than the API that it uses.
func (r *run) updateGardenlets(ctx context.Context) error {
	o := r.owner
	version := gardenerVersion(o.Bundles())
	if o.Input.Owner.Kind != Garden || o.Target == nil || version == "" {
		return nil
	}
	gvk := seedmanagementv1alpha1.SchemeGroupVersion.WithKind("Gardenlet")
	all := apply.Ref{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Namespace: o.ControlPlane()}
	mapping, err := o.Target.Mapping(ctx, gvk)
	if apply.IsUnserved(err) {
		return nil
	}
	if err != nil {
		return o.Target.Explain(all, "list", err)
	}
	list, err := o.Target.Dynamic().Resource(mapping.Resource).Namespace(all.Namespace).List(ctx, metav1.ListOptions{LabelSelector: operatorv1alpha1.LabelAutoUpdateGardenlet + "=true"})
	if err != nil {
		return o.Target.Explain(all, "list", err)
	}
	var problems []error
	for i := range list.Items {
		live := &list.Items[i]
		change := versionChange(live, version)
		if change == nil || live.GetDeletionTimestamp() != nil {
			continue
		}
		patch := map[string]any{"spec": map[string]any{"deployment": map[string]any{"helm": map[string]any{"ociRepository": change}}}}
		ref := apply.RefOf(live)
		if _, err := o.Target.MergePatch(ctx, ref, patch, settingsByKind[Garden].fieldManager, ""); err != nil && !apierrors.IsNotFound(err) {
			problems = append(problems, fmt.Errorf("the version of a gardenlet: %w", o.Target.Explain(ref, "write", err)))
		}
	}
	return errors.Join(problems...)
}

// versionChange returns the fields that set the chart version of a Gardenlet, or nil without a
// change. It preserves the registry, which may be a mirror, and a chart with a digest, which is
// pinned.
func versionChange(gardenlet *unstructured.Unstructured, version string) map[string]any {
	fields, _, _ := unstructured.NestedMap(gardenlet.Object, "spec", "deployment", "helm", "ociRepository")
	var named gardencorev1.OCIRepository
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &named); err != nil {
		return nil
	}
	chart, err := render.ParseChartReference(named)
	if err != nil || chart.Digest != "" || chart.Tag == version {
		return nil // the installation of the chart reports an invalid reference
	}
	if named.Ref == nil || *named.Ref == "" {
		return map[string]any{"tag": version}
	}
	return map[string]any{"ref": strings.TrimSuffix(*named.Ref, ":"+chart.Tag) + ":" + version}
}

// gardenerVersion returns the version in the garden's ConfigMap gardener-info, or "" without one.
func gardenerVersion(bundles []render.Bundle) string {
	for _, b := range bundles {
		for _, o := range b.Objects {
			if b.Cluster != render.ClusterVirtual || o.GetKind() != "ConfigMap" || o.GetName() != "gardener-info" {
				continue
			}
			text, _, _ := unstructured.NestedString(o.Object, "data", "gardenerAPIServer")
			var info struct {
				Version string `json:"version"`
			}
			if yaml.Unmarshal([]byte(text), &info) == nil {
				return info.Version
			}
		}
	}
	return ""
}
