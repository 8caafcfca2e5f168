// SPDX-License-Identifier: Apache-2.0

package authorizer

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// graphContent is the content of a graph, without irrelevant details: numbers and the order of
// links.
type graphContent struct {
	owners map[objectKey]map[ownerKey]int32
	from   map[objectKey]map[objectKey]int32
	outs   map[objectKey]int32
	edges  int
	boots  map[objectKey][]objectKey
}

func (g *graph) content() graphContent {
	out := graphContent{map[objectKey]map[ownerKey]int32{}, map[objectKey]map[objectKey]int32{}, map[objectKey]int32{}, g.edges, map[objectKey][]objectKey{}}
	byNumber := map[uint32]ownerKey{}
	for o, n := range g.ownerNumbers {
		byNumber[n] = o
	}
	for n, v := range g.vertices {
		out.owners[n], out.from[n], out.outs[n] = map[ownerKey]int32{}, map[objectKey]int32{}, v.outgoingCount
		for _, s := range v.owners {
			out.owners[n][byNumber[s.owner]] = s.ways
		}
		for _, l := range v.incoming {
			out.from[n][l.vertex.node] = l.times
		}
	}
	for n, by := range g.bootstraps {
		out.boots[n] = slices.SortedFunc(slices.Values(by), compareNodes)
	}
	return out
}

// ownersByWalk computes the owners of all nodes by an ordinary walk.
func ownersByWalk(statements map[objectKey]*objectRelations) map[objectKey]map[ownerKey]bool {
	next, out := map[objectKey][]objectKey{}, map[objectKey]map[ownerKey]bool{}
	add := func(n objectKey, o ownerKey) bool {
		if out[n] == nil {
			out[n] = map[ownerKey]bool{}
		}
		had := out[n][o]
		out[n][o] = true
		return !had
	}
	var visit func(objectKey, ownerKey)
	visit = func(n objectKey, o ownerKey) {
		if add(n, o) {
			for _, before := range next[n] {
				visit(before, o)
			}
		}
	}
	for _, s := range statements {
		for _, e := range s.edges {
			if e.from.kind.rank() < e.to.kind.rank() {
				next[e.to] = append(next[e.to], e.from)
			}
		}
	}
	for _, s := range statements {
		for _, c := range s.claims {
			visit(c.object, c.owner)
		}
	}
	return out
}

// randomStatement returns a random statement with few names, so that many are shared.
func randomStatement(pick func(int) int) *objectRelations {
	someNode := func(k kind) objectKey {
		n := objectKey{kind: k, name: fmt.Sprint(pick(4))}
		if !k.isClusterScoped() {
			n.namespace = fmt.Sprint("n", pick(2))
		}
		return n
	}
	s := &objectRelations{subject: someNode(kind(1 + pick(int(kindCount)-1)))}
	for range pick(4) {
		from, to := someNode(kind(1+pick(int(kindCount)-1))), s.subject
		if pick(2) == 0 {
			from, to = to, from
		}
		s.edges = append(s.edges, edge{from, to})
	}
	for range pick(3) {
		c := claim{s.subject, seedOwner(fmt.Sprint(pick(3)))}
		if pick(3) == 0 {
			c.object = someNode(kindSecret)
		}
		s.claims = append(s.claims, c)
	}
	for range pick(2) {
		s.bootstraps = append(s.bootstraps, objectKey{kindSecret, "kube-system", s.subject.name})
	}
	return s
}

func (n objectKey) String() string { return fmt.Sprintf("%s %s/%s", n.kind, n.namespace, n.name) }

// checkGraph changes a graph randomly. It compares the result with a new graph of the final
// statements, and with a walk.
func checkGraph(t *testing.T, steps int, pick func(int) int) {
	g, statements := newGraph(), map[objectKey]*objectRelations{}
	for range steps {
		s := randomStatement(pick)
		if pick(3) == 0 {
			g.removeRelations(s.subject)
			delete(statements, s.subject)
			continue
		}
		g.setRelations(s)
		statements[s.subject] = s
	}
	anew := newGraph()
	for _, of := range slices.SortedFunc(maps.Keys(statements), func(a, b objectKey) int { return -compareNodes(a, b) }) {
		anew.setRelations(statements[of])
	}
	require.Equal(t, anew.content(), g.content())
	want := ownersByWalk(statements)
	for n, v := range g.vertices {
		require.Len(t, v.owners, len(want[n]), n.String())
	}
	for n, owners := range want {
		for o := range owners {
			require.True(t, g.isOwnedBy(n, o), n.String())
		}
	}
	for of := range statements {
		g.removeRelations(of)
	}
	require.Empty(t, g.vertices, "nothing stays of what nobody says any more")
	require.Zero(t, g.edges)
	require.Empty(t, g.statements)
	require.Empty(t, g.bootstraps)
}

func compareNodes(a, b objectKey) int {
	switch {
	case a.String() < b.String():
		return -1
	case a.String() > b.String():
		return 1
	}
	return 0
}

func TestGraphAfterRandomChanges(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 0))
		t.Run(fmt.Sprint(seed), func(t *testing.T) { checkGraph(t, 20+random.IntN(200), random.IntN) })
	}
}

func FuzzGraph(f *testing.F) {
	f.Add([]byte("what belongs to whom"))
	f.Add([]byte{0, 1, 2, 3, 255, 254, 253, 9, 9, 9, 9, 9, 9, 9, 9, 9, 17, 4, 3, 2, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		at := 0
		checkGraph(t, min(len(data), 300), func(n int) int {
			if at++; len(data) == 0 {
				return 0
			}
			return (int(data[at%len(data)]) + at/len(data)*31) % n
		})
	})
}

// TestGraphOfLandscape: real objects give the same graph in any order of changes.
func TestGraphOfLandscape(t *testing.T) {
	all := parseObjects(t, landscape)
	want := newGardenHandler(t, landscape).graph.content()
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 1))
		g := newGraph()
		for range 2 {
			random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			for _, object := range all {
				changed := object.DeepCopy()
				if spec, ok := changed.Object["spec"].(map[string]any); ok && random.IntN(2) == 0 {
					spec["seedName"], spec["resources"] = "elsewhere", nil
					g.setRelations(relationsOf(kindOf(t, changed), changed))
				}
				if random.IntN(3) == 0 {
					g.removeRelations(relationsOf(kindOf(t, object), object).subject)
				}
				g.setRelations(relationsOf(kindOf(t, object), object))
			}
		}
		got := g.content()
		delete(g.ownerNumbers, seedOwner("elsewhere"))
		assert.Equal(t, want, got)
	}
}

func TestBootstrapping(t *testing.T) {
	h := newGardenHandler(t, landscape)
	token := bootstrapTokenKey(objectKey{kindManagedSeed, "garden", "m"})
	may := func() bool {
		is, may := h.graph.bootstrapState(token, testTime)
		require.True(t, is)
		assert.Equal(t, may, h.graph.canBootstrapAny(kindSecret, "kube-system", seedOwner("a"), testTime))
		return may
	}
	assert.True(t, may(), "the Seed is not there yet")
	seed := func(status string) {
		h.addObjects(t, `[{apiVersion: core.gardener.cloud/v1beta1, kind: Seed, metadata: {name: m}, spec: {}, status: {`+status+`}}]`)
	}
	seed("")
	assert.False(t, may(), "it has registered")
	seed("clientCertificateExpirationTimestamp: '" + testTime.Add(time.Hour).Format(time.RFC3339) + "'")
	assert.False(t, may())
	seed("clientCertificateExpirationTimestamp: '" + testTime.Add(-time.Hour).Format(time.RFC3339) + "'")
	assert.True(t, may(), "its certificate has expired")
	seed("")
	h.addObjects(t, `[{apiVersion: seedmanagement.gardener.cloud/v1alpha1, kind: ManagedSeed, metadata: {name: m, namespace: garden, annotations: {gardener.cloud/operation: renew-kubeconfig}}, spec: {shoot: {name: m}, gardenlet: {bootstrap: BootstrapToken}}}]`)
	assert.True(t, may(), "somebody asks for it")
	assert.False(t, h.graph.canBootstrapAny(kindSecret, "kube-system", seedOwner("b"), testTime), "it is not on this seed")
	is, may2 := h.graph.bootstrapState(bootstrapTokenKey(objectKey{kindGardenlet, "garden", "a"}), testTime)
	assert.True(t, is)
	assert.False(t, may2, "the gardenlet of a has its access")
}
