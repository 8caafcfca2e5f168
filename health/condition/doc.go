// SPDX-License-Identifier: Apache-2.0

// Package condition builds conditions for status.conditions: one implementation for Garden, Seed,
// Shoot, ControllerInstallation and Landscape, with the time injected.
//
// A condition is True, False, Unknown (the check itself failed) or Progressing. With a threshold
// for its type, a failing check turns True into Progressing first. It turns False only when the
// failure lasts longer than the threshold.
//
// lastTransitionTime changes with the status, lastUpdateTime with any content. Thresholds count
// from lastTransitionTime. Upstream's documents say lastUpdateTime; its code and the cases recorded
// from it say lastTransitionTime. Only the latter works: each new message would restart the
// threshold. The last operation counts from its lastUpdateTime, the time of its success. A time
// ahead of the clock does not prolong a threshold.
//
// Other packages check objects (health) and write the status (controllers).
package condition
