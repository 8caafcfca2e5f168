// Package gardenlet is the role of that name: in a seed, it converges the Seed and its Shoots from
// what the virtual garden holds. It pulls: nobody has to reach the seed, and no Git either.
//
// Read gardenlet.go first. What it works with comes from two places: the settings and overlays that
// the operator publishes (settings.go), and the objects of the virtual garden, watched (watch.go).
// From these, every owner gets its input (inputs.go), and is a member of a fleet (package fleet),
// which converges it when that changes (sites.go, outcome.go). Drift and health are looked after
// all the time (keep.go, repair.go; unrepaired.go says what could not be brought back), also while
// the virtual garden cannot be reached; the heartbeat tells that somebody does (heartbeat.go). What
// Git makes a seed delete is held where no review has shown it (review.go); an approval lets it
// pass once (approvals.go, uses.go).
//
// What does not live here: how one owner is converged (owner), what is published (seedpublication).
package gardenlet
