// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"fmt"
	"time"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/schemas"
)

// PlannedOperations returns the one-shot operations that a change of a landscape adds, as items of
// a plan: merging the change requests them. Expired ones are included as failures.
func PlannedOperations(old, new *landscapes.Landscape, now time.Time) []change.Item {
	known := map[string]bool{}
	for _, o := range old.Operations {
		known[o.ID] = true
	}
	var out []change.Item
	for _, o := range new.ExpiredOperations(old, now) {
		item := operationItem(new, o)
		item.Action, item.Reason = change.Fail, fmt.Sprintf("operation %s, %s, has expired and is never executed (notAfter %s)", o.ID, o.Operation, o.NotAfter.UTC().Format(time.RFC3339))
		out = append(out, item)
	}
	var asked []landscapes.Operation
	for _, o := range new.Operations {
		if known[o.ID] || o.IsExpired(now) {
			continue
		}
		annotation, value := annotationOperation, o.Operation
		if o.Operation == schemas.OperationConfirmDeletion {
			annotation, value = owner.AnnotationConfirmDeletion, "true"
		}
		what := fmt.Sprintf("the operation %s is requested once%s", o.Operation, queuePositionText(precedingOperation(asked, o)))
		if !isImplemented(o.Kind, o.Operation) && o.Operation != schemas.OperationConfirmDeletion {
			what += "; no part of Pergola implements it in this version"
		}
		asked = append(asked, o)
		item := operationItem(new, o)
		item.Action, item.Fields, item.Consequences = change.Change, []change.Field{{Path: "metadata.annotations[" + annotation + "]", New: value}}, []string{what}
		out = append(out, item)
	}
	return out
}

// operationItem returns the item of a plan for an operation, without action.
func operationItem(l *landscapes.Landscape, o landscapes.Operation) change.Item {
	return change.Item{Cluster: operationCluster(o.Kind), Owner: "landscape " + l.Config.Name, Bundle: "operations", Object: operationTarget(o.Kind, o.Namespace, o.Name),
		Origin: fmt.Sprintf("%s:%d", o.File, o.Line)}
}
