// Package landscape converges a whole landscape: it reaches the clusters, takes the
// leases of the roles it plays, applies what Git declares, and converges the Garden, the
// Seeds and the Shoots in that order. The same code plans, keeps (repairs drift) and shows a
// landscape.
//
// Read converge.go first: Apply is the whole way in one function.
package landscape
