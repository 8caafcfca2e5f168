// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/change"
)

// TestAdmitRefusesChanges: an object whose change is refused stays as it is and in the inventory,
// and blocks no other object. New and unchanged objects need no admission.
func TestAdmitRefusesChanges(t *testing.T) {
	f := newFixture(t)
	var mu sync.Mutex // Admit is called concurrently
	var asked []string
	opts := ApplyOptions{Admit: func(_ context.Context, live, next *unstructured.Unstructured) error {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, nested(live, "data", "key").(string)+" → "+nested(next, "data", "key").(string))
		if nested(next, "data", "key") == "no" {
			return errors.New("data.key: must stay")
		}
		return nil
	}}
	apply := func(values ...string) (*Result, error) {
		var objects []*unstructured.Unstructured
		for i, v := range values {
			objects = append(objects, f.configMap(string(rune('a'+i)), v))
		}
		return f.e.Apply(f.ctx, f.cluster(), f.set(objects...), f.inv, opts)
	}
	_, err := apply("one", "one", "one")
	require.NoError(t, err)
	assert.Empty(t, asked, "new objects")

	r, err := apply("one", "no", "two")
	require.ErrorContains(t, err, "data.key: must stay")
	assert.Equal(t, map[string]Action{"ConfigMap/a": Unchanged, "ConfigMap/b": Failed, "ConfigMap/c": Configured}, actions(r))
	assert.ElementsMatch(t, []string{"one → no", "one → two"}, asked)
	assert.Equal(t, "one", nested(f.get(f.configMap("b", "")), "data", "key"))

	p, err := f.e.Plan(f.ctx, f.cluster(), f.set(f.configMap("a", "one"), f.configMap("b", "no"), f.configMap("c", "two")), f.inv, opts)
	require.ErrorContains(t, err, "data.key: must stay")
	require.Len(t, p.Items, 1)
	assert.Equal(t, change.Fail, p.Items[0].Action)

	_, err = apply("one", "yes", "two")
	require.NoError(t, err)
	assert.Equal(t, "yes", nested(f.get(f.configMap("b", "")), "data", "key"))
	_, err = apply("one")
	require.NoError(t, err)
	assert.False(t, f.exists(f.configMap("b", "")), "it stayed in the inventory all the time")
}
