// Package landscape converges a whole landscape: it reaches the clusters, takes the
// leases of the roles it plays, applies what Git declares, and converges the Garden, the
// Seeds and the Shoots in that order. The same code plans and keeps (repairs drift) a
// landscape, and reads its state.
//
// Read converge.go first: Apply is the whole way in one function. What a Seed or Shoot is rendered
// from is in inforce.go, what lets deletions pass in settings.go (package permit makes it count
// once), operations in operate*.go and operations.go, moves between landscapes in neighbours.go and
// removals.go.
//
// What does not live here: how one owner is converged (owner), how objects are sent (apply), when a
// landscape is synced (operator), how its state is printed (commands/status).
package landscape
