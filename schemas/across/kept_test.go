package across

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
	"github.com/pergola-dev/pergola/schemas/kept"
)

// later returns inputs that count how often their content is read.
func later(inputs []schemas.Input, read map[string]int) []schemas.Input {
	out := make([]schemas.Input, len(inputs))
	for i := range inputs {
		in := inputs[i]
		gvk, namespace, name := in.Identity()
		object := in.Object
		in.Lazy = &schemas.LazyObject{Kind: gvk, Namespace: namespace, Name: name, Digest: digestOfContent(object), Read: func() *unstructured.Unstructured {
			read[gvk.Kind+" "+name]++
			return object
		}}
		in.Object = nil
		out[i] = in
	}
	return out
}

func digestOfContent(object *unstructured.Unstructured) kept.Key {
	in := schemas.Input{Object: object}
	return in.Digest()
}

// TestWhatIsKeptIsStillTrue checks that cached results lead to the same findings as a fresh check.
// It applies the changes of all rule tests and lets versions expire.
func TestWhatIsKeptIsStillTrue(t *testing.T) {
	data, err := os.ReadFile("testdata/tests.yaml")
	require.NoError(t, err)
	var entries []entry
	require.NoError(t, sigsyaml.UnmarshalStrict(data, &entries))
	dir := t.TempDir()
	warm := kept.Open(dir, "good")
	require.Empty(t, Check(entry{}.inputs(t), Options{Now: noon, Kept: warm}))
	require.NoError(t, warm.Save())
	for i, e := range entries {
		for _, now := range []time.Time{noon, noon.AddDate(1, 0, 0), noon.AddDate(-2, 0, 0)} {
			fresh := Check(e.inputs(t), Options{Now: now, External: e.External})
			store := kept.Open(dir, "good")
			for range 2 { // the second run uses the cache of the first
				found := Check(later(e.inputs(t), map[string]int{}), Options{Now: now, External: e.External, Kept: store})
				require.Equal(t, fmt.Sprint(fresh), fmt.Sprint(found), "%d %s %s at %s", i, e.Rule, e.Why, now)
			}
		}
	}
}

// TestOnlyWhatChangedIsRead checks that Check does not read unchanged objects with unchanged
// references.
func TestOnlyWhatChangedIsRead(t *testing.T) {
	dir := t.TempDir()
	run := func(change func([]schemas.Input)) map[string]int {
		read := map[string]int{}
		store := kept.Open(dir, "good")
		inputs := entry{}.inputs(t)
		change(inputs)
		Check(later(inputs, read), Options{Now: noon, Kept: store})
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

// unchanged sets the previous revision of every object to the current one.
func unchanged(inputs []schemas.Input) []schemas.Input {
	for i := range inputs {
		inputs[i].Old = inputs[i].Object
	}
	return inputs
}

// TestUnchangedObjectsHaveNoMoreFindings checks an assumption of check.kept.
func TestUnchangedObjectsHaveNoMoreFindings(t *testing.T) {
	data, err := os.ReadFile("testdata/tests.yaml")
	require.NoError(t, err)
	var entries []entry
	require.NoError(t, sigsyaml.UnmarshalStrict(data, &entries))
	fewer := 0
	for _, e := range entries {
		created := e.inputs(t)
		for i := range created {
			created[i].Old = nil
		}
		asNew := Check(created, Options{Now: noon, External: e.External})
		still := Check(unchanged(e.inputs(t)), Options{Now: noon, External: e.External})
		for _, v := range still {
			assert.Contains(t, asNew, v, "%s %s", e.Rule, e.Why)
		}
		if len(still) < len(asNew) {
			fewer++
		}
		store := kept.InMemory()
		Check(created, Options{Now: noon, External: e.External, Kept: store})
		found := Check(later(unchanged(e.inputs(t)), map[string]int{}), Options{Now: noon, External: e.External, Kept: store})
		assert.Equal(t, fmt.Sprint(still), fmt.Sprint(found), "%s %s", e.Rule, e.Why)
	}
	assert.NotZero(t, fewer, "some rules are about new objects only")
}

// TestFirstChangeReadsWhatChanged checks that objects cached as new are not read for the first
// change.
func TestFirstChangeReadsWhatChanged(t *testing.T) {
	store := kept.InMemory()
	Check(later(entry{}.inputs(t), map[string]int{}), Options{Now: noon, Kept: store})
	read := map[string]int{}
	Check(later(unchanged(entry{}.inputs(t)), read), Options{Now: noon, Kept: store})
	delete(read, "CloudProfile cloud") // read in every run for expirations
	delete(read, "NamespacedCloudProfile special")
	assert.Empty(t, read)
}

func TestBrokenRecordsAreLeftOut(t *testing.T) {
	whole := record{namespace: "garden-x", clean: &notes{questions: []question{{aboutContent, identity{kindSeed, "", "a"}}}, uses: []use{{"domain", "x"}}, answers: kept.Key{1}}}
	again, ok := readRecord(whole.write())
	require.True(t, ok)
	assert.Equal(t, whole, again)
	again, ok = readRecord(record{}.write())
	require.True(t, ok)
	assert.Equal(t, record{}, again)
	for i := range whole.write() {
		_, ok := readRecord(whole.write()[:i])
		assert.False(t, ok, i)
	}
}
