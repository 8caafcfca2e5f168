// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/change"
)

func TestImpacts(t *testing.T) {
	p := change.Plan{}
	for i := range 7 {
		p.Items = append(p.Items, change.Item{Cluster: "local", Owner: "shoot a/b", Bundle: "x", Action: change.Change, Object: change.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "n", Name: fmt.Sprint(i)}, Consequences: []string{"rolls its pods"}})
	}
	p.Items = append(p.Items,
		change.Item{Cluster: "runtime", Owner: "garden g", Bundle: "x", Action: change.Change, Object: change.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "n", Name: "d"}, Consequences: []string{"rolls its pods"}},
		change.Item{Cluster: "local", Owner: "seed s", Bundle: "x", Action: change.Delete, Object: change.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "n", Name: "c"}},
		change.Item{Cluster: "local", Bundle: "x", Action: change.Delete, Object: change.Ref{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: "n", Name: "data"}, Consequences: []string{"loses stored data"}},
		change.Item{Cluster: "local", Bundle: "x", Action: change.Create, Object: change.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "n", Name: "new"}})
	p.SortAndCount()
	var said []string
	for _, i := range Impacts(p) {
		said = append(said, i.Cluster+": "+i.Effect+": "+shownList(refNames(i.Objects)))
	}
	assert.Equal(t, []string{
		"local: loses stored data: PersistentVolumeClaim n/data",
		"local: is deleted: ConfigMap n/c",
		"local: rolls its pods: Deployment n/0, Deployment n/1, Deployment n/2, Deployment n/3, Deployment n/4 and 2 more",
		"runtime: rolls its pods: Deployment n/d",
	}, said, "the worst first; objects of one kind of impact on one cluster together")

	assert.Equal(t, []AffectedCluster{{Cluster: "local", Owners: []string{"seed s", "shoot a/b"}, Objects: 10, Summary: change.Summary{Create: 1, Change: 7, Delete: 2}}, {Cluster: "runtime", Owners: []string{"garden g"}, Objects: 1, Summary: change.Summary{Change: 1}}}, AffectedClusters(p))
	var out bytes.Buffer
	require.NoError(t, Print(&out, p, FormatJSON, false))
	var back struct {
		Impacts []Impact
		Reach   []AffectedCluster
	}
	require.NoError(t, json.Unmarshal(out.Bytes(), &back))
	assert.Len(t, back.Impacts, 4)
	assert.Equal(t, AffectedClusters(p), back.Reach)
}

// TestRiskyObjectsComeFirst: truncated lists and changes begin with objects that have data or
// pods.
func TestRiskyObjectsComeFirst(t *testing.T) {
	of := func(apiVersion, kind, name string) string {
		return fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {name: %s}}", apiVersion, kind, name)
	}
	var before []string
	for i := range 70 {
		before = append(before, of("rbac.authorization.k8s.io/v1", "Role", fmt.Sprintf("r%02d", i)))
	}
	before = append(before, of("apps/v1", "DaemonSet", "agent"), of("apps/v1", "Deployment", "web"), of("apps/v1", "StatefulSet", "store"),
		of("example.com/v1", "Deployment", "of-somebody"), of("v1", "ServiceAccount", "a"))
	p := CompareBundles([]ClusterBundle{bundlePlace(t, "c", "a", of("v1", "ConfigMap", "other")), bundlePlace(t, "c", "b", before...)}, nil)
	const first = "StatefulSet store, DaemonSet agent, Deployment web, ConfigMap other, "
	require.Len(t, Impacts(p), 1)
	assert.Equal(t, first+"Deployment of-somebody and 71 more", shownList(refNames(Impacts(p)[0].Objects)))
	var text bytes.Buffer
	require.NoError(t, Print(&text, p, FormatText, false))
	assert.Contains(t, text.String(), "  ! is deleted, on c: "+first)
	short := Markdown(p, 2000)
	assert.Contains(t, short, "| is deleted | c | "+first)
	assert.Contains(t, short, " and 64 more |")
	assert.Contains(t, short, "```diff\n- delete StatefulSet store\n- delete DaemonSet agent\n- delete Deployment web\n", "of the changes, too, the worst fit")
	assert.Contains(t, short, "more objects do not fit")

	// A held item is described by its reason, whatever its kind.
	p = change.Plan{}
	for _, kind := range []string{"ConfigMap", "Deployment", "PersistentVolumeClaim"} {
		p.Items = append(p.Items, change.Item{Cluster: "c", Bundle: "b", Action: change.Hold, Reason: "too many", Object: change.Ref{APIVersion: "v1", Kind: kind, Namespace: "n", Name: "a"}})
	}
	assert.Equal(t, "PersistentVolumeClaim n/a, Deployment n/a, ConfigMap n/a", shownList(refNames(Impacts(p)[0].Objects)))
}

func TestLongValuesShowWhereTheyDiffer(t *testing.T) {
	long := strings.Repeat("QUJD", 500)
	changed := long[:900] + "x" + long[901:]
	f := change.Field{Path: "spec.ca", Old: long, New: changed}
	text := fieldText(f, "")
	assert.Less(t, len(text), 450)
	assert.Contains(t, text, "x"+long[901:920])
	assert.Contains(t, text, "… (2000 characters)")
	assert.NotEqual(t, strings.Split(text, " → ")[0], strings.Split(text, " → ")[1])
	for _, line := range fieldLines(f) {
		assert.Less(t, len(line), 250)
	}
	assert.Contains(t, fieldText(change.Field{Path: "a", New: long}, ""), "(2000 characters)")
	assert.Equal(t, "a: x → y\n", fieldText(change.Field{Path: "a", Old: "x", New: "y"}, ""))
}
