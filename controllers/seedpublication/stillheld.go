package seedpublication

import (
	"strings"

	"github.com/pergola-dev/pergola/controllers/permit"
)

// StillHeld is why something is held, with the reason that it had before, if it was: what a review has shown counts for one sync, so that of all that
// the gate held then, and holds still, it says next that no review has shown it. That is true of the new difference, and misleads who saw it in the former one.
func StillHeld(reason, before string) string {
	switch {
	case reason != permit.NotReviewed || before == "" || before == permit.NotReviewed:
		return reason
	case strings.HasPrefix(before, permit.HeldBefore):
		return before
	}
	return permit.HeldBefore + before
}
