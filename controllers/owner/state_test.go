// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pergola-dev/pergola/render"
)

// TestLateStepReportsNoState checks that steps that outlive an interrupted call no longer report
// its State.
func TestLateStepReportsNoState(t *testing.T) {
	var kept State
	o := Owner{Input: render.Input{Owner: render.Owner{Kind: Shoot, Name: "a"}}, OnState: func(s State) { kept = s }}
	former := o.newSession(kept)
	former.updateState(func(s *State) { s.setBundles([]render.Bundle{{Name: "old"}}) })
	assert.Equal(t, "old", kept.Bundles()[0].Name)
	former.finish()
	next := o.newSession(kept)
	next.updateState(func(s *State) { s.setBundles([]render.Bundle{{Name: "new"}}) })
	former.updateState(func(s *State) { s.recordApply("old", errors.New("late")) })
	assert.Equal(t, "new", kept.Bundles()[0].Name)
	assert.Empty(t, kept.failures)
}
