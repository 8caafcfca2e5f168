// Package condition builds conditions for status.conditions: one implementation for Garden, Seed, Shoot,
// ControllerInstallation and Landscape, with the time injected.
//
// A condition is True, False, Unknown (the check itself failed) or Progressing. With a threshold for its type, a
// failing check turns True into Progressing first, and into False only when the trouble outlives the threshold.
//
// Not here: what the checks look at (health), and writing the status (controllers).
package condition
