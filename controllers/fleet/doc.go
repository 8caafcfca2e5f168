// SPDX-License-Identifier: Apache-2.0

// Package fleet manages many owners: it orders them, limits how many converge at a time, retries
// failures, and repairs drift and judges health between runs. It is level-triggered: Set defines
// the members and the input of each. Converge runs them once.
//
//   - fleet.go: the members, started, superseded and dropped
//   - run.go: the runs of one member, with retries and back-off
//   - driftqueue.go: drift of a member during a run
//   - driftrepairer.go: the loop that finds drift and triggers health checks, with or without a
//     fleet
//
// Other packages converge one owner (owner), find drift (apply) and list the owners (landscape,
// gardenlet).
package fleet
