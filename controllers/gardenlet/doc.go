// SPDX-License-Identifier: Apache-2.0

// Package gardenlet is the role gardenlet: in a seed, it reconciles the Seed and its Shoots from
// the virtual garden. It pulls: no one needs access to the seed, and the seed needs no access to
// Git.
//
// Read gardenlet.go first. There are two inputs: settings and overlays that the operator publishes
// (settings.go), and the watched objects of the virtual garden (watch.go). Each owner gets an input
// (inputs.go) and is a member of a fleet (package fleet), which reconciles it when the input
// changes (ownerworker.go, outcome.go). Drift repair and health checks (maintenance.go,
// driftrepair.go, driftreports.go) also run while the virtual garden is unreachable. The heartbeat
// (heartbeat.go) shows that they run. Deletions that no review has shown are held (review.go). An
// approval allows a held deletion once (approvals.go, approvaluses.go).
//
// Other packages reconcile one owner (owner) and publish settings (seedpublication).
package gardenlet
