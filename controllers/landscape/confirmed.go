package landscape

import (
	"fmt"

	"github.com/pergola-dev/pergola/apply"
)

// annotationDeletion confirms that an object may be deleted (upstream's).
const annotationDeletion = "confirmation.gardener.cloud/deletion"

// RemovalHeld says why an object of a kind of HoldsRemoval stays although its file is gone, whether its deletion is confirmed or not. There is no
// approval for it: nothing that a person confirms makes this version take down what runs for it.
func RemovalHeld(ref apply.Ref) string {
	return fmt.Sprintf("its file is gone, but this version cannot take down a %s with what runs for it: put the file back, or delete it by hand, "+
		"with everything that belongs to it; the API demands for that: kubectl annotate %s %s=true", ref.Kind, apply.KubectlName(ref), annotationDeletion)
}
