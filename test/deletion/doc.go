// Package deletion proves on real API servers how a Garden ends: what keeps it, how its deletion
// goes on when that is gone, and that the runtime cluster is as it was before in the end. There is
// nothing in it but tests.
//
// The tests share one set of local clusters (hack/local) with pods that are played, and run in a
// fixed order: each begins with what the one before has left.
package deletion
