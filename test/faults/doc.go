// SPDX-License-Identifier: Apache-2.0

// Package faults tests how the engine of ManagedResources survives faults: killed processes,
// restarting, failing, stalling or forgetful API servers, and concurrent deletions. It also tests
// sizes, clocks and a second engine. The tests run the real controller (resourcemanager) on real
// API servers. All end with the same check: the wanted objects exist, inventories are correct,
// nothing is left over, and nothing foreign was written.
//
// Tests without faults are in other packages (apply, managedresource, resourcemanager).
//
// Random choices use a seed that is printed: PERGOLA_FAULT_SEED=n repeats them. `go test -short`,
// as in `make test`, samples the points in time and uses small sizes and clients with faster
// detection. `make test-all PART=faults` runs everything.
package faults
