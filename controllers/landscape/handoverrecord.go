// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
)

// recordHandedOver records the declared fields of an object that controllers own now.
func (c *Converger) recordHandedOver(cluster string, ref apply.Ref, fields []change.HandedOver) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.currentRun.handedOver == nil {
		c.currentRun.handedOver = map[apply.Ref][]change.HandedOver{}
	}
	c.currentRun.handedOver[ref] = fields
	c.currentRun.report.HandedOver = slices.DeleteFunc(c.currentRun.report.HandedOver, func(h change.HandedOver) bool { return h.Cluster == cluster && h.Object == ref })
	c.currentRun.report.HandedOver = append(c.currentRun.report.HandedOver, fields...)
}

// findHandedOver returns the declared fields that controllers own. It omits clusters that cannot be
// read: the owners report those errors.
func (c *Converger) findHandedOver(ctx context.Context) []change.HandedOver {
	if c.connections.clusters[Runtime] == nil {
		return nil
	}
	var out []change.HandedOver
	parts := splitByCluster(c.landscape)
	for _, cluster := range []string{Runtime, Virtual} {
		if c.connections.clusters[cluster] == nil {
			continue
		}
		found, err := c.connections.engine.HandedOverFields(ctx, c.connections.clusters[cluster], c.declarationSet(cluster, parts[cluster]), c.declarationInventory(cluster))
		if err == nil {
			out = append(out, found...)
		}
	}
	return out
}

// HandedOverFields returns the fields of a declared object that controllers own. It uses the live
// object alone, and ignores changes in Git since the last apply.
func HandedOverFields(declared, live *unstructured.Unstructured) []change.HandedOver {
	return apply.HandedOverFieldsOf(apply.Set{FieldManager: FieldManager, FieldPolicies: engineHandoverRules()}, declared, live)
}

// isHandedOver reports whether all fields of a drift event are handed over.
func (c *Converger) isHandedOver(e apply.DriftEvent) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	left := c.currentRun.handedOver[e.Ref]
	return len(e.Fields) > 0 && !slices.ContainsFunc(e.Fields, func(f change.Field) bool {
		return !slices.ContainsFunc(left, func(h change.HandedOver) bool { return h.Path == f.Path })
	})
}
