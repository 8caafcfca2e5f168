package mutation_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/schemas"
)

type places struct{}

func (places) Position(field string) schemas.Position {
	return schemas.Position{File: field + ".yaml", Line: 3, Column: 4}
}

func TestComplete(t *testing.T) {
	good, bad := withVersion(t, "1.35"), withVersion(t, "1.36")
	inputs := []schemas.Input{{Object: good}, {Object: bad, Positions: places{}}, {Old: good}, {Object: decoded(t, seedYAML[:len("apiVersion: core.gardener.cloud/v1beta1\nkind: Seed\nmetadata: {name: eu}")])}}
	out, refused, err := around(t, profileYAML).Complete(inputs)
	require.NoError(t, err)
	require.Len(t, out, 4)
	assert.Equal(t, "1.35", good.Object["spec"].(map[string]any)["kubernetes"].(map[string]any)["version"])
	assert.Equal(t, "1.35.2", out[0].Object.Object["spec"].(map[string]any)["kubernetes"].(map[string]any)["version"])
	assert.Nil(t, out[2].Object)
	assert.Equal(t, "true", out[3].Object.GetLabels()["name.seed.gardener.cloud/eu"])
	require.Len(t, refused, 1)
	assert.Equal(t, []any{"spec.kubernetes.version.yaml", 3, 4, "shoot/versions-offered"}, []any{refused[0].File, refused[0].Line, refused[0].Column, refused[0].Rule})
}

// BenchmarkShoot is one Shoot of a landscape, 10,000 of which are filled in by one Surroundings.
func BenchmarkShoot(b *testing.B) {
	s := around(b, profileYAML, seedYAML)
	object := shoot(b, "seedName: eu\nkubernetes: {version: '1.35'}\nprovider: {type: example, workers: [{name: a, machine: {type: arm}}, {name: b, machine: {type: intel}}]}")
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := s.Apply(object, nil); err != nil {
			b.Fatal(err)
		}
	}
}
