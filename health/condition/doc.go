// Package condition builds conditions for status.conditions: one implementation for Garden, Seed,
// Shoot, ControllerInstallation and Landscape, with the time injected.
//
// A condition is True, False, Unknown (the check itself failed) or Progressing. With a threshold
// for its type, a failing check turns True into Progressing first, and into False only when the
// trouble outlives the threshold.
//
// Two times are kept. lastTransitionTime moves when the status changes, lastUpdateTime when
// anything does. It is lastTransitionTime from which a threshold counts: upstream's documents say
// lastUpdateTime, its code and the cases recorded from it say lastTransitionTime, and only the
// latter works, since a trouble whose message changes with every check would never outlive a
// threshold that each message starts anew. The last operation is the exception: it counts from its
// lastUpdateTime, which is when it succeeded. A time that lies ahead of the clock does not prolong
// a threshold.
//
// Not here: what the checks look at (health), and writing the status (controllers).
package condition
