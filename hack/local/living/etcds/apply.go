// SPDX-License-Identifier: Apache-2.0

package etcds

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

var (
	configMaps   = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	services     = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	budgets      = schema.GroupVersionResource{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"}
	statefulSets = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}
)

// apply applies all objects of an Etcd and returns the StatefulSet, which comes last.
func (c *Controller) apply(ctx context.Context, e *etcd, s shape, live *appsv1.StatefulSet) (*appsv1.StatefulSet, error) {
	files, checksum, err := e.configFiles(e.Spec.Replicas, s.Founders, c.NoSync)
	if err != nil {
		return nil, err
	}
	if e.Spec.Replicas == 0 && live != nil {
		// The members of a hibernated Etcd restart unchanged.
		checksum = live.Spec.Template.Annotations[checksumAnnotation]
	}
	for _, part := range []struct {
		resource schema.GroupVersionResource
		object   any
	}{
		{budgets, e.disruptionBudget()},
		{services, e.clientServiceObject()},
		{services, e.peerServiceObject()},
		{configMaps, e.configMapObject(files)},
	} {
		if _, err := c.applyOne(ctx, part.resource, part.object); err != nil {
			return nil, err
		}
	}
	applied, err := c.applyOne(ctx, statefulSets, e.statefulSet(s, checksum, live))
	if err != nil {
		return nil, err
	}
	set := &appsv1.StatefulSet{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(applied.Object, set); err != nil {
		return nil, fmt.Errorf("reading StatefulSet: %w", err)
	}
	return set, nil
}

func (c *Controller) applyOne(ctx context.Context, resource schema.GroupVersionResource, object any) (*unstructured.Unstructured, error) {
	data, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("writing %s: %w", resource.Resource, err)
	}
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(data, &u.Object); err != nil {
		return nil, fmt.Errorf("writing %s: %w", resource.Resource, err)
	}
	// Other controllers own the status, and applying an empty status would claim fields.
	unstructured.RemoveNestedField(u.Object, "status")
	applied, err := c.Dynamic.Resource(resource).Namespace(u.GetNamespace()).Apply(ctx, u.GetName(), u, metav1.ApplyOptions{FieldManager: druidName, Force: true})
	if err != nil {
		return nil, fmt.Errorf("applying %s %s: %w", resource.Resource, u.GetName(), err)
	}
	return applied, nil
}

// deleteEtcd deletes all objects of an Etcd, its volumes, too, and then its finalizer.
func (c *Controller) deleteEtcd(ctx context.Context, e *etcd) (time.Duration, error) {
	if err := c.patchStatus(ctx, e, reconcileResult{statefulSet: c.liveStatefulSet(ctx, e)}); err != nil {
		return 0, err
	}
	background := metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}
	for _, part := range []struct {
		resource schema.GroupVersionResource
		name     string
	}{{statefulSets, e.Name}, {services, e.clientService()}, {services, e.peerService()}, {configMaps, e.configMap()}, {budgets, e.Name}} {
		err := c.Dynamic.Resource(part.resource).Namespace(e.Namespace).Delete(ctx, part.name, background)
		if err != nil && !apierrors.IsNotFound(err) {
			return 0, fmt.Errorf("deleting %s %s: %w", part.resource.Resource, part.name, err)
		}
	}
	ours := metav1.ListOptions{LabelSelector: labels.SelectorFromSet(e.selector()).String()}
	pods, err := c.Kube.CoreV1().Pods(e.Namespace).List(ctx, ours)
	if err != nil {
		return 0, fmt.Errorf("listing Pods: %w", err)
	}
	if len(pods.Items) > 0 || c.liveStatefulSet(ctx, e) != nil {
		return pollDelay, nil
	}
	// From here on no controller creates claims again.
	if gone, err := c.deleteClaims(ctx, e); err != nil || !gone {
		return pollDelay, err
	}
	var rest []string
	for _, f := range e.Finalizers {
		if f != finalizer {
			rest = append(rest, f)
		}
	}
	return 0, c.patchFinalizers(ctx, e, rest)
}

// deleteClaims reports whether no claim is left. Claims have the labels of etcd-druid, by which the
// StatefulSet selects Pods. etcd-druid's webhook refuses to delete such claims, and does not answer
// where it is played. So a claim first gets the label of the stand-in.
func (c *Controller) deleteClaims(ctx context.Context, e *etcd) (bool, error) {
	client := c.Kube.CoreV1().PersistentVolumeClaims(e.Namespace)
	claims, err := client.List(ctx, metav1.ListOptions{LabelSelector: fmt.Sprintf("%s=%s,%s in (%s,%s)", partOf, e.Name, managedBy, druidName, standInName)})
	if err != nil {
		return false, fmt.Errorf("listing volume claims: %w", err)
	}
	ours := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, managedBy, standInName)
	for _, claim := range claims.Items {
		if claim.DeletionTimestamp != nil {
			continue
		}
		if _, err := client.Patch(ctx, claim.Name, types.MergePatchType, ours, metav1.PatchOptions{FieldManager: standInName}); err != nil && !apierrors.IsNotFound(err) {
			return false, fmt.Errorf("marking volume claim %s: %w", claim.Name, err)
		}
		if err := client.Delete(ctx, claim.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return false, fmt.Errorf("deleting volume claim %s: %w", claim.Name, err)
		}
	}
	return len(claims.Items) == 0, nil
}

// patchFinalizers fails with a conflict if the object has changed; the retry reads it again.
func (c *Controller) patchFinalizers(ctx context.Context, e *etcd, finalizers []string) error {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": e.ResourceVersion, "finalizers": finalizers}})
	if err != nil {
		return fmt.Errorf("writing finalizers: %w", err)
	}
	return c.patch(ctx, e, body)
}
