package owner

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/pergola-dev/pergola/apply"
)

// TakenUp is an operation that a reconciliation has begun because its owner was asked for it.
type TakenUp struct {
	Owner     string `json:"owner"`
	Operation string `json:"operation"`
	// By is the program that asked, as the API server knows it: whose hands it was in only that
	// server's audit log tells. Empty where nobody is known.
	By string `json:"by,omitempty"`
}

func (t TakenUp) String() string {
	var operations []string // several are divided by ';', as parts of the message of a sync are
	for one := range strings.SplitSeq(t.Operation, ";") {
		operations = append(operations, strings.TrimSpace(one))
	}
	out := fmt.Sprintf("taken up: %s of %s", strings.Join(operations, ", "), t.Owner)
	if t.By != "" {
		out += ", asked for by " + t.By
	}
	return out
}

// takenUpOf says who has asked an object for an operation; nil for none.
func takenUpOf(o *subject, live *unstructured.Unstructured, asked string) *TakenUp {
	if asked == "" {
		return nil
	}
	by, _ := apply.LastOwner(live, fieldpath.MakePathOrDie("metadata", "annotations", annotationOperation))
	return &TakenUp{Owner: o.String(), Operation: asked, By: by}
}
