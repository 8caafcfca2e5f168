// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/restmapper"
)

// discoveredKinds is the discovered API of a cluster. It is read once, and again after ResetMapping
// (a CRD was established) or for an unknown kind, if the last read is some seconds old.
type discoveredKinds struct {
	mu     sync.Mutex
	mapper meta.RESTMapper
	known  map[schema.GroupVersionKind]*meta.RESTMapping // answers of mapper, which are expensive
	readAt time.Time
}

// rediscoverAfter is the age of the discovery from which an unknown kind triggers a new one.
const rediscoverAfter = 5 * time.Second

// Mapping finds the resource and scope of a kind. An unknown kind yields a meta.NoKindMatchError.
func (c *Cluster) Mapping(ctx context.Context, gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	c.kinds.mu.Lock()
	defer c.kinds.mu.Unlock()
	if mapping := c.kinds.known[gvk]; mapping != nil {
		return mapping, nil
	}
	if c.kinds.mapper == nil {
		if err := c.discover(ctx); err != nil {
			return nil, err
		}
	}
	mapping, err := c.kinds.find(gvk)
	if !meta.IsNoMatchError(err) || c.clock.Since(c.kinds.readAt) < rediscoverAfter {
		return mapping, err
	}
	if err := c.discover(ctx); err != nil {
		return nil, err
	}
	return c.kinds.find(gvk)
}

func (k *discoveredKinds) find(gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	mapping, err := k.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err == nil {
		k.known[gvk] = mapping
	}
	return mapping, err
}

// ResetMapping makes the next Mapping read the discovery again, and drops the cached schemas.
func (c *Cluster) ResetMapping() {
	c.schemas.reset()
	c.kinds.mu.Lock()
	defer c.kinds.mu.Unlock()
	c.kinds.mapper, c.kinds.known = nil, nil
}

func (c *Cluster) discover(ctx context.Context) error {
	groups, err := restmapper.GetAPIGroupResourcesWithContext(ctx, c.discovery)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("reading the API kinds: %w", err)
	}
	if len(groups) == 0 {
		return errors.New("reading the API kinds: the server lists none")
	}
	c.kinds.mapper = restmapper.NewDiscoveryRESTMapper(groups)
	c.kinds.known = map[schema.GroupVersionKind]*meta.RESTMapping{}
	c.kinds.readAt = c.clock.Now()
	return nil
}
