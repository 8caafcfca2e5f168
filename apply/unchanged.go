// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// IsUnchanged reports, without the objects of a set, whether another Apply of the same objects
// would change nothing: all exist as the server left them. It makes no request once the caches are
// open. False may also mean unknown: values of Secrets, for example, are compared with the desired
// ones. If true, the set is tracked as after an Apply.
func (e *Engine) IsUnchanged(ctx context.Context, c *Cluster, s Set, inv Inventory) (bool, error) {
	if s.ForceOverwriteLabels || s.ForceOverwriteAnnotations {
		return false, nil
	}
	r := e.newRun(c, &s, inv, ApplyOptions{}, true)
	entries, err := inv.Load(ctx)
	if err != nil {
		return false, err
	}
	kinds := map[schema.GroupVersionKind]bool{}
	for _, entry := range entries {
		gk := entry.GroupKind()
		if entry.AppliedDigest == "" || entry.LiveDigest == "" || entry.Deleting || gk == secretKind {
			return false, nil
		}
		kinds[entry.GVK()] = true
		if gk == deploymentKind || gk == statefulSet {
			kinds[hpaKind.WithVersion("v2")] = true
		}
	}
	if err := r.openCaches(ctx, kinds); err != nil {
		return false, err
	}
	for _, entry := range entries {
		live, _ := r.cached(entry.Ref)
		if live == nil || live.GetDeletionTimestamp() != nil || hasTrueAnnotation(live, nil, e.keys.Ignore) {
			return false, nil
		}
		left := e.keys.createOnly(live, r.isAutoscaled(&desiredObject{ref: entry.Ref}))
		if !slices.Equal(left, entry.CreateOnlyFields) || slices.Contains(left, createOnlyReplicas) && isScaledToZero(live) {
			return false, nil
		}
		if r.liveDigest(live, entry.CreateOnlyFields) != entry.LiveDigest {
			return false, nil
		}
	}
	e.tracker.replaceSet(c, s.Name, s.FieldManager, entries)
	return true, nil
}
