package owner

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/pergola-dev/pergola/apply"
)

// TakenUp is an operation that a reconciliation has started because an annotation requested it.
type TakenUp struct {
	Owner     string `json:"owner"`
	Operation string `json:"operation"`
	// By is the requesting program, as the API server knows it; only its audit log has the person.
	// Empty if unknown.
	By string `json:"by,omitempty"`
}

func (t TakenUp) String() string {
	var operations []string // joined by ", ", because ';' divides the parts of a sync message
	for one := range strings.SplitSeq(t.Operation, ";") {
		operations = append(operations, strings.TrimSpace(one))
	}
	out := fmt.Sprintf("taken up: %s of %s", strings.Join(operations, ", "), t.Owner)
	if t.By != "" {
		out += ", asked for by " + t.By
	}
	return out
}

// takenUpOf returns the requested operation with its requestor; nil for none.
func takenUpOf(o *subject, live *unstructured.Unstructured, asked string) *TakenUp {
	if asked == "" {
		return nil
	}
	by, _ := apply.LastOwner(live, fieldpath.MakePathOrDie("metadata", "annotations", annotationOperation))
	return &TakenUp{Owner: o.String(), Operation: asked, By: by}
}
