// Package fleet keeps many owners: which of them come first, how many are converged at a time, when a run is repeated, and what happens between two runs, where
// drift is repaired and health is judged. It is level-triggered: Set says which members there are and what each is converged with.
//
//   - fleet.go: the members, started, superseded and dropped
//   - run.go: the runs of one member, with retries and back-off
//   - drift.go: drift of a member while somebody works on it
//   - keeper.go: the loop that finds drift on clusters and has health judged, with or without a fleet
//
// What does not live here: converging one owner (owner), how drift is found (apply), which owners there are (landscape, gardenlet).
package fleet
