package owner

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/controllers/owner/facts"
	"github.com/pergola-dev/pergola/render"
)

// TestFactsOfAGardenThatIsNotThere checks that a Garden can be rendered before its definitions,
// gateway and bucket exist.
func TestFactsOfAGardenThatIsNotThere(t *testing.T) {
	s := newSite(t)
	s.work.owner.Input.Owner.Kind = Garden
	found, err := facts.Late(s.ctx, s.work.owner.site(), render.Facts{})
	require.NoError(t, err)
	assert.Empty(t, found.Addresses)
	assert.Empty(t, found.Extensions)
}

// TestSeedFactsAreKept checks that the Seeds stay known while the virtual garden does not answer.
func TestSeedFactsAreKept(t *testing.T) {
	s := newSite(t)
	o := s.work.owner
	o.Input.Owner.Kind = Garden
	seedsOf := func(before []render.SeedFact) []render.SeedFact {
		found, err := facts.Late(s.ctx, o.site(), render.Facts{Seeds: before})
		require.NoError(t, err)
		return found.Seeds
	}
	before, last := []render.SeedFact{{Name: "before"}}, []render.SeedFact{{Name: "last"}}
	o.Target = o.Local // it serves no Seeds
	assert.Equal(t, before, seedsOf(before))
	assert.Empty(t, seedsOf(nil))
	o.last.seeds = last
	assert.Equal(t, last, seedsOf(nil))
	o.Target = nil
	assert.Equal(t, last, seedsOf(nil))
}
