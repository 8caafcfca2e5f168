// Package flow runs a graph of steps: as wide as the graph allows, with dependencies on how far a
// step has come, and failures that stop only what depends on them. It knows nothing of clusters or
// Gardener; what a step does is its Run function. The graph itself is plain data that can be
// checked, ordered and drawn.
package flow
