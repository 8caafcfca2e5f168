package landscape

import (
	"fmt"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/owner"
)

// RemovalHoldText returns why an object of a kind of IsHeldOnRemoval stays although its file no
// longer exists. A Garden is deleted once its deletion is confirmed. For the other kinds no
// approval exists: this version cannot delete their components.
func RemovalHoldText(ref apply.Ref) string {
	if isGardenKind(ref.GroupKind()) {
		return fmt.Sprintf("its file is gone: the Garden stays as it is until its deletion is confirmed, and is taken down then, with everything that runs for it; "+
			"to confirm it: kubectl annotate %s %s=true; to keep it, put the file back", apply.KubectlName(ref), owner.AnnotationConfirmDeletion)
	}
	return fmt.Sprintf("its file is gone, but this version cannot take down a %s with what runs for it: put the file back, or delete it by hand, which needs: "+
		"kubectl annotate %s %s=true", ref.Kind, apply.KubectlName(ref), owner.AnnotationConfirmDeletion)
}

// ReferenceHoldText returns why an object stays although its file no longer exists: a held object
// refers to it.
func ReferenceHoldText(holder apply.Ref) string {
	return fmt.Sprintf("%s refers to it, which is held itself", holder)
}
