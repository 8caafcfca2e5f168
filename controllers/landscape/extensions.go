package landscape

import (
	"context"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/render"
)

// extensionLeaves tells whether Git does not declare an Extension any more that is there. It goes
// when the Garden does not need it any more, which is found out by the Garden's reconciliation:
// nobody waits for it in the middle of the declarations.
func (c *Converger) extensionLeaves(ctx context.Context, cluster string, d *declarations) (bool, error) {
	if cluster != Runtime {
		return false, nil
	}
	declared := map[apply.Ref]bool{}
	for _, obj := range d.objects {
		declared[withoutVersion(apply.RefOf(obj))] = true
	}
	entries, err := c.declarationInventory(Runtime).Load(ctx)
	if err != nil {
		return false, err
	}
	for _, e := range entries {
		if e.GroupKind() == render.KindExtension && !declared[withoutVersion(e.Ref)] {
			return true, nil
		}
	}
	return false, nil
}
