// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/owner"
)

// WatchGardenRequests calls tell, until ctx ends, when someone requests an operation of the Garden
// (annotation gardener.cloud/operation), deletes it, or confirms its deletion. It also calls tell
// for earlier requests. It causes no requests, because the Garden is watched anyway.
func (c *Converger) WatchGardenRequests(ctx context.Context, tell func()) {
	runtime := c.connections.clusters[Runtime]
	if runtime == nil {
		return
	}
	asked := make(chan struct{}, 1)
	stop := runtime.OnChange(func(e apply.ChangeEvent) {
		if !isGardenKind(e.Ref.GroupKind()) || !hasNewRequest(e.Old, e.New) {
			return
		}
		select {
		case asked <- struct{}{}:
		default:
		}
	})
	defer stop()
	for _, o := range c.ownersWithLease() {
		if o.Input.Owner.Kind != owner.Garden {
			continue
		}
		live, err := runtime.Get(ctx, o.Ref)
		if err == nil && (live.GetDeletionTimestamp() == nil && live.GetAnnotations()[annotationOperation] != "" || live.GetDeletionTimestamp() != nil && !c.hasTriedDeletion(o.Ref)) {
			tell()
		}
	}
	for ctx.Err() == nil {
		select {
		case <-asked:
			tell()
		case <-ctx.Done():
		}
	}
}

// hasNewRequest reports whether a change of a Garden contains a new request.
func hasNewRequest(old, now *unstructured.Unstructured) bool {
	if now == nil {
		return false
	}
	if now.GetDeletionTimestamp() != nil && old != nil && old.GetDeletionTimestamp() == nil {
		return true
	}
	for _, annotation := range []string{annotationOperation, owner.AnnotationConfirmDeletion, owner.AnnotationForceDeletion} {
		if value := now.GetAnnotations()[annotation]; value != "" && (annotation == annotationOperation || old != nil) && (old == nil || old.GetAnnotations()[annotation] != value) {
			return true
		}
	}
	return false
}
