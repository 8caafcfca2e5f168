package landscape

import (
	"fmt"
	"strings"
	"time"

	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/schemas"
)

// An object has one annotation for operations: of several on one object each is asked for when the
// one before it was taken up.

// queued says what an operation waits for that cannot be asked for because of another one. That one
// may be in Git, too, and was asked for a moment ago in the same run: to withdraw it would be wrong
// then.
func (c *Converger) queued(o landscapes.Operation, e *NotPossibleError, records *operationRecords) waitsFor {
	reason := waitsFor{e.reasons(func(o schemas.Obstacle) string { return o.Withdraw }), e.reasons(func(schemas.Obstacle) string { return schemas.WithdrawAnywhere })}
	id, ours := strings.CutPrefix(e.live.GetAnnotations()[AnnotationOperationID], c.operationMark(""))
	first := records.byID[id]
	if !ours || id == o.ID || first.Object != o.Object() || first.Operation != e.live.GetAnnotations()[annotationOperation] {
		return reason // somebody else has asked for it
	}
	text := fmt.Sprintf("operation %s, %s, on the same object was asked for %s, and this one is asked for with the first sync after that one was taken up",
		id, first.Operation, first.At.UTC().Format(time.RFC3339))
	switch {
	case !isDone(o.Kind, first.Operation):
		text += ", which no part of Pergola does in this version"
	case c.options.Clock.Since(first.At) < takeUpTime:
		return everywhere(text)
	}
	return waitsFor{text + ": " + reason.here, text + ": " + reason.anywhere}
}

// precedes is the operation of a change that another one of it waits for, because both are on one
// object; nil for none. A confirmation is another annotation, and in nobody's way.
func precedes(asked []landscapes.Operation, o landscapes.Operation) *landscapes.Operation {
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

// follows says of an operation in a difference that it is not asked for at once.
func follows(first *landscapes.Operation) string {
	if first == nil {
		return ""
	}
	text := fmt.Sprintf(", with the first sync after operation %s, %s, on the same object was taken up", first.ID, first.Operation)
	if !isDone(first.Kind, first.Operation) {
		text += ", which no part of Pergola does in this version: it waits until a controller does, or until that one is withdrawn"
	}
	return text
}
