// SPDX-License-Identifier: Apache-2.0

package garbagecollector

import (
	"context"
	"errors"
	"sync"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
)

// deleteGarbage deletes garbage. A failed deletion does not stop the others; a changed object waits
// for the next scan.
func (c *collector) deleteGarbage(ctx context.Context, logger logr.Logger, garbage map[objectID]deletionCandidate) error {
	var (
		group  errgroup.Group
		mu     sync.Mutex
		failed []error
	)
	group.SetLimit(c.Workers)
	for id, o := range garbage {
		group.Go(func() error {
			gone, err := c.cluster.deleteIfUnchanged(ctx, id, o)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed = append(failed, err)
				return nil
			}
			delete(c.unreferenced, id)
			if gone {
				c.metrics.deleted.WithLabelValues(id.kind).Inc()
				logger.Info("deleted an unreferenced object", "kind", id.kind, "namespace", id.namespace, "name", id.name)
			}
			return nil
		})
	}
	_ = group.Wait()
	return errors.Join(failed...)
}
