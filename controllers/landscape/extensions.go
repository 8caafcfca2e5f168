// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"context"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/render"
)

// hasRemovedExtension reports whether an applied Extension is no longer declared. Its deletion ends
// when the Garden no longer needs it, which the Garden's reconciliation decides later. So applying
// declarations must not wait for it.
func (c *Converger) hasRemovedExtension(ctx context.Context, cluster string, d *declarations) (bool, error) {
	if cluster != Runtime {
		return false, nil
	}
	declared := map[apply.Ref]bool{}
	for _, obj := range d.objects {
		declared[versionlessRef(apply.RefOf(obj))] = true
	}
	entries, err := c.declarationInventory(Runtime).Load(ctx)
	if err != nil {
		return false, err
	}
	for _, e := range entries {
		if e.GroupKind() == render.KindExtension && !declared[versionlessRef(e.Ref)] {
			return true, nil
		}
	}
	return false, nil
}
