// SPDX-License-Identifier: Apache-2.0

package resourcemanager

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/resourcemanager/managedresource"
)

// enqueue schedules a ManagedResource to be applied (full) or judged.
func (m *Manager) enqueue(key types.NamespacedName, full bool) {
	if full {
		m.scheduleApply(key, 0)
		m.queue.Add(key)
	} else {
		m.queue.AddAfter(key, healthCheckDelay)
	}
}

// onSourceChange handles a change of a ManagedResource.
func (m *Manager) onSourceChange(e apply.ChangeEvent) {
	if e.Ref.GroupKind() != managedResourceKind.GroupKind() || m.options.Namespace != "" && e.Ref.Namespace != m.options.Namespace {
		return
	}
	key := types.NamespacedName{Namespace: e.Ref.Namespace, Name: e.Ref.Name}
	m.secretCache.setReferences(key, dataSecretNames(e.New))
	if e.New == nil {
		m.writeConflicts.remove(key)
	}
	if e.New == nil || isReconciliationNeeded(e.Old, e.New) || e.Old != nil && !m.isResponsible(e.New) && !hasSameInventory(e.Old, e.New) {
		m.declarations.markStale(key)
	}
	if e.New != nil && isReconciliationNeeded(e.Old, e.New) {
		m.enqueue(key, true)
	}
}

// isResponsible reports whether a live ManagedResource is of our class.
func (m *Manager) isResponsible(mr *unstructured.Unstructured) bool {
	class, _, _ := unstructured.NestedString(mr.Object, "spec", "class")
	return m.reconciler.IsResponsible(&resourcesv1alpha1.ManagedResource{Spec: resourcesv1alpha1.ManagedResourceSpec{Class: &class}})
}

func hasSameInventory(old, new *unstructured.Unstructured) bool {
	was, _, _ := unstructured.NestedFieldNoCopy(old.Object, "status", "resources")
	is, _, _ := unstructured.NestedFieldNoCopy(new.Object, "status", "resources")
	return reflect.DeepEqual(was, is)
}

// isReconciliationNeeded reports whether a change of a ManagedResource needs a reconciliation:
// spec, request annotations, deletion, a removed finalizer, or lost health; not our own writes.
// Source: pkg/resourcemanager/controller/managedresource (predicates).
func isReconciliationNeeded(old, new *unstructured.Unstructured) bool {
	if old == nil || old.GetUID() != new.GetUID() || old.GetGeneration() != new.GetGeneration() {
		return true
	}
	for _, annotation := range []string{gardencorev1beta1.GardenerOperation, resourcesv1alpha1.Ignore} {
		if old.GetAnnotations()[annotation] != new.GetAnnotations()[annotation] {
			return true
		}
	}
	if (old.GetDeletionTimestamp() == nil) != (new.GetDeletionTimestamp() == nil) || len(new.GetFinalizers()) < len(old.GetFinalizers()) {
		return true
	}
	return healthStatus(old) == string(gardencorev1beta1.ConditionTrue) && healthStatus(new) == string(gardencorev1beta1.ConditionFalse)
}

func healthStatus(mr *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(mr.Object, "status", "conditions")
	for _, c := range conditions {
		if condition, ok := c.(map[string]any); ok && condition["type"] == string(resourcesv1alpha1.ResourcesHealthy) {
			status, _ := condition["status"].(string)
			return status
		}
	}
	return ""
}

// dataSecretNames returns the names of the data Secrets, or none for a deleted ManagedResource.
func dataSecretNames(mr *unstructured.Unstructured) []string {
	if mr == nil {
		return nil
	}
	refs, _, _ := unstructured.NestedSlice(mr.Object, "spec", "secretRefs")
	var names []string
	for _, r := range refs {
		if ref, ok := r.(map[string]any); ok {
			if name, ok := ref["name"].(string); ok && name != "" {
				names = append(names, name)
			}
		}
	}
	return names
}

// repairDrift repairs a change by someone else: at once, or after a pause if the object is fought
// over.
func (m *Manager) repairDrift(d apply.DriftEvent) {
	key, ok := m.parseWatchedSetName(d.Set)
	if !ok {
		return
	}
	m.metrics.drift.WithLabelValues(d.Ref.GroupKind().String()).Inc()
	pause, begins := m.writeConflicts.recordChange(key, d)
	m.options.Log.Info("drift", "managedResource", key.String(), "object", d.Ref.String(), "deleted", d.Deleted, "fields", driftedFields(d), "pause", pause.String())
	if pause == 0 {
		m.enqueue(key, true)
		return
	}
	m.scheduleApply(key, pause)
	m.enqueue(key, false) // the condition names the fight
	if !begins {
		return
	}
	if mr, err := m.reconciler.Read(context.Background(), key.Namespace, key.Name); err == nil && m.options.Event != nil {
		reason, message := m.writeConflicts.describe(key.Namespace, key.Name)
		m.options.Event(mr, reason, message)
	}
}

func (m *Manager) onSecretChange(key types.NamespacedName) {
	m.declarations.markStale(key)
	m.enqueue(key, true)
}

// onTargetChange judges the ManagedResource of a changed object; drift covers the fields that we
// own. A deleted object may complete a deletion.
func (m *Manager) onTargetChange(e apply.ChangeEvent) {
	o := e.New
	if o == nil {
		o = e.Old
	}
	if o == nil || e.Old != nil && e.New != nil && hasSameContent(e.Old, e.New) {
		return
	}
	if key, ok := m.parseWatchedSetName(o.GetAnnotations()[resourcesv1alpha1.Origin]); ok {
		// A formerly ignored object may have drifted, and a newly ignored one is not ours to
		// describe.
		m.enqueue(key, e.New == nil || e.Old != nil && managedresource.IsIgnored(e.Old) != managedresource.IsIgnored(e.New))
	}
	if e.Ref.GroupKind() == autoscalerKind {
		m.onScalingChange(e)
	}
}

// autoscalerKind takes the number of replicas over from the declaration of the scaled object.
var autoscalerKind = schema.GroupKind{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}

// onScalingChange applies objects that an autoscaler begins or stops to scale: it owns the replicas
// only while it scales them.
func (m *Manager) onScalingChange(e apply.ChangeEvent) {
	was, is := scaleTarget(e.Old), scaleTarget(e.New)
	if was == is {
		return
	}
	for _, ref := range []apply.Ref{was, is} {
		if ref.Kind == "" {
			continue
		}
		if live := m.options.Target.Cached(ref); live != nil {
			if key, ok := m.parseWatchedSetName(live.GetAnnotations()[resourcesv1alpha1.Origin]); ok {
				m.enqueue(key, true)
			}
		}
	}
}

// scaleTarget returns the object that an autoscaler scales; the result is empty for nil. The
// version in the reference does not matter.
func scaleTarget(hpa *unstructured.Unstructured) apply.Ref {
	if hpa == nil {
		return apply.Ref{}
	}
	target, _, _ := unstructured.NestedStringMap(hpa.Object, "spec", "scaleTargetRef")
	return apply.Ref{APIVersion: "apps/v1", Kind: target["kind"], Namespace: hpa.GetNamespace(), Name: target["name"]}
}

// hasSameContent reports whether only bookkeeping of the API server differs.
func hasSameContent(old, new *unstructured.Unstructured) bool {
	rest := func(o *unstructured.Unstructured) (map[string]any, map[string]any) {
		metadata, _ := o.Object["metadata"].(map[string]any)
		metadata, object := maps.Clone(metadata), maps.Clone(o.Object)
		delete(metadata, "resourceVersion")
		delete(metadata, "managedFields")
		delete(object, "metadata")
		return metadata, object
	}
	oldMetadata, oldRest := rest(old)
	newMetadata, newRest := rest(new)
	return reflect.DeepEqual(oldMetadata, newMetadata) && reflect.DeepEqual(oldRest, newRest)
}

// parseWatchedSetName parses the name of a set, or false if the set is not ours.
func (m *Manager) parseWatchedSetName(set string) (types.NamespacedName, bool) {
	key, ok := m.parseSetName(set)
	if !ok || m.options.Namespace != "" && key.Namespace != m.options.Namespace {
		return types.NamespacedName{}, false
	}
	return key, true
}

// parseSetName parses the name of a set of our source cluster.
func (m *Manager) parseSetName(set string) (types.NamespacedName, bool) {
	id, rest, ok := strings.Cut(set, ":")
	if !ok {
		id, rest = "", set
	}
	want := m.options.ClusterID
	if m.options.Source == m.options.Target {
		want = ""
	}
	namespace, name, ok := strings.Cut(rest, "/")
	if !ok || id != want {
		return types.NamespacedName{}, false
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, true
}

// driftedFields returns the drifted paths with their current owners; no values, because many people
// read logs.
func driftedFields(d apply.DriftEvent) []string {
	var out []string
	for _, f := range d.Fields {
		if f.Manager != "" {
			out = append(out, f.Path+" by "+f.Manager)
		} else {
			out = append(out, f.Path)
		}
	}
	slices.Sort(out)
	return out
}
