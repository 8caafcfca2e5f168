// SPDX-License-Identifier: Apache-2.0

// Command engine takes one contender through the benchmark of the engine. It runs Pergola's
// resource manager or Flux's kustomize-controller as a process, or bare patches as the floor. It
// fills an empty cluster, measures, and prints a JSON sample for each scenario.
//
// hack/bench (-only engine) starts it, brings up an API server for each contender, and compares
// contenders.
package main
