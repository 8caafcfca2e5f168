// Package fleet keeps many owners: it orders them, limits how many converge at a time, retries
// failures, and repairs drift and judges health between runs. It is level-triggered: Set says which
// members there are and what each is converged with. Converge runs them once.
//
//   - fleet.go: the members, started, superseded and dropped
//   - run.go: the runs of one member, with retries and back-off
//   - drift.go: drift of a member while somebody works on it
//   - keeper.go: the loop that finds drift on clusters and has health judged, with or without a
//     fleet
//
// What does not live here: converging one owner (owner), how drift is found (apply), which owners
// there are (landscape, gardenlet).
package fleet
