// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/cuecontext"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// manyShoots returns different Shoots of the usual size.
func manyShoots(t testing.TB, count int) []Input {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "landscapes", "local", "projects", "local", "shoot.yaml"))
	require.NoError(t, err)
	data, err = yaml.YAMLToJSON(data)
	require.NoError(t, err)
	inputs := make([]Input, count)
	for i := range inputs {
		o := &unstructured.Unstructured{}
		require.NoError(t, o.UnmarshalJSON(data))
		o.SetName(fmt.Sprintf("shoot-%04d", i))
		inputs[i] = Input{Object: o}
	}
	return inputs
}

// BenchmarkValidate1000Shoots validates structure and rules without a cache.
func BenchmarkValidate1000Shoots(b *testing.B) {
	inputs := manyShoots(b, 1000)
	for b.Loop() {
		violations, err := Validate(b.Context(), inputs, Options{})
		require.NoError(b, err)
		require.Empty(b, violations)
	}
}

// BenchmarkValidate1000ShootsAgain validates with cached results after one Shoot changed.
func BenchmarkValidate1000ShootsAgain(b *testing.B) {
	inputs := manyShoots(b, 1000)
	opts := Options{Cache: NewCache(2000)}
	_, err := Validate(b.Context(), inputs, opts)
	require.NoError(b, err)
	i := 0
	for b.Loop() {
		i++
		inputs[500].Object.SetLabels(map[string]string{"run": fmt.Sprint(i)})
		_, err := Validate(b.Context(), inputs, opts)
		require.NoError(b, err)
	}
}

// BenchmarkPeerCueVet1000Shoots does what `cue vet` does with the same structural schema after
// reading the files: one context, one unification and validation per object, no rules.
func BenchmarkPeerCueVet1000Shoots(b *testing.B) {
	inputs := manyShoots(b, 1000)
	s, err := embeddedSources()
	require.NoError(b, err)
	kind, err := s.kinds.get(inputs[0].Object.GroupVersionKind())
	require.NoError(b, err)
	for b.Loop() {
		ctx := cuecontext.New()
		base, err := s.compileBase(ctx, kind)
		require.NoError(b, err)
		for _, in := range inputs {
			require.NoError(b, base.Unify(ctx.Encode(in.Object.Object)).Validate(cue.Concrete(true)))
		}
	}
}
