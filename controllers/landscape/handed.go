package landscape

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
)

// noteHandedOver records the declared fields of an object that controllers own now.
func (c *Converger) noteHandedOver(cluster string, ref apply.Ref, fields []change.HandedOver) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now.handed == nil {
		c.now.handed = map[apply.Ref][]change.HandedOver{}
	}
	c.now.handed[ref] = fields
	c.now.report.HandedOver = slices.DeleteFunc(c.now.report.HandedOver, func(h change.HandedOver) bool { return h.Cluster == cluster && h.Object == ref })
	c.now.report.HandedOver = append(c.now.report.HandedOver, fields...)
}

// handedOver returns the declared fields that controllers own. It omits clusters that cannot be
// read: the owners report those errors.
func (c *Converger) handedOver(ctx context.Context) []change.HandedOver {
	if c.links.clusters[Runtime] == nil {
		return nil
	}
	var out []change.HandedOver
	parts := split(c.landscape)
	for _, cluster := range []string{Runtime, Virtual} {
		if c.links.clusters[cluster] == nil {
			continue
		}
		found, err := c.links.engine.HandedOver(ctx, c.links.clusters[cluster], c.declarationSet(cluster, parts[cluster]), c.declarationInventory(cluster))
		if err == nil {
			out = append(out, found...)
		}
	}
	return out
}

// HandedOver returns the fields of a declared object that controllers own. It uses the live object
// alone, and ignores changes in Git since the last apply.
func HandedOver(declared, live *unstructured.Unstructured) []change.HandedOver {
	return apply.HandedOverOf(apply.Set{FieldManager: FieldManager, Yields: handedOverFields()}, declared, live)
}

// isHandedOver reports whether all fields of a drift event are handed over.
func (c *Converger) isHandedOver(e apply.DriftEvent) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	left := c.now.handed[e.Ref]
	return len(e.Fields) > 0 && !slices.ContainsFunc(e.Fields, func(f change.Field) bool {
		return !slices.ContainsFunc(left, func(h change.HandedOver) bool { return h.Path == f.Path })
	})
}
