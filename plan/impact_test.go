package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestImpacts(t *testing.T) {
	p := Plan{}
	for i := range 7 {
		p.Items = append(p.Items, Item{Cluster: "local", Owner: "shoot a/b", Bundle: "x", Action: Change, Object: Ref{"apps/v1", "Deployment", "n", fmt.Sprint(i)}, Consequences: []string{"rolls its pods"}})
	}
	p.Items = append(p.Items,
		Item{Cluster: "runtime", Owner: "garden g", Bundle: "x", Action: Change, Object: Ref{"apps/v1", "Deployment", "n", "d"}, Consequences: []string{"rolls its pods"}},
		Item{Cluster: "local", Owner: "seed s", Bundle: "x", Action: Delete, Object: Ref{"v1", "ConfigMap", "n", "c"}},
		Item{Cluster: "local", Bundle: "x", Action: Delete, Object: Ref{"v1", "PersistentVolumeClaim", "n", "data"}, Consequences: []string{"loses stored data"}},
		Item{Cluster: "local", Bundle: "x", Action: Create, Object: Ref{"v1", "ConfigMap", "n", "new"}})
	p.Sort()
	var said []string
	for _, i := range p.Impacts() {
		said = append(said, i.Cluster+": "+i.What+": "+some(names(i.Objects)))
	}
	assert.Equal(t, []string{
		"local: loses stored data: PersistentVolumeClaim n/data",
		"local: is deleted: ConfigMap n/c",
		"local: rolls its pods: Deployment n/0, Deployment n/1, Deployment n/2, Deployment n/3, Deployment n/4 and 2 more",
		"runtime: rolls its pods: Deployment n/d",
	}, said, "the worst first; objects of one kind of impact on one cluster together")

	assert.Equal(t, []Reach{{Cluster: "local", Owners: []string{"seed s", "shoot a/b"}, Objects: 10, Summary: Summary{Create: 1, Change: 7, Delete: 2}}, {Cluster: "runtime", Owners: []string{"garden g"}, Objects: 1, Summary: Summary{Change: 1}}}, p.Reaches())
	var out bytes.Buffer
	require.NoError(t, Print(&out, p, FormatJSON, false))
	var back struct {
		Impacts []Impact
		Reach   []Reach
	}
	require.NoError(t, json.Unmarshal(out.Bytes(), &back))
	assert.Len(t, back.Impacts, 4)
	assert.Equal(t, p.Reaches(), back.Reach)
}

func TestLongValuesShowWhereTheyDiffer(t *testing.T) {
	long := strings.Repeat("QUJD", 500)
	changed := long[:900] + "x" + long[901:]
	f := Field{Path: "spec.ca", Old: long, New: changed}
	text := fieldText(f, "")
	assert.Less(t, len(text), 450)
	assert.Contains(t, text, "x"+long[901:920])
	assert.Contains(t, text, "… (2000 characters)")
	assert.NotEqual(t, strings.Split(text, " → ")[0], strings.Split(text, " → ")[1])
	for _, line := range fieldLines(f) {
		assert.Less(t, len(line), 250)
	}
	assert.Contains(t, fieldText(Field{Path: "a", New: long}, ""), "(2000 characters)")
	assert.Equal(t, "a: x → y\n", fieldText(Field{Path: "a", Old: "x", New: "y"}, ""))
}
