// Package faults holds the tests of what the engine of ManagedResources survives: its process
// killed between any two requests, API servers that restart, refuse, stall or forget, objects that
// go while they are worked on, sizes, clocks, and a second engine. All run the real controller
// (resourcemanager) on real API servers, and all end with the same check: what was asked for is
// there, inventories say what is there, nothing is left over, nothing foreign was written.
//
// What does not live here: tests of what the engine does when nothing goes wrong (apply,
// managedresource, resourcemanager).
//
// Chance comes from a seed that is printed: PERGOLA_FAULT_SEED=n repeats it. `go test -short`, as
// `make test` runs it, takes a sample of the points in time, small sizes, and clients that notice
// sooner; `make test-all PART=faults` takes all.
package faults
