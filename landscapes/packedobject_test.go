// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestPackedContentIsTheSame(t *testing.T) {
	for name, content := range map[string]map[string]any{
		"empty":   {},
		"numbers": {"a": int64(0), "b": int64(-1), "c": int64(math.MaxInt64), "d": int64(math.MinInt64), "e": 0.5, "f": -1e300, "g": int64(127), "h": int64(-128)},
		"others":  {"a": nil, "b": true, "c": false, "d": "", "": "empty name", "e": strings.Repeat("long", 100), "f": "\x00\u00e4"},
		"nested":  {"a": []any{}, "b": []any{nil, map[string]any{}, []any{int64(1), map[string]any{"x": []any{"y"}}}}, "c": map[string]any{"d": map[string]any{}}},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, content, pack(content).unpack()) })
	}
}

// TestPackedContentIsShared: readers get the same object while it is referenced, and an
// equal one later.
func TestPackedContentIsShared(t *testing.T) {
	ask := declaredContent{object: &unstructured.Unstructured{Object: map[string]any{"kind": "A"}}, sealed: map[string]any{"b": "c"}}.pack()
	first := ask(useShared)
	for range 3 {
		runtime.GC()
	}
	assert.Same(t, first.object, ask(useShared).object)
	runtime.KeepAlive(first)
	first = declaredContent{}
	for range 3 {
		runtime.GC()
	}
	assert.Equal(t, map[string]any{"kind": "A"}, ask(useShared).object.Object)
	assert.Equal(t, map[string]any{"b": "c"}, ask(useShared).sealed)
}

// TestContentUses: the caller owns a copy, packed or not, and loading in advance unpacks nothing.
func TestContentUses(t *testing.T) {
	content := func() declaredContent {
		return declaredContent{object: &unstructured.Unstructured{Object: map[string]any{"kind": "A", "metadata": map[string]any{"name": "a"}}}}
	}
	packed := content().pack()
	for name, ask := range map[string]contentReader{"packed": packed, "in memory": content().inMemoryReader()} {
		t.Run(name, func(t *testing.T) {
			d := &Declaration{content: ask}
			own := d.Copy()
			assert.Equal(t, content().object, own)
			own.SetName("b")
			assert.Equal(t, "a", d.Object().GetName())
			assert.NotSame(t, d.Copy(), d.Copy())
		})
	}
	assert.Nil(t, packed(usePreload).object)
}
