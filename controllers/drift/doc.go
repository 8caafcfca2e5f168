// Package drift keeps clusters as they were converged, between two convergences: what somebody changes or deletes is
// repaired at once, and health is judged all the time.
//
// What does not live here: how drift is found (apply), how a set is applied again and health is judged (whoever keeps:
// landscape, gardenlet).
package drift
