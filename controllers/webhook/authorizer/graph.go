package authorizer

import (
	"slices"
	"sync"
	"time"
)

// node names an object, which need not exist.
type node struct {
	kind            kind
	namespace, name string
}

// owner is a Seed or a self-hosted Shoot to which objects belong.
type owner node

// statement is all that the graph knows of one watched object.
type statement struct {
	of     node
	edges  []edge
	claims []claim
	// bootstraps are the objects that give the gardenlet of a Seed its first access.
	bootstraps []node
	// renews reports whether the gardenlet should get new access.
	renews bool
	// expires is the expiration time of the certificate of a Seed's gardenlet.
	expires time.Time
}

// edge means that from belongs to all owners of to.
type edge struct{ from, to node }

// claim means that an object belongs to an owner, regardless of edges. The Seed of a ManagedSeed
// also belongs to the parent Seed, but its references do not.
type claim struct {
	what node
	of   owner
}

func (s *statement) equal(o *statement) bool {
	return s.of == o.of && slices.Equal(s.edges, o.edges) && slices.Equal(s.claims, o.claims) && slices.Equal(s.bootstraps, o.bootstraps) &&
		s.renews == o.renews && s.expires.Equal(o.expires)
}

// graph finds the owners of an object. Each vertex counts the ways to its owners, so that a query
// is one lookup, and an update only visits changes. Counting needs a graph without cycles: edges
// always lead to a kind of higher rank.
type graph struct {
	mu       sync.RWMutex
	vertices map[node]*vertex
	// numbers of owners are not reused: owners are few and return.
	numbers map[owner]uint32
	// said contains the statements of watched objects.
	said map[node]*said
	// bootstraps maps bootstrap objects to the objects that name them.
	bootstraps map[node][]node
	edges      int
}

// said is a statement in terms of the graph's vertices.
type said struct {
	vertex     *vertex
	edges      [][2]*vertex
	claims     []held
	bootstraps []node
	renews     bool
	expires    time.Time
}

type vertex struct {
	node node
	// from are the vertices with an edge to this one, and how often it was stated. They are few:
	// the many references to a shared object point the other way.
	from []link
	// out counts edges that begin here; said is 1 while the object itself is known.
	out, said int32
	// owners are sorted by number.
	owners []share
}

type held struct {
	vertex *vertex
	owner  uint32
}

type link struct {
	vertex *vertex
	times  int32
}

// share is an owner, and the number of claims and neighbours that lead to it.
type share struct {
	owner uint32
	ways  int32
}

func newGraph() *graph {
	return &graph{vertices: map[node]*vertex{}, numbers: map[owner]uint32{}, said: map[node]*said{}, bootstraps: map[node][]node{}}
}

// set replaces the statement of an object.
func (g *graph) set(s *statement) {
	g.mu.Lock()
	defer g.mu.Unlock()
	before := g.said[s.of]
	after := &said{vertex: g.vertex(s.of), bootstraps: s.bootstraps, renews: s.renews, expires: s.expires}
	after.vertex.said++
	for _, c := range s.claims {
		h := held{g.vertex(c.what), g.number(c.of)}
		after.claims = append(after.claims, h)
		g.gain(h.vertex, h.owner)
	}
	for _, e := range s.edges {
		if e.from.kind.rank() >= e.to.kind.rank() {
			continue // no field of the API refers this way, but an object may
		}
		pair := [2]*vertex{g.vertex(e.from), g.vertex(e.to)}
		after.edges = append(after.edges, pair)
		g.connect(pair[0], pair[1])
	}
	// The new statement was added first, so that unchanged owners are not lost in between.
	g.forget(before)
	for _, b := range s.bootstraps {
		g.bootstraps[b] = append(g.bootstraps[b], s.of)
	}
	g.said[s.of] = after
}

// remove deletes the statement of an object.
func (g *graph) remove(of node) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.forget(g.said[of])
	delete(g.said, of)
}

func (g *graph) forget(s *said) {
	if s == nil {
		return
	}
	for _, b := range s.bootstraps {
		by := g.bootstraps[b]
		if i := slices.Index(by, s.vertex.node); i >= 0 {
			by = slices.Delete(by, i, i+1)
		}
		if g.bootstraps[b] = by; len(by) == 0 {
			delete(g.bootstraps, b)
		}
	}
	for _, pair := range s.edges {
		g.disconnect(pair[0], pair[1])
	}
	for _, h := range s.claims {
		g.lose(h.vertex, h.owner)
	}
	s.vertex.said--
	for _, pair := range s.edges {
		g.tidy(pair[0])
		g.tidy(pair[1])
	}
	for _, h := range s.claims {
		g.tidy(h.vertex)
	}
	g.tidy(s.vertex)
}

func (g *graph) vertex(n node) *vertex {
	v := g.vertices[n]
	if v == nil {
		v = &vertex{node: n}
		g.vertices[n] = v
	}
	return v
}

// tidy drops a vertex without statements.
func (g *graph) tidy(v *vertex) {
	if v.said == 0 && v.out == 0 && len(v.from) == 0 && len(v.owners) == 0 {
		delete(g.vertices, v.node)
	}
}

func (g *graph) number(o owner) uint32 {
	number, ok := g.numbers[o]
	if !ok {
		number = uint32(len(g.numbers))
		g.numbers[o] = number
	}
	return number
}

func (g *graph) connect(from, to *vertex) {
	if i := to.index(from); i >= 0 {
		to.from[i].times++
		return
	}
	to.from = append(to.from, link{from, 1})
	from.out++
	g.edges++
	for _, s := range to.owners {
		g.gain(from, s.owner)
	}
}

func (g *graph) disconnect(from, to *vertex) {
	i := to.index(from)
	if to.from[i].times--; to.from[i].times > 0 {
		return
	}
	to.from = slices.Delete(to.from, i, i+1)
	from.out--
	g.edges--
	for _, s := range to.owners {
		g.lose(from, s.owner)
	}
}

func (v *vertex) index(from *vertex) int {
	return slices.IndexFunc(v.from, func(l link) bool { return l.vertex == from })
}

// gain adds a way to an owner; if it is the first, also for all vertices with an edge to v.
func (g *graph) gain(v *vertex, number uint32) {
	i, found := v.share(number)
	if found {
		v.owners[i].ways++
		return
	}
	v.owners = slices.Insert(v.owners, i, share{number, 1})
	for _, l := range v.from {
		g.gain(l.vertex, number)
	}
}

// lose removes a way; if it was the last, also for all vertices with an edge to v.
func (g *graph) lose(v *vertex, number uint32) {
	i, _ := v.share(number)
	if v.owners[i].ways--; v.owners[i].ways > 0 {
		return
	}
	v.owners = slices.Delete(v.owners, i, i+1)
	for _, l := range v.from {
		g.lose(l.vertex, number)
	}
}

func (v *vertex) share(number uint32) (int, bool) {
	return slices.BinarySearchFunc(v.owners, number, func(s share, n uint32) int { return int(int64(s.owner) - int64(n)) })
}

// belongs reports whether an object belongs to an owner.
func (g *graph) belongs(n node, to owner) bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.hasWay(n, to)
}

func (g *graph) hasWay(n node, to owner) bool {
	v, number, ok := g.vertices[n], uint32(0), false
	if v != nil {
		number, ok = g.numbers[to]
	}
	if !ok {
		return false
	}
	_, ok = v.share(number)
	return ok
}

// there reports whether an object of a watched kind is known.
func (g *graph) there(n node) bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.said[n] != nil
}

// bootstrap reports whether an object gives a gardenlet its first access, and whether it may be
// created now.
func (g *graph) bootstrap(n node, now time.Time) (is, may bool) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	by, is := g.bootstraps[n]
	return is, slices.ContainsFunc(by, func(by node) bool { return g.mayBootstrap(by, now) })
}

// bootstrapsAny reports whether an owner may now bootstrap any gardenlet with an object of a kind
// in a namespace.
func (g *graph) bootstrapsAny(k kind, namespace string, to owner, now time.Time) bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	for n, by := range g.bootstraps {
		if n.kind == k && n.namespace == namespace && slices.ContainsFunc(by, func(by node) bool { return g.hasWay(by, to) && g.mayBootstrap(by, now) }) {
			return true
		}
	}
	return false
}

// mayBootstrap reports whether a gardenlet needs access: the Seed of its ManagedSeed does not exist
// yet, its certificate has expired, or a renewal is requested.
func (g *graph) mayBootstrap(by node, now time.Time) bool {
	seed := g.said[node{kind: kindSeed, name: by.name}]
	if seed == nil {
		return by.kind == kindManagedSeed
	}
	return !seed.expires.IsZero() && seed.expires.Before(now) || g.said[by].renews
}

// size counts vertices and edges.
func (g *graph) size() (vertices, edges int) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return len(g.vertices), g.edges
}
