// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"fmt"
	"strings"
	"time"

	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/schemas"
)

// An object has one annotation for operations. So several operations on one object are requested
// one by one, each after the previous one has started.

// queueReason returns what an operation waits for when another one blocks it. If the other one is
// from Git and was requested a moment ago, withdrawing it would be wrong.
func (c *Converger) queueReason(o landscapes.Operation, e *OperationNotPossibleError, records *operationLedger) pendingReason {
	reason := pendingReason{e.obstacleText(func(o schemas.Obstacle) string { return o.Withdraw }), e.obstacleText(func(schemas.Obstacle) string { return schemas.WithdrawAdvice })}
	id, ours := strings.CutPrefix(e.object.GetAnnotations()[AnnotationOperationID], c.operationMark(""))
	first := records.byID[id]
	if !ours || id == o.ID || first.Object != o.Object() || first.Operation != e.object.GetAnnotations()[annotationOperation] {
		return reason // not requested by this landscape
	}
	text := fmt.Sprintf("operation %s, %s, on the same object was requested %s; the first sync after its start requests this one",
		id, first.Operation, first.At.UTC().Format(time.RFC3339))
	switch {
	case !isImplemented(o.Kind, first.Operation):
		text += ", but no part of Pergola implements that one in this version"
	case c.options.Clock.Since(first.At) < operationStartTime:
		return samePendingReason(text)
	}
	return pendingReason{text + ": " + reason.localText, text + ": " + reason.portableText}
}

// precedingOperation returns the operation of a change on the same object that another one must
// wait for, or nil if there is none. A confirmation has its own annotation and blocks nothing.
func precedingOperation(asked []landscapes.Operation, o landscapes.Operation) *landscapes.Operation {
	if o.Operation == schemas.OperationConfirmDeletion {
		return nil
	}
	for i := len(asked) - 1; i >= 0; i-- {
		if asked[i].Object() == o.Object() && asked[i].Operation != schemas.OperationConfirmDeletion {
			return &asked[i]
		}
	}
	return nil
}

// queuePositionText describes the operation that delays another one in a diff.
func queuePositionText(first *landscapes.Operation) string {
	if first == nil {
		return ""
	}
	text := fmt.Sprintf(", with the first sync after operation %s, %s, on the same object has started", first.ID, first.Operation)
	if !isImplemented(first.Kind, first.Operation) {
		text += ", but no part of Pergola implements that one in this version: this one waits until a controller starts it, or it is withdrawn"
	}
	return text
}
