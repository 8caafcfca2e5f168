// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// waitForCRDs waits until the CustomResourceDefinitions of a phase are served, so that objects of
// their kinds can follow in the same run.
func (r *setRun) waitForCRDs(ctx context.Context, phase []*desiredObject) {
	if r.dry {
		return
	}
	written, definitions := false, false
	for _, d := range phase {
		if d.ref.GroupKind() != crdKind {
			continue
		}
		action := r.outcomes[objectKeyOf(d.ref)].action
		if action == Failed || action == Skipped || action == Ignored {
			continue
		}
		written, definitions = written || action != Unchanged, true
		if err := r.waitForCondition(ctx, d, waitCondition{"established", "another CustomResourceDefinition may use the same names", missingCRDCondition}); err != nil {
			r.recordOutcome(r.failOutcome(d, err))
		}
	}
	if !definitions {
		return
	}
	if written {
		r.cluster.ResetMapping()
	}
	kinds := map[schema.GroupVersionKind]bool{}
	for _, d := range r.desired {
		crd := r.crds[d.ref.GroupKind()]
		if crd == nil {
			continue
		}
		// A definition that a previous run established a moment ago may not be served yet either.
		made, established := r.outcomes[objectKeyOf(RefOf(crd))]
		if _, err := r.cluster.Mapping(ctx, d.ref.GVK()); established && made.action != Failed && (written || meta.IsNoMatchError(err) && isVersionServed(crd, d.ref.GVK().Version)) {
			kinds[d.ref.GVK()] = true
		}
	}
	if len(kinds) == 0 {
		return
	}
	if err := r.waitForDiscovery(ctx, kinds); err != nil {
		r.clusterErrors = append(r.clusterErrors, r.cluster.objectErrorFor(Ref{}, "read the API kinds", err))
	}
}

// isVersionServed reports whether a CustomResourceDefinition serves a version.
func isVersionServed(crd *unstructured.Unstructured, version string) bool {
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	return slices.ContainsFunc(versions, func(v any) bool {
		m, _ := v.(map[string]any)
		return m["name"] == version && m["served"] == true
	})
}

// waitCondition is a condition of an applied object; missing returns why it is not met, or "" if it
// is.
type waitCondition struct {
	state, hint string
	missing     func(live *unstructured.Unstructured) string
}

// waitForCondition waits until an object meets a condition, for at most ReadyTimeout.
func (r *setRun) waitForCondition(ctx context.Context, d *desiredObject, a waitCondition) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	wake, err := r.cluster.Subscribe(ctx, d.ref.GVK())
	cached := err == nil
	deadline := r.engine.clock.NewTimer(r.opts.ReadyTimeout)
	defer deadline.Stop()
	for {
		live, err := r.readObject(ctx, d.ref)
		if err != nil {
			return err
		}
		missing := "it does not exist"
		if live != nil {
			missing = a.missing(live)
		}
		if missing == "" {
			return nil
		}
		select {
		case <-wake:
		case <-r.pollTimer(cached):
		case <-ctx.Done():
			return ctx.Err()
		case <-deadline.C():
			// The watch may be stuck.
			if live, err := r.cluster.GetLive(ctx, d.ref); err == nil && a.missing(live) == "" {
				return nil
			}
			return &ObjectError{Cluster: r.cluster.name, Object: d.ref, Op: "wait until " + a.state, Reason: ReasonTimeout, Source: d.source,
				Message: fmt.Sprintf("not %s after %s: %s", a.state, r.opts.ReadyTimeout, missing), Hint: a.hint}
		}
	}
}

// missingCRDCondition returns why a CustomResourceDefinition is not established, or "" if it is.
func missingCRDCondition(crd *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	state := map[any]map[string]any{}
	for _, c := range conditions {
		if m, ok := c.(map[string]any); ok {
			state[m["type"]] = m
		}
	}
	for _, kind := range []string{"NamesAccepted", "Established"} {
		c := state[kind]
		if c == nil {
			return "no condition " + kind + " yet"
		}
		if c["status"] != "True" {
			return fmt.Sprintf("%s is %v: %v", kind, c["status"], c["message"])
		}
	}
	return ""
}

// waitForDiscovery waits up to 10 s until discovery lists the kinds, and opens their live caches.
func (r *setRun) waitForDiscovery(ctx context.Context, kinds map[schema.GroupVersionKind]bool) error {
	deadline := r.engine.clock.Now().Add(10 * time.Second)
	for gvk := range kinds {
		for {
			_, err := r.cluster.Mapping(ctx, gvk)
			if err == nil || r.engine.clock.Now().After(deadline) {
				break
			}
			if !meta.IsNoMatchError(err) {
				return err
			}
			if err := r.pause(ctx, 100*time.Millisecond); err != nil {
				return err
			}
			r.cluster.ResetMapping()
		}
	}
	r.cluster.relistGroups(kinds)
	return r.openCaches(ctx, kinds)
}

// relistGroups makes caches of the same groups list again at once: their kinds may have been
// absent.
func (c *Cluster) relistGroups(kinds map[schema.GroupVersionKind]bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for gvr, w := range c.stores {
		for gvk := range kinds {
			if gvk.Group == gvr.Group {
				select {
				case w.relist <- struct{}{}:
				default:
				}
			}
		}
	}
}
