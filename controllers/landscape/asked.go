package landscape

import (
	"context"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/owner"
)

// WatchOperations tells, until ctx ends, that the Garden is asked for an operation (annotation gardener.cloud/operation): its reconciliation takes it up.
// What was asked before is told at once. Nobody is asked: the Garden is watched anyway while a landscape is kept.
func (c *Converger) WatchOperations(ctx context.Context, tell func()) {
	runtime := c.clusters[Runtime]
	if runtime == nil {
		return
	}
	for _, o := range c.ours() {
		if o.Input.Owner.Kind != owner.Garden {
			continue
		}
		asked := make(chan struct{}, 1)
		stop := runtime.OnChange(func(e apply.ChangeEvent) {
			if e.Ref != o.Ref || e.New == nil || e.New.GetAnnotations()[annotationOperation] == "" ||
				e.Old != nil && e.Old.GetAnnotations()[annotationOperation] == e.New.GetAnnotations()[annotationOperation] {
				return
			}
			select {
			case asked <- struct{}{}:
			default:
			}
		})
		if live, err := runtime.Get(ctx, o.Ref); err == nil && live.GetAnnotations()[annotationOperation] != "" {
			tell()
		}
		for ctx.Err() == nil {
			select {
			case <-asked:
				tell()
			case <-ctx.Done():
			}
		}
		stop()
	}
}
