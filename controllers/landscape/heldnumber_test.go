package landscape

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestHeldIn: all that a Landscape says is held counts, also what its list has no place for.
func TestHeldIn(t *testing.T) {
	for text, want := range map[string]int{
		"60 deletions and recreations wait for an approval: see status.held":                                                                                     60,
		"1 deletion or recreation waits for an approval; 50 deletions and recreations on seed eu-1 wait for an approval; Seed eu-1 on seed eu-1: " + MoreHeld(7): 58,
		"1 deletion or recreation on seed eu-2 waits for an approval":                                                                                            1,
		"nothing waits for an approval": 0,
	} {
		assert.Equal(t, want, heldIn(text), text)
	}
}
