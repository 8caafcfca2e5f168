package landscape

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/plan"
	"github.com/pergola-dev/pergola/render"
	"github.com/pergola-dev/pergola/schemas/mutation"
)

// noteHandedOver keeps which declared fields of an object are left to controllers now.
func (c *Converger) noteHandedOver(cluster string, ref apply.Ref, fields []plan.HandedOver) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.handed == nil {
		c.handed = map[apply.Ref][]plan.HandedOver{}
	}
	c.handed[ref] = fields
	c.report.HandedOver = slices.DeleteFunc(c.report.HandedOver, func(h plan.HandedOver) bool { return h.Cluster == cluster && h.Object == ref })
	c.report.HandedOver = append(c.report.HandedOver, fields...)
}

// handedOver looks which declared fields are left to controllers. A cluster that cannot be read is left out: the owners say what is wrong.
func (c *Converger) handedOver(ctx context.Context) []plan.HandedOver {
	if c.clusters[Runtime] == nil {
		return nil
	}
	var out []plan.HandedOver
	parts := split(c.landscape)
	for _, cluster := range []string{Runtime, Virtual} {
		if c.clusters[cluster] == nil {
			continue
		}
		found, err := c.engine.HandedOver(ctx, c.clusters[cluster], c.declarationSet(cluster, parts[cluster]), c.declarationInventory(cluster))
		if err == nil {
			out = append(out, found...)
		}
	}
	return out
}

// HandedOver tells which fields of a declared object are left to controllers, by the live object alone: whether Git has moved on since the
// last apply is not looked at.
func HandedOver(declared, live *unstructured.Unstructured) []plan.HandedOver {
	return apply.HandedOverOf(apply.Set{FieldManager: FieldManager, Yields: handedOverFields()}, declared, live)
}

// isHandedOver says whether all that somebody has changed in an object is left to him.
func (c *Converger) isHandedOver(e apply.DriftEvent) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	left := c.handed[e.Ref]
	return len(e.Fields) > 0 && !slices.ContainsFunc(e.Fields, func(f plan.Field) bool {
		return !slices.ContainsFunc(left, func(h plan.HandedOver) bool { return h.Path == f.Path })
	})
}

// follow makes the components of an owner those of what is in force: where a field is handed over, that is the live value. A version
// that maintenance raised must not go back because Git has the former one, and what Git leaves open is as it was chosen.
func (c *Converger) follow(o *owner.Owner, live *unstructured.Unstructured) error {
	if seed, _, _ := unstructured.NestedString(live.Object, "spec", "seedName"); o.Input.Owner.Kind == owner.Shoot && seed != "" && seed != o.Local.Name() {
		return fmt.Errorf("it is bound to seed %s, and Git says %s: its components are not reconciled on %[2]s; put the seed it has into Git", seed, o.Local.Name())
	}
	d, declared := c.landscape.Find(o.Ref.GroupKind(), o.Ref.Namespace, o.Ref.Name)
	var chosen mutation.Result
	if declared {
		chosen = c.chosen(d.Object(), live)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.declared == nil {
		c.declared = map[*owner.Owner]render.Input{}
	}
	as, known := c.declared[o]
	if !known {
		as = o.Input
		c.declared[o] = as
	}
	o.Input.Objects, o.Input.TargetVersion = as.Objects, as.TargetVersion
	fields, noted := c.handed[o.Ref]
	if declared && !noted {
		// It was not applied by this process: what is in force is what lives.
		fields = HandedOver(d.Object(), live)
	}
	if len(fields)+len(chosen.Changes) == 0 || as.Objects[as.Owner.Kind] == nil {
		return nil
	}
	o.Input.Objects = maps.Clone(as.Objects)
	object := runtime.DeepCopyJSON(as.Objects[as.Owner.Kind])
	if err := chosen.ApplyTo(&unstructured.Unstructured{Object: object}); err != nil {
		return fmt.Errorf("taking over what %s has, and Git leaves open: %w", o, err)
	}
	for _, f := range fields {
		f.Set(object)
	}
	o.Input.Objects[as.Owner.Kind] = object
	if version, _, _ := unstructured.NestedString(object, "spec", "kubernetes", "version"); o.Input.Owner.Kind == owner.Shoot && version != "" {
		o.Input.TargetVersion = version
	}
	return nil
}
