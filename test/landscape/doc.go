// Package landscape proves on real API servers what the controllers promise: a landscape that
// converges from nothing, that costs nothing when nothing changed, and that says what is wrong when
// something is. There is nothing in it but tests.
//
// The tests share one set of local clusters (hack/local) and run in a fixed order: each leaves the
// landscape converged. The environment variable PERGOLA_LOCAL names the command that starts them;
// without it, it is built.
package landscape
