// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/controllers/owner/facts"
	"github.com/pergola-dev/pergola/render"
)

// TestFactsOfANewGarden checks that a Garden can be rendered before its definitions,
// gateway and bucket exist.
func TestFactsOfANewGarden(t *testing.T) {
	s := newSite(t)
	s.run.owner.Input.Owner.Kind = Garden
	found, err := facts.UpdateDynamic(s.ctx, s.run.owner.factsSource(), render.Facts{})
	require.NoError(t, err)
	assert.Empty(t, found.Addresses)
	assert.Empty(t, found.Extensions)
}

// TestSeedFactsSurviveOutage checks that the Seeds stay known while the virtual garden does not
// answer.
func TestSeedFactsSurviveOutage(t *testing.T) {
	s := newSite(t)
	o := s.run.owner
	o.Input.Owner.Kind = Garden
	seedsOf := func(before []render.SeedFact) []render.SeedFact {
		found, err := facts.UpdateDynamic(s.ctx, o.factsSource(), render.Facts{Seeds: before})
		require.NoError(t, err)
		return found.Seeds
	}
	before, last := []render.SeedFact{{Name: "before"}}, []render.SeedFact{{Name: "last"}}
	o.Target = o.Local // it serves no Seeds
	assert.Equal(t, before, seedsOf(before))
	assert.Empty(t, seedsOf(nil))
	o.state.seeds = last
	assert.Equal(t, last, seedsOf(nil))
	o.Target = nil
	assert.Equal(t, last, seedsOf(nil))
}
