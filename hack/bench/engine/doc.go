// Command engine takes one contender through the benchmark of the engine: Pergola's resource
// manager or Flux's kustomize-controller as a process of its own, or bare patches as the floor. It
// fills an empty cluster, measures, and prints what it has measured as JSON, a sample for each
// scenario.
//
// It is started by hack/bench (-only engine), which brings up an API server for each contender and
// makes the table. What does not live here: starting API servers, comparing contenders.
package main
