// SPDX-License-Identifier: Apache-2.0

// Package flow runs a graph of steps as concurrently as the graph allows. Dependencies name the
// state that a step must reach, and a failure stops only the dependent steps. The package knows
// nothing of clusters or Gardener: the work of a step is its Run function. The graph is plain data
// that can be checked, ordered and drawn.
package flow
