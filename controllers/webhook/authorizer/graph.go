// SPDX-License-Identifier: Apache-2.0

package authorizer

import (
	"slices"
	"sync"
	"time"
)

// objectKey names an object, which need not exist.
type objectKey struct {
	kind            kind
	namespace, name string
}

// ownerKey is a Seed or a self-hosted Shoot to which objects belong.
type ownerKey objectKey

// objectRelations is all that the graph knows of one watched object.
type objectRelations struct {
	subject objectKey
	edges   []edge
	claims  []claim
	// bootstraps are the objects that give the gardenlet of a Seed its first access.
	bootstraps []objectKey
	// isRenewalRequested reports whether the gardenlet should get new access.
	isRenewalRequested bool
	// expires is the expiration time of the certificate of a Seed's gardenlet.
	expires time.Time
}

// edge means that from belongs to all owners of to.
type edge struct{ from, to objectKey }

// claim means that an object belongs to an owner, regardless of edges. The Seed of a ManagedSeed
// also belongs to the parent Seed, but its references do not.
type claim struct {
	object objectKey
	owner  ownerKey
}

func (s *objectRelations) equal(o *objectRelations) bool {
	return s.subject == o.subject && slices.Equal(s.edges, o.edges) && slices.Equal(s.claims, o.claims) && slices.Equal(s.bootstraps, o.bootstraps) &&
		s.isRenewalRequested == o.isRenewalRequested && s.expires.Equal(o.expires)
}

// graph finds the owners of an object. Each vertex counts the ways to its owners, so that a query
// is one lookup, and an update only visits changes. Counting needs a graph without cycles: edges
// always lead to a kind of higher rank.
type graph struct {
	mu       sync.RWMutex
	vertices map[objectKey]*vertex
	// ownerNumbers of owners are not reused: owners are few and return.
	ownerNumbers map[ownerKey]uint32
	// statements contains the statements of watched objects.
	statements map[objectKey]*graphRelations
	// bootstraps maps bootstrap objects to the objects that name them.
	bootstraps map[objectKey][]objectKey
	edges      int
}

// graphRelations is a statement in terms of the graph's vertices.
type graphRelations struct {
	vertex             *vertex
	edges              [][2]*vertex
	claims             []claimedVertex
	bootstraps         []objectKey
	isRenewalRequested bool
	expires            time.Time
}

type vertex struct {
	node objectKey
	// incoming are the vertices with an edge to this one, and how often it was stated. They are
	// few: the many references to a shared object point the other way.
	incoming []incomingEdge
	// outgoingCount counts edges that begin here; statementCount is 1 while the object itself is
	// known.
	outgoingCount, statementCount int32
	// owners are sorted by number.
	owners []ownerPaths
}

type claimedVertex struct {
	vertex *vertex
	owner  uint32
}

type incomingEdge struct {
	vertex *vertex
	times  int32
}

// ownerPaths is an owner, and the number of claims and neighbours that lead to it.
type ownerPaths struct {
	owner uint32
	ways  int32
}

func newGraph() *graph {
	return &graph{vertices: map[objectKey]*vertex{}, ownerNumbers: map[ownerKey]uint32{}, statements: map[objectKey]*graphRelations{}, bootstraps: map[objectKey][]objectKey{}}
}

// setRelations replaces the statement of an object.
func (g *graph) setRelations(s *objectRelations) {
	g.mu.Lock()
	defer g.mu.Unlock()
	before := g.statements[s.subject]
	after := &graphRelations{vertex: g.vertex(s.subject), bootstraps: s.bootstraps, isRenewalRequested: s.isRenewalRequested, expires: s.expires}
	after.vertex.statementCount++
	for _, c := range s.claims {
		h := claimedVertex{g.vertex(c.object), g.ownerNumber(c.owner)}
		after.claims = append(after.claims, h)
		g.addOwnerPath(h.vertex, h.owner)
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
	g.dropRelations(before)
	for _, b := range s.bootstraps {
		g.bootstraps[b] = append(g.bootstraps[b], s.subject)
	}
	g.statements[s.subject] = after
}

// removeRelations deletes the statement of an object.
func (g *graph) removeRelations(of objectKey) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.dropRelations(g.statements[of])
	delete(g.statements, of)
}

func (g *graph) dropRelations(s *graphRelations) {
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
		g.removeOwnerPath(h.vertex, h.owner)
	}
	s.vertex.statementCount--
	for _, pair := range s.edges {
		g.dropUnusedVertex(pair[0])
		g.dropUnusedVertex(pair[1])
	}
	for _, h := range s.claims {
		g.dropUnusedVertex(h.vertex)
	}
	g.dropUnusedVertex(s.vertex)
}

func (g *graph) vertex(n objectKey) *vertex {
	v := g.vertices[n]
	if v == nil {
		v = &vertex{node: n}
		g.vertices[n] = v
	}
	return v
}

// dropUnusedVertex drops a vertex without statements.
func (g *graph) dropUnusedVertex(v *vertex) {
	if v.statementCount == 0 && v.outgoingCount == 0 && len(v.incoming) == 0 && len(v.owners) == 0 {
		delete(g.vertices, v.node)
	}
}

func (g *graph) ownerNumber(o ownerKey) uint32 {
	number, ok := g.ownerNumbers[o]
	if !ok {
		number = uint32(len(g.ownerNumbers))
		g.ownerNumbers[o] = number
	}
	return number
}

func (g *graph) connect(from, to *vertex) {
	if i := to.incomingIndex(from); i >= 0 {
		to.incoming[i].times++
		return
	}
	to.incoming = append(to.incoming, incomingEdge{from, 1})
	from.outgoingCount++
	g.edges++
	for _, s := range to.owners {
		g.addOwnerPath(from, s.owner)
	}
}

func (g *graph) disconnect(from, to *vertex) {
	i := to.incomingIndex(from)
	if to.incoming[i].times--; to.incoming[i].times > 0 {
		return
	}
	to.incoming = slices.Delete(to.incoming, i, i+1)
	from.outgoingCount--
	g.edges--
	for _, s := range to.owners {
		g.removeOwnerPath(from, s.owner)
	}
}

func (v *vertex) incomingIndex(from *vertex) int {
	return slices.IndexFunc(v.incoming, func(l incomingEdge) bool { return l.vertex == from })
}

// addOwnerPath adds a way to an owner; if it is the first, also for all vertices with an edge to v.
func (g *graph) addOwnerPath(v *vertex, number uint32) {
	i, found := v.ownerIndex(number)
	if found {
		v.owners[i].ways++
		return
	}
	v.owners = slices.Insert(v.owners, i, ownerPaths{number, 1})
	for _, l := range v.incoming {
		g.addOwnerPath(l.vertex, number)
	}
}

// removeOwnerPath removes a way; if it was the last, also for all vertices with an edge to v.
func (g *graph) removeOwnerPath(v *vertex, number uint32) {
	i, _ := v.ownerIndex(number)
	if v.owners[i].ways--; v.owners[i].ways > 0 {
		return
	}
	v.owners = slices.Delete(v.owners, i, i+1)
	for _, l := range v.incoming {
		g.removeOwnerPath(l.vertex, number)
	}
}

func (v *vertex) ownerIndex(number uint32) (int, bool) {
	return slices.BinarySearchFunc(v.owners, number, func(s ownerPaths, n uint32) int { return int(int64(s.owner) - int64(n)) })
}

// isOwnedBy reports whether an object belongs to an owner.
func (g *graph) isOwnedBy(n objectKey, to ownerKey) bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.hasOwner(n, to)
}

func (g *graph) hasOwner(n objectKey, to ownerKey) bool {
	v, number, ok := g.vertices[n], uint32(0), false
	if v != nil {
		number, ok = g.ownerNumbers[to]
	}
	if !ok {
		return false
	}
	_, ok = v.ownerIndex(number)
	return ok
}

// isKnown reports whether an object of a watched kind is known.
func (g *graph) isKnown(n objectKey) bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.statements[n] != nil
}

// bootstrapState reports whether an object gives a gardenlet its first access, and whether it may
// be created now.
func (g *graph) bootstrapState(n objectKey, now time.Time) (is, may bool) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	by, is := g.bootstraps[n]
	return is, slices.ContainsFunc(by, func(by objectKey) bool { return g.canBootstrap(by, now) })
}

// canBootstrapAny reports whether an owner may now bootstrap any gardenlet with an object of a kind
// in a namespace.
func (g *graph) canBootstrapAny(k kind, namespace string, to ownerKey, now time.Time) bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	for n, by := range g.bootstraps {
		if n.kind == k && n.namespace == namespace && slices.ContainsFunc(by, func(by objectKey) bool { return g.hasOwner(by, to) && g.canBootstrap(by, now) }) {
			return true
		}
	}
	return false
}

// canBootstrap reports whether a gardenlet needs access: the Seed of its ManagedSeed does not exist
// yet, its certificate has expired, or a renewal is requested.
func (g *graph) canBootstrap(by objectKey, now time.Time) bool {
	seed := g.statements[objectKey{kind: kindSeed, name: by.name}]
	if seed == nil {
		return by.kind == kindManagedSeed
	}
	return !seed.expires.IsZero() && seed.expires.Before(now) || g.statements[by].isRenewalRequested
}

// size counts vertices and edges.
func (g *graph) size() (vertices, edges int) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return len(g.vertices), g.edges
}
