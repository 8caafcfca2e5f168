// SPDX-License-Identifier: Apache-2.0

// Package landscape reconciles a whole landscape. It connects to the clusters, takes the leases of
// its roles, and applies the declarations. Then it reconciles the Garden, the Seeds and the Shoots
// in that order. The same code plans a landscape, repairs its drift, and reads its state.
//
// Read converge.go first: Apply is the whole sequence in one function. effectiveobject.go has the
// inputs of Seeds and Shoots for rendering, settings.go the rules for deletions (package permit
// makes approvals count once). Operations are in operate*.go and operations.go, moves between
// landscapes in otherlandscapes.go and removalquestions.go.
//
// Other packages reconcile one owner (owner), send objects (apply), schedule syncs (operator) and
// print the state (commands/status).
package landscape
