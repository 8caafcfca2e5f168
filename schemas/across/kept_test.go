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

// later makes inputs whose contents count how often they are read.
func later(inputs []schemas.Input, read map[string]int) []schemas.Input {
	out := make([]schemas.Input, len(inputs))
	for i := range inputs {
		in := inputs[i]
		gvk, namespace, name := in.Identity()
		object := in.Object
		in.Later = &schemas.Later{Kind: gvk, Namespace: namespace, Name: name, Digest: digestOfContent(object), Read: func() *unstructured.Unstructured {
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

// TestWhatIsKeptIsStillTrue: whatever changes in a landscape, what was kept about it before leads
// to the same findings as looking at all of it. The changes are those of the tests of all rules,
// and versions that expire.
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
			for range 2 { // the second time with what the first one kept
				found := Check(later(e.inputs(t), map[string]int{}), Options{Now: now, External: e.External, Kept: store})
				require.Equal(t, fmt.Sprint(fresh), fmt.Sprint(found), "%d %s %s at %s", i, e.Rule, e.Why, now)
			}
		}
	}
}

// TestOnlyWhatChangedIsRead: nobody reads the content of an object that is the same, as are those
// it depends on.
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
	delete(read, "CloudProfile cloud") // what has expired meanwhile is asked of it every time
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

// unchanged makes every object one that was there before as it is now.
func unchanged(inputs []schemas.Input) []schemas.Input {
	for i := range inputs {
		inputs[i].Old = inputs[i].Object
	}
	return inputs
}

// TestUnchangedObjectsHaveNoMoreFindings is what check.kept counts on.
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

// TestFirstChangeReadsWhatChanged: what was looked at as new need not be read when something else
// changes.
func TestFirstChangeReadsWhatChanged(t *testing.T) {
	store := kept.InMemory()
	Check(later(entry{}.inputs(t), map[string]int{}), Options{Now: noon, Kept: store})
	read := map[string]int{}
	Check(later(unchanged(entry{}.inputs(t)), read), Options{Now: noon, Kept: store})
	delete(read, "CloudProfile cloud") // what has expired meanwhile is asked of it every time
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
