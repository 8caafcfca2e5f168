package owner

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pergola-dev/pergola/render"
)

// TestALateStepTellsNobody checks that steps that outlive an interrupted call no longer report its
// State.
func TestALateStepTellsNobody(t *testing.T) {
	var kept State
	o := Owner{Input: render.Input{Owner: render.Owner{Kind: Shoot, Name: "a"}}, OnState: func(s State) { kept = s }}
	former := o.from(kept)
	former.note(func(s *State) { s.rendered([]render.Bundle{{Name: "old"}}) })
	assert.Equal(t, "old", kept.Bundles()[0].Name)
	former.end()
	next := o.from(kept)
	next.note(func(s *State) { s.rendered([]render.Bundle{{Name: "new"}}) })
	former.note(func(s *State) { s.sent("old", errors.New("late")) })
	assert.Equal(t, "new", kept.Bundles()[0].Name)
	assert.Empty(t, kept.failures)
}
