// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/pergola-dev/pergola/apply"
)

// RequestedOperation is an operation that a reconciliation has started because an annotation
// requested it.
type RequestedOperation struct {
	Owner     string `json:"owner"`
	Operation string `json:"operation"`
	// Requestor is the requesting program, as the API server knows it; only its audit log has the
	// person. It is empty if unknown.
	Requestor string `json:"by,omitempty"`
}

func (t RequestedOperation) String() string {
	// ", " joins operations, because ';' divides the parts of a sync message.
	operations := strings.Join(strings.FieldsFunc(t.Operation, func(r rune) bool { return r == ';' || r == ' ' }), ", ")
	out := fmt.Sprintf("started: %s of %s", operations, t.Owner)
	if t.Requestor != "" {
		out += ", requested by " + t.Requestor
	}
	return out
}

// newRequestedOperation returns the requested operation with its requestor, or nil for none.
func newRequestedOperation(o *ownerSession, live *unstructured.Unstructured, asked string) *RequestedOperation {
	if asked == "" {
		return nil
	}
	by, _ := apply.LatestManager(live, fieldpath.MakePathOrDie("metadata", "annotations", annotationOperation))
	return &RequestedOperation{Owner: o.String(), Operation: asked, Requestor: by}
}
