// Package livingtest starts a real API server for the tests of the controllers of a living cluster.
//
// Nothing else may import it.
package livingtest
