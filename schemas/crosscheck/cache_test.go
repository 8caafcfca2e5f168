// SPDX-License-Identifier: Apache-2.0

package crosscheck

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/resultcache"
)

// lazyInputs returns inputs that count how often their content is read.
func lazyInputs(inputs []schemas.Input, read map[string]int) []schemas.Input {
	out := make([]schemas.Input, len(inputs))
	for i := range inputs {
		in := inputs[i]
		gvk, namespace, name := in.Identity()
		object := in.Object
		in.Lazy = &schemas.LazyObject{Kind: gvk, Namespace: namespace, Name: name, Digest: contentDigest(object), Read: func() *unstructured.Unstructured {
			read[gvk.Kind+" "+name]++
			return object
		}}
		in.Object = nil
		out[i] = in
	}
	return out
}

func contentDigest(object *unstructured.Unstructured) resultcache.Key {
	in := schemas.Input{Object: object}
	return in.Digest()
}

// TestCachedFindingsEqualFreshOnes checks that cached results lead to the same findings as a fresh
// check. It applies the changes of all rule tests and lets versions expire.
func TestCachedFindingsEqualFreshOnes(t *testing.T) {
	data, err := os.ReadFile("testdata/tests.yaml")
	require.NoError(t, err)
	var entries []ruleTest
	require.NoError(t, sigsyaml.UnmarshalStrict(data, &entries))
	dir := t.TempDir()
	warm := resultcache.Open(dir, "good")
	require.Empty(t, Check(ruleTest{}.buildInputs(t), Options{Now: testTime, Cache: warm}))
	require.NoError(t, warm.Save())
	for i, e := range entries {
		for _, now := range []time.Time{testTime, testTime.AddDate(1, 0, 0), testTime.AddDate(-2, 0, 0)} {
			fresh := Check(e.buildInputs(t), Options{Now: now, External: e.External})
			store := resultcache.Open(dir, "good")
			for range 2 { // the second run uses the cache of the first
				found := Check(lazyInputs(e.buildInputs(t), map[string]int{}), Options{Now: now, External: e.External, Cache: store})
				require.Equal(t, fmt.Sprint(fresh), fmt.Sprint(found), "%d %s %s at %s", i, e.Rule, e.Why, now)
			}
		}
	}
}

// TestReadsOnlyChangedObjects checks that Check does not read unchanged objects with unchanged
// references.
func TestReadsOnlyChangedObjects(t *testing.T) {
	dir := t.TempDir()
	run := func(change func([]schemas.Input)) map[string]int {
		read := map[string]int{}
		store := resultcache.Open(dir, "good")
		inputs := ruleTest{}.buildInputs(t)
		change(inputs)
		Check(lazyInputs(inputs, read), Options{Now: testTime, Cache: store})
		require.NoError(t, store.Save())
		return read
	}
	relabel := func(kind string) func([]schemas.Input) {
		return func(inputs []schemas.Input) {
			for _, in := range inputs {
				if in.Object.GetKind() == kind {
					in.Object.SetLabels(map[string]string{"changed": "yes"})
				}
			}
		}
	}
	assert.NotEmpty(t, run(func([]schemas.Input) {}), "the first time all is read")
	read := run(func([]schemas.Input) {})
	delete(read, "CloudProfile cloud") // read in every run for expirations
	delete(read, "NamespacedCloudProfile special")
	assert.Empty(t, read)
	read = run(relabel("Shoot"))
	assert.Contains(t, read, "Shoot one")
	assert.NotContains(t, read, "Secret audit")
	read = run(relabel("Seed"))
	assert.Contains(t, read, "Shoot one", "it is on the Seed")
	read = run(relabel("ConfigMap"))
	assert.Contains(t, read, "Shoot one", "its audit policy is in a ConfigMap")
	assert.NotContains(t, read, "Secret audit")
}

// asUnchanged sets the previous revision of every object to the current one.
func asUnchanged(inputs []schemas.Input) []schemas.Input {
	for i := range inputs {
		inputs[i].Old = inputs[i].Object
	}
	return inputs
}

// TestUnchangedObjectsHaveNoMoreFindings checks an assumption of check.kept.
func TestUnchangedObjectsHaveNoMoreFindings(t *testing.T) {
	data, err := os.ReadFile("testdata/tests.yaml")
	require.NoError(t, err)
	var entries []ruleTest
	require.NoError(t, sigsyaml.UnmarshalStrict(data, &entries))
	fewer := 0
	for _, e := range entries {
		created := e.buildInputs(t)
		for i := range created {
			created[i].Old = nil
		}
		asNew := Check(created, Options{Now: testTime, External: e.External})
		still := Check(asUnchanged(e.buildInputs(t)), Options{Now: testTime, External: e.External})
		for _, v := range still {
			assert.Contains(t, asNew, v, "%s %s", e.Rule, e.Why)
		}
		if len(still) < len(asNew) {
			fewer++
		}
		store := resultcache.InMemory()
		Check(created, Options{Now: testTime, External: e.External, Cache: store})
		found := Check(lazyInputs(asUnchanged(e.buildInputs(t)), map[string]int{}), Options{Now: testTime, External: e.External, Cache: store})
		assert.Equal(t, fmt.Sprint(still), fmt.Sprint(found), "%s %s", e.Rule, e.Why)
	}
	assert.NotZero(t, fewer, "some rules are about new objects only")
}

// TestNewObjectsAreCachedAsUnchanged checks that objects cached as new are not read for the first
// change.
func TestNewObjectsAreCachedAsUnchanged(t *testing.T) {
	store := resultcache.InMemory()
	Check(lazyInputs(ruleTest{}.buildInputs(t), map[string]int{}), Options{Now: testTime, Cache: store})
	read := map[string]int{}
	Check(lazyInputs(asUnchanged(ruleTest{}.buildInputs(t)), read), Options{Now: testTime, Cache: store})
	delete(read, "CloudProfile cloud") // read in every run for expirations
	delete(read, "NamespacedCloudProfile special")
	assert.Empty(t, read)
}

func TestBrokenRecordsAreRejected(t *testing.T) {
	whole := cacheRecord{projectNamespace: "garden-x", cleanResult: &cleanResult{questions: []landscapeQuery{{topicContent, identity{kindSeed, "", "a"}}}, claimedValues: []uniqueValue{{"domain", "x"}}, answersDigest: resultcache.Key{1}}}
	again, ok := decodeRecord(whole.encode())
	require.True(t, ok)
	assert.Equal(t, whole, again)
	again, ok = decodeRecord(cacheRecord{}.encode())
	require.True(t, ok)
	assert.Equal(t, cacheRecord{}, again)
	for i := range whole.encode() {
		_, ok := decodeRecord(whole.encode()[:i])
		assert.False(t, ok, i)
	}
}
