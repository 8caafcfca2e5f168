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
	"github.com/pergola-dev/pergola/render"
)

const (
	// teardownInterval is how often it is looked whether what is being deleted is gone.
	teardownInterval = time.Second
	// virtualPatience is twice as long as objects of the virtual garden may take to go. They end
	// with its etcd at the latest.
	virtualPatience = 2 * time.Minute
)

// takeDownBundle takes a bundle down, and waits until nothing of it is left.
func (s *steps) takeDownBundle(ctx context.Context, b render.Bundle, keep bool, report func(flow.State, string)) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("bundle %s: %w", b.Name, err)
		}
	}()
	if b.Cluster != render.ClusterVirtual {
		return s.removeAll(ctx, b, keep, report)
	}
	if s.isLost() == "" {
		// whatever time the step has: there is something to be done after that
		limited, cancel := context.WithTimeout(ctx, s.run.timeout(virtualPatience)/2)
		err := s.removeAll(limited, b, keep, report)
		cancel()
		if err == nil || ctx.Err() != nil {
			return err
		}
		s.note(fmt.Sprintf("bundle %s: what is left of it in the virtual garden ends with its etcd: %s", b.Name, strings.Join(Problems(err), "; ")))
	}
	return s.release(ctx, b)
}

// removeAll deletes the objects of a bundle, again and again until none is left.
func (s *steps) removeAll(ctx context.Context, b render.Bundle, keep bool, report func(flow.State, string)) error {
	said := ""
	for {
		left, err := s.removeOnce(ctx, b, keep)
		if left == "" && err == nil {
			return nil
		}
		text := left
		if err != nil {
			text = strings.Join(Problems(err), "; ")
		}
		if text != said && ctx.Err() == nil {
			said = text
			report(flow.Running, text)
		}
		if !s.run.pause(ctx, teardownInterval) {
			if errors.Is(context.Cause(ctx), context.Canceled) || lost(ctx) {
				return fmt.Errorf("interrupted: %w", context.Cause(ctx))
			}
			if left != "" {
				err = errors.Join(err, errors.New(left))
			}
			return err
		}
	}
}

// removeOnce says what is left of a bundle.
func (s *steps) removeOnce(ctx context.Context, b render.Bundle, keep bool) (left string, err error) {
	cluster, err := s.run.owner.cluster(b.Cluster)
	if err != nil {
		return "", err
	}
	if !b.Delivery.Direct {
		deleted, err := s.run.removeManaged(ctx, b, keep)
		if err != nil {
			return "", err
		}
		if deleted {
			s.run.count(apply.ObjectResult{Ref: managedRef(b), Action: apply.Deleted, Cluster: s.run.owner.Local.Name()})
		}
		cluster = s.run.owner.Local
	} else if err := s.run.endManaged(ctx, b); err != nil {
		return "", err
	}
	inventory := s.run.reconciler.inventory(s.run.owner, b)
	entries, err := inventory.Load(ctx)
	if err != nil {
		return "", err
	}
	used, err := s.usedDefinitions(ctx, cluster, entries)
	if err != nil {
		return "", err
	}
	if err := s.confirm(ctx, cluster, entries); err != nil {
		return "", err
	}
	if waits, err := s.unkeep(ctx, cluster, entries, used); err != nil || waits {
		return "its definitions are not free to go yet", err
	}
	of := set(s.run.owner, b, nil)
	of.KeepObjects = keep && b.Delivery.Direct
	result, err := s.run.reconciler.Engine.Delete(ctx, cluster, of, inventory, apply.DeleteOptions{NoWait: true, DesiredElsewhere: func(ref apply.Ref) bool { return used[ref] != "" }, OnObject: s.gone(b)})
	if result != nil {
		for ref, why := range used {
			s.note(fmt.Sprintf("cluster %s: %s stays, since there are objects of others: %s", cluster.Name(), ref, why))
		}
		left = s.leftOf(ctx, cluster, result)
	}
	return left, err
}

// gone tells about the objects of a bundle that are.
func (s *steps) gone(b render.Bundle) func(apply.ObjectResult) {
	tell := s.run.progress(b)
	return func(res apply.ObjectResult) {
		if res.Action == apply.Deleting {
			return // it is told when it is gone
		}
		if res.Action == apply.Deleted {
			s.run.count(res)
		}
		tell(res)
	}
}

// leftOf says what of a bundle is not gone yet, and what it waits for.
func (s *steps) leftOf(ctx context.Context, cluster *apply.Cluster, result *apply.Result) string {
	var out []string
	for _, o := range result.Pending() {
		text := fmt.Sprintf("%s %s", o.Ref, o.Message)
		if live, err := cluster.Get(ctx, o.Ref); err == nil {
			if why := saidBy(live); why != "" {
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

// saidBy is what the controller of an extension object, or of an Etcd, says about what keeps it
// from going: a bucket that has to be retained, for example.
func saidBy(live *unstructured.Unstructured) string {
	for _, path := range [][]string{{"status", "lastError", "description"}, {"status", "lastOperation", "description"}} {
		if text, _, _ := unstructured.NestedString(live.Object, path...); text != "" && render.IsRequested(live.GroupVersionKind()) {
			return oneLine(text)
		}
	}
	return ""
}

// release forgets a bundle of the virtual garden, whose objects are left to end with its etcd.
func (s *steps) release(ctx context.Context, b render.Bundle) error {
	o := s.run.owner
	inventory := s.run.reconciler.inventory(o, b)
	if b.Delivery.Direct {
		return inventory.Remove(ctx)
	}
	rm := &managedresource.Reconciler{Engine: s.run.reconciler.Engine, Source: o.Local, Target: o.Local, Clock: s.run.reconciler.Clock}
	if err := rm.Dissolve(ctx, b.Namespace, b.Name); err != nil && !meta.IsNoMatchError(err) {
		return err
	}
	for {
		result, err := s.run.reconciler.Engine.Delete(ctx, o.Local, set(o, b, nil), inventory, apply.DeleteOptions{NoWait: true})
		if err != nil || len(result.Pending()) == 0 {
			return err
		}
		if !s.run.pause(ctx, teardownInterval) {
			return errors.New(s.leftOf(context.WithoutCancel(ctx), o.Local, result))
		}
	}
}

// confirm confirms the deletion of objects whose webhooks let nothing else go: the person who
// deletes the owner has confirmed it for all that runs for it.
func (s *steps) confirm(ctx context.Context, cluster *apply.Cluster, entries []apply.Entry) error {
	for _, e := range entries {
		if !render.IsRequested(e.Ref.GVK()) && e.Ref.GroupKind() != (schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}) {
			continue
		}
		live, err := cluster.Get(ctx, e.Ref)
		if err != nil || IsConfirmed(live) || live.GetDeletionTimestamp() != nil {
			continue // not there, or the deletion that follows says why not
		}
		patch := map[string]any{"metadata": map[string]any{"annotations": map[string]any{AnnotationConfirmDeletion: "true"}}}
		if _, err := cluster.MergePatch(ctx, e.Ref, patch, kinds[s.run.owner.Input.Owner.Kind].role, ""); err != nil && !apierrors.IsNotFound(err) {
			return cluster.Explain(e.Ref, "confirm the deletion of", err)
		}
	}
	return nil
}

// unkeep lets definitions go that otherwise stay whatever is deleted, since what is of their kinds
// would go with them: here nothing is. It waits until that is known.
func (s *steps) unkeep(ctx context.Context, cluster *apply.Cluster, entries []apply.Entry, used map[apply.Ref]string) (waits bool, err error) {
	keep := conventions.Keys().KeepObject
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
			return false, cluster.Explain(e.Ref, "take the annotation "+keep+" off", err)
		}
	}
	return waits, nil
}

// usedDefinitions are the definitions among the objects of a bundle of whose kinds there is
// something that belongs to others: that would go with them.
func (s *steps) usedDefinitions(ctx context.Context, cluster *apply.Cluster, entries []apply.Entry) (map[apply.Ref]string, error) {
	out := map[apply.Ref]string{}
	for _, e := range entries {
		if e.Kind != "CustomResourceDefinition" || cluster != s.run.owner.Local {
			continue // those of the virtual garden end with it
		}
		live, err := cluster.Get(ctx, e.Ref)
		if err != nil || live.GetDeletionTimestamp() != nil {
			continue
		}
		gvr, namespaced := servedBy(live)
		list, err := cluster.Dynamic().Resource(gvr).List(ctx, metav1.ListOptions{Limit: 500})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, cluster.Explain(e.Ref, "look for objects of", err)
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
			out[e.Ref] = firstOf(names)
		}
	}
	return out, nil
}

// servedBy is the resource that a definition defines, in the version that is stored.
func servedBy(crd *unstructured.Unstructured) (gvr schema.GroupVersionResource, namespaced bool) {
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

// firstOf names some of many.
func firstOf(names []string) string {
	const most = 5
	slices.Sort(names)
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// note puts something into the report that people should know.
func (s *steps) note(text string) {
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	if !slices.Contains(s.run.report.Notes, text) {
		s.run.report.Notes = append(s.run.report.Notes, text)
	}
}
