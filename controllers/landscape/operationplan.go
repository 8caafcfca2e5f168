package landscape

import (
	"fmt"
	"time"

	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/plan"
	"github.com/pergola-dev/pergola/schemas"
)

// PlannedOperations are the one-shot operations that come with a change of a landscape, as items of a plan: who merges it asks for them.
// Those that have expired by now are left out.
func PlannedOperations(old, new *landscapes.Landscape, now time.Time) []plan.Item {
	known := map[string]bool{}
	for _, o := range old.Operations {
		known[o.ID] = true
	}
	var out []plan.Item
	var asked []landscapes.Operation
	for _, o := range new.Operations {
		if known[o.ID] || !o.NotAfter.IsZero() && now.After(o.NotAfter) {
			continue
		}
		annotation, value := annotationOperation, o.Operation
		if o.Operation == schemas.OperationConfirmDeletion {
			annotation, value = annotationDeletion, "true"
		}
		what := fmt.Sprintf("the operation %s is asked for, once%s", o.Operation, follows(precedes(asked, o)))
		if !isDone(o.Kind, o.Operation) && o.Operation != schemas.OperationConfirmDeletion {
			what += "; no part of Pergola does it in this version"
		}
		asked = append(asked, o)
		out = append(out, plan.Item{
			Cluster: operatedCluster(o.Kind), Owner: "landscape " + new.Config.Name, Bundle: "operations", Object: operatedRef(o.Kind, o.Namespace, o.Name),
			Action: plan.Change, Origin: fmt.Sprintf("%s:%d", o.File, o.Line), Fields: []plan.Field{{Path: "metadata.annotations[" + annotation + "]", New: value}}, Consequences: []string{what},
		})
	}
	return out
}
