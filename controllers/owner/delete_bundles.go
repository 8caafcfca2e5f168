// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/apply/flow"
	"github.com/pergola-dev/pergola/controllers/conventions"
	"github.com/pergola-dev/pergola/controllers/resourcemanager/managedresource"
	"github.com/pergola-dev/pergola/internal/printable"
	"github.com/pergola-dev/pergola/render"
)

const (
	// teardownInterval is the time between checks whether deleted objects still exist.
	teardownInterval = time.Second
	// virtualDeletionTimeout is twice the time limit for deleting objects of the virtual garden.
	// They end with its etcd at the latest.
	virtualDeletionTimeout = 2 * time.Minute
)

// deleteBundle deletes a bundle, and waits until none of its objects exists.
func (s *flowSteps) deleteBundle(ctx context.Context, b render.Bundle, keep bool, report func(flow.State, string)) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("bundle %s: %w", b.Name, err)
		}
	}()
	if b.Cluster != render.ClusterVirtual {
		return s.deleteAndWait(ctx, b, keep, report)
	}
	if s.virtualLossReason() == "" {
		// leave half of the step's time for release
		limited, cancel := context.WithTimeout(ctx, s.run.stepTimeout(virtualDeletionTimeout)/2)
		err := s.deleteAndWait(limited, b, keep, report)
		cancel()
		if err == nil || ctx.Err() != nil {
			return err
		}
		s.addReportNote(fmt.Sprintf("bundle %s: its remaining objects in the virtual garden end with its etcd: %s", b.Name, strings.Join(apply.Problems(err), "; ")))
	}
	return s.forgetVirtualBundle(ctx, b)
}

// deleteAndWait deletes the objects of a bundle repeatedly until none is left.
func (s *flowSteps) deleteAndWait(ctx context.Context, b render.Bundle, keep bool, report func(flow.State, string)) error {
	said := ""
	for {
		left, err := s.deleteBundleObjects(ctx, b, keep)
		if left == "" && err == nil {
			return nil
		}
		text := left
		if err != nil {
			text = strings.Join(apply.Problems(err), "; ")
		}
		if text != said && ctx.Err() == nil {
			said = text
			report(flow.Running, text)
		}
		if !s.run.sleep(ctx, teardownInterval) {
			if errors.Is(context.Cause(ctx), context.Canceled) || isLeaseLost(ctx) {
				return fmt.Errorf("interrupted: %w", context.Cause(ctx))
			}
			if left != "" {
				err = errors.Join(err, errors.New(left))
			}
			return err
		}
	}
}

// deleteBundleObjects deletes the objects of a bundle, and describes those that are left.
func (s *flowSteps) deleteBundleObjects(ctx context.Context, b render.Bundle, keep bool) (left string, err error) {
	cluster, err := s.run.owner.clusterForRole(b.Cluster)
	if err != nil {
		return "", err
	}
	if !b.Delivery.Direct {
		deleted, err := s.run.removeManaged(ctx, b, keep)
		if err != nil {
			return "", err
		}
		if deleted {
			s.run.countResults(apply.ObjectResult{Ref: bundleManagedResourceRef(b), Action: apply.Deleted, Cluster: s.run.owner.Local.Name()})
		}
		cluster = s.run.owner.Local
	} else if err := s.run.migrateToDirect(ctx, b); err != nil {
		return "", err
	}
	inventory := s.run.reconciler.inventory(s.run.owner, b)
	entries, err := inventory.Load(ctx)
	if err != nil {
		return "", err
	}
	used, err := s.definitionsInUse(ctx, cluster, entries)
	if err != nil {
		return "", err
	}
	if err := s.confirmDeletions(ctx, cluster, entries); err != nil {
		return "", err
	}
	if waits, err := s.removeKeepAnnotations(ctx, cluster, entries, used); err != nil || waits {
		return "its definitions cannot be deleted yet", err
	}
	of := newSet(s.run.owner, b, nil)
	of.KeepObjects = keep && b.Delivery.Direct
	result, err := s.run.reconciler.Engine.Delete(ctx, cluster, of, inventory, apply.DeleteOptions{NoWait: true, IsDeclaredElsewhere: func(ref apply.Ref) bool { return used[ref] != "" }, OnObject: s.onDeleted(b)})
	if result != nil {
		for ref, why := range used {
			s.addReportNote(fmt.Sprintf("cluster %s: %s stays, because others still have objects of it: %s", cluster.Name(), ref, why))
		}
		left = s.describePending(ctx, cluster, result)
	}
	return left, err
}

// onDeleted reports the objects of a bundle once they are deleted.
func (s *flowSteps) onDeleted(b render.Bundle) func(apply.ObjectResult) {
	tell := s.run.objectReporter(b)
	return func(res apply.ObjectResult) {
		if res.Action == apply.Deleting {
			return // reported when it no longer exists
		}
		if res.Action == apply.Deleted {
			s.run.countResults(res)
		}
		tell(res)
	}
}

// describePending describes the objects of a bundle that still exist, and why.
func (s *flowSteps) describePending(ctx context.Context, cluster *apply.Cluster, result *apply.Result) string {
	var out []string
	for _, o := range result.Pending() {
		text := fmt.Sprintf("%s %s", o.Ref, o.Message)
		if live, err := cluster.Get(ctx, o.Ref); err == nil {
			if why := controllerMessage(live); why != "" {
				text += ": " + why
			}
		}
		out = append(out, text)
	}
	if len(out) == 0 {
		return ""
	}
	return "cluster " + cluster.Name() + ": " + strings.Join(out, "; ")
}

// controllerMessage returns what the controller of an extension object or Etcd reports about a
// pending deletion, for example that a bucket has to be retained.
func controllerMessage(live *unstructured.Unstructured) string {
	for _, path := range [][]string{{"status", "lastError", "description"}, {"status", "lastOperation", "description"}} {
		if text, _, _ := unstructured.NestedString(live.Object, path...); text != "" && render.IsReconciledOnRequest(live.GroupVersionKind()) {
			return printable.Truncate(text, maxMessageLength)
		}
	}
	return ""
}

// forgetVirtualBundle forgets a bundle of the virtual garden, whose objects end with its etcd.
func (s *flowSteps) forgetVirtualBundle(ctx context.Context, b render.Bundle) error {
	o := s.run.owner
	inventory := s.run.reconciler.inventory(o, b)
	if b.Delivery.Direct {
		return inventory.Remove(ctx)
	}
	rm := &managedresource.Reconciler{Engine: s.run.reconciler.Engine, Source: o.Local, Target: o.Local, Clock: s.run.reconciler.Clock}
	if err := rm.DeleteKeepingObjects(ctx, b.Namespace, b.Name); err != nil && !meta.IsNoMatchError(err) {
		return err
	}
	for {
		result, err := s.run.reconciler.Engine.Delete(ctx, o.Local, newSet(o, b, nil), inventory, apply.DeleteOptions{NoWait: true})
		if err != nil || len(result.Pending()) == 0 {
			return err
		}
		if !s.run.sleep(ctx, teardownInterval) {
			return errors.New(s.describePending(context.WithoutCancel(ctx), o.Local, result))
		}
	}
}

// confirmDeletions confirms the deletion of objects whose webhooks demand it. The confirmation for
// the owner covers all its objects.
func (s *flowSteps) confirmDeletions(ctx context.Context, cluster *apply.Cluster, entries []apply.Entry) error {
	for _, e := range entries {
		if !render.IsReconciledOnRequest(e.Ref.GVK()) && e.Ref.GroupKind() != (schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}) {
			continue
		}
		live, err := cluster.Get(ctx, e.Ref)
		if err != nil || IsConfirmed(live) || live.GetDeletionTimestamp() != nil {
			continue // missing, or the deletion that follows reports the error
		}
		patch := map[string]any{"metadata": map[string]any{"annotations": map[string]any{AnnotationConfirmDeletion: "true"}}}
		if _, err := cluster.MergePatch(ctx, e.Ref, patch, settingsByKind[s.run.owner.Input.Owner.Kind].fieldManager, ""); err != nil && !apierrors.IsNotFound(err) {
			return cluster.Explain(e.Ref, "confirm the deletion of", err)
		}
	}
	return nil
}

// removeKeepAnnotations removes keep annotations from definitions without foreign objects, and
// reports whether any was removed.
func (s *flowSteps) removeKeepAnnotations(ctx context.Context, cluster *apply.Cluster, entries []apply.Entry, used map[apply.Ref]string) (waits bool, err error) {
	keep := conventions.ManagedResourceKeys().KeepObject
	for _, e := range entries {
		if e.Kind != "CustomResourceDefinition" || used[e.Ref] != "" {
			continue
		}
		live, err := cluster.Get(ctx, e.Ref)
		if err != nil || live.GetAnnotations()[keep] == "" {
			continue
		}
		waits = true
		patch := map[string]any{"metadata": map[string]any{"annotations": map[string]any{keep: nil}}}
		if _, err := cluster.MergePatch(ctx, e.Ref, patch, FieldManager, ""); err != nil && !apierrors.IsNotFound(err) {
			return false, cluster.Explain(e.Ref, "remove annotation "+keep, err)
		}
	}
	return waits, nil
}

// definitionsInUse returns the definitions of a bundle that have objects of others: a deletion
// would delete these, too.
func (s *flowSteps) definitionsInUse(ctx context.Context, cluster *apply.Cluster, entries []apply.Entry) (map[apply.Ref]string, error) {
	out := map[apply.Ref]string{}
	for _, e := range entries {
		if e.Kind != "CustomResourceDefinition" || cluster != s.run.owner.Local {
			continue // definitions of the virtual garden end with it
		}
		live, err := cluster.Get(ctx, e.Ref)
		if err != nil || live.GetDeletionTimestamp() != nil {
			continue
		}
		gvr, namespaced := definedResource(live)
		list, err := cluster.Dynamic().Resource(gvr).List(ctx, metav1.ListOptions{Limit: 500})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, cluster.Explain(e.Ref, "list objects of", err)
		}
		var names []string
		for _, o := range list.Items {
			name := o.GetName()
			if namespaced {
				name = o.GetNamespace() + "/" + name
			}
			names = append(names, name)
		}
		if len(names) > 0 {
			out[e.Ref] = firstNames(names)
		}
	}
	return out, nil
}

// definedResource returns the resource of a definition in its storage version.
func definedResource(crd *unstructured.Unstructured) (gvr schema.GroupVersionResource, namespaced bool) {
	gvr.Group, _, _ = unstructured.NestedString(crd.Object, "spec", "group")
	gvr.Resource, _, _ = unstructured.NestedString(crd.Object, "spec", "names", "plural")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, v := range versions {
		version, _ := v.(map[string]any)
		if version["storage"] == true {
			gvr.Version, _ = version["name"].(string)
		}
	}
	scope, _, _ := unstructured.NestedString(crd.Object, "spec", "scope")
	return gvr, scope == "Namespaced"
}

// firstNames lists the first five of many names.
func firstNames(names []string) string {
	const most = 5
	slices.Sort(names)
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// addReportNote adds a note for people to the report.
func (s *flowSteps) addReportNote(text string) {
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	if !slices.Contains(s.run.report.Notes, text) {
		s.run.report.Notes = append(s.run.report.Notes, text)
	}
}
