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

// told is the content of a graph, without irrelevant details: numbers and the order of links.
type told struct {
	owners map[node]map[owner]int32
	from   map[node]map[node]int32
	outs   map[node]int32
	edges  int
	boots  map[node][]node
}

func (g *graph) told() told {
	out := told{map[node]map[owner]int32{}, map[node]map[node]int32{}, map[node]int32{}, g.edges, map[node][]node{}}
	byNumber := map[uint32]owner{}
	for o, n := range g.numbers {
		byNumber[n] = o
	}
	for n, v := range g.vertices {
		out.owners[n], out.from[n], out.outs[n] = map[owner]int32{}, map[node]int32{}, v.out
		for _, s := range v.owners {
			out.owners[n][byNumber[s.owner]] = s.ways
		}
		for _, l := range v.from {
			out.from[n][l.vertex.node] = l.times
		}
	}
	for n, by := range g.bootstraps {
		out.boots[n] = slices.SortedFunc(slices.Values(by), compareNodes)
	}
	return out
}

// reached computes the owners of all nodes by an ordinary walk.
func reached(statements map[node]*statement) map[node]map[owner]bool {
	next, out := map[node][]node{}, map[node]map[owner]bool{}
	add := func(n node, o owner) bool {
		if out[n] == nil {
			out[n] = map[owner]bool{}
		}
		had := out[n][o]
		out[n][o] = true
		return !had
	}
	var visit func(node, owner)
	visit = func(n node, o owner) {
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
			visit(c.what, c.of)
		}
	}
	return out
}

// someStatement returns a random statement with few names, so that many are shared.
func someStatement(pick func(int) int) *statement {
	someNode := func(k kind) node {
		n := node{kind: k, name: fmt.Sprint(pick(4))}
		if !k.clusterScoped() {
			n.namespace = fmt.Sprint("n", pick(2))
		}
		return n
	}
	s := &statement{of: someNode(kind(1 + pick(int(kinds)-1)))}
	for range pick(4) {
		from, to := someNode(kind(1+pick(int(kinds)-1))), s.of
		if pick(2) == 0 {
			from, to = to, from
		}
		s.edges = append(s.edges, edge{from, to})
	}
	for range pick(3) {
		c := claim{s.of, seedOwner(fmt.Sprint(pick(3)))}
		if pick(3) == 0 {
			c.what = someNode(kindSecret)
		}
		s.claims = append(s.claims, c)
	}
	for range pick(2) {
		s.bootstraps = append(s.bootstraps, node{kindSecret, "kube-system", s.of.name})
	}
	return s
}

func (n node) String() string { return fmt.Sprintf("%s %s/%s", n.kind, n.namespace, n.name) }

// checkGraph changes a graph randomly. It compares the result with a new graph of the final
// statements, and with a walk.
func checkGraph(t *testing.T, steps int, pick func(int) int) {
	g, statements := newGraph(), map[node]*statement{}
	for range steps {
		s := someStatement(pick)
		if pick(3) == 0 {
			g.remove(s.of)
			delete(statements, s.of)
			continue
		}
		g.set(s)
		statements[s.of] = s
	}
	anew := newGraph()
	for _, of := range slices.SortedFunc(maps.Keys(statements), func(a, b node) int { return -compareNodes(a, b) }) {
		anew.set(statements[of])
	}
	require.Equal(t, anew.told(), g.told())
	want := reached(statements)
	for n, v := range g.vertices {
		require.Len(t, v.owners, len(want[n]), n.String())
	}
	for n, owners := range want {
		for o := range owners {
			require.True(t, g.belongs(n, o), n.String())
		}
	}
	for of := range statements {
		g.remove(of)
	}
	require.Empty(t, g.vertices, "nothing stays of what nobody says any more")
	require.Zero(t, g.edges)
	require.Empty(t, g.said)
	require.Empty(t, g.bootstraps)
}

func compareNodes(a, b node) int {
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
	all := objects(t, landscape)
	want := garden(t, landscape).graph.told()
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 1))
		g := newGraph()
		for range 2 {
			random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			for _, object := range all {
				changed := object.DeepCopy()
				if spec, ok := changed.Object["spec"].(map[string]any); ok && random.IntN(2) == 0 {
					spec["seedName"], spec["resources"] = "elsewhere", nil
					g.set(speak(kindOf(t, changed), changed))
				}
				if random.IntN(3) == 0 {
					g.remove(speak(kindOf(t, object), object).of)
				}
				g.set(speak(kindOf(t, object), object))
			}
		}
		got := g.told()
		delete(g.numbers, seedOwner("elsewhere"))
		assert.Equal(t, want, got)
	}
}

func TestBootstrapping(t *testing.T) {
	h := garden(t, landscape)
	token := bootstrapToken(node{kindManagedSeed, "garden", "m"})
	may := func() bool {
		is, may := h.graph.bootstrap(token, now)
		require.True(t, is)
		assert.Equal(t, may, h.graph.bootstrapsAny(kindSecret, "kube-system", seedOwner("a"), now))
		return may
	}
	assert.True(t, may(), "the Seed is not there yet")
	seed := func(status string) {
		h.learn(t, `[{apiVersion: core.gardener.cloud/v1beta1, kind: Seed, metadata: {name: m}, spec: {}, status: {`+status+`}}]`)
	}
	seed("")
	assert.False(t, may(), "it has registered")
	seed("clientCertificateExpirationTimestamp: '" + now.Add(time.Hour).Format(time.RFC3339) + "'")
	assert.False(t, may())
	seed("clientCertificateExpirationTimestamp: '" + now.Add(-time.Hour).Format(time.RFC3339) + "'")
	assert.True(t, may(), "its certificate has expired")
	seed("")
	h.learn(t, `[{apiVersion: seedmanagement.gardener.cloud/v1alpha1, kind: ManagedSeed, metadata: {name: m, namespace: garden, annotations: {gardener.cloud/operation: renew-kubeconfig}}, spec: {shoot: {name: m}, gardenlet: {bootstrap: BootstrapToken}}}]`)
	assert.True(t, may(), "somebody asks for it")
	assert.False(t, h.graph.bootstrapsAny(kindSecret, "kube-system", seedOwner("b"), now), "it is not on this seed")
	is, may2 := h.graph.bootstrap(bootstrapToken(node{kindGardenlet, "garden", "a"}), now)
	assert.True(t, is)
	assert.False(t, may2, "the gardenlet of a has its access")
}
