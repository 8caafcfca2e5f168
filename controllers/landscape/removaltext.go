// SPDX-License-Identifier: Apache-2.0

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
		return fmt.Sprintf("its file no longer exists; the Garden is deleted, with everything that runs for it, once its deletion is confirmed. "+
			"To keep it, put the file back; to confirm: kubectl annotate %s %s=true", apply.KubectlName(ref), owner.AnnotationConfirmDeletion)
	}
	return fmt.Sprintf("its file no longer exists, but this version cannot delete a %s with everything that runs for it. To keep it, put the file back; to delete the object alone and leave the rest running, first run: "+
		"kubectl annotate %s %s=true", ref.Kind, apply.KubectlName(ref), owner.AnnotationConfirmDeletion)
}

// ReferenceHoldText returns why an object stays although its file no longer exists: a held object
// refers to it.
func ReferenceHoldText(holder apply.Ref) string {
	return fmt.Sprintf("%s refers to it, and is held itself", holder)
}
