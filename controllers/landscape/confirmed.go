package landscape

import (
	"fmt"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/owner"
)

// RemovalHeld says why an object of a kind of HoldsRemoval stays although its file is gone. A
// Garden goes once its deletion is confirmed. For the others there is no approval: nothing that a
// person confirms makes this version take down what runs for them.
func RemovalHeld(ref apply.Ref) string {
	if isGardenKind(ref.GroupKind()) {
		return fmt.Sprintf("its file is gone: the Garden stays as it is until its deletion is confirmed, and is taken down then, with everything that runs for it; "+
			"to confirm it: kubectl annotate %s %s=true; to keep it, put the file back", apply.KubectlName(ref), owner.AnnotationConfirmDeletion)
	}
	return fmt.Sprintf("its file is gone, but this version cannot take down a %s with what runs for it: put the file back, or delete it by hand, which needs: "+
		"kubectl annotate %s %s=true", ref.Kind, apply.KubectlName(ref), owner.AnnotationConfirmDeletion)
}

// ReferredHeld says why what another object refers to stays although its file is gone: that one
// does.
func ReferredHeld(holder apply.Ref) string {
	return fmt.Sprintf("%s refers to it, which is held itself", holder)
}
