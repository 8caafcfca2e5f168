// SPDX-License-Identifier: Apache-2.0

// Package permit decides which deletions and recreations may happen, and makes each permission
// count once.
//
// A Gate holds a deletion that exceeds a limit, that concerns a protected kind, or that a required
// review did not show. A person can approve it. A review lifts no limit. Each permission is only
// for its objects. The use of an approval is recorded before the first deletion.
//
//   - gate.go, heldobjects.go: the limits by number, share and protected kind, and the held objects
//   - approvalid.go, approvals.go: ids of held objects, valid approvals and lapsed ones
//   - review.go, seedreview.go: reviewed deletions, on the operator's clusters and on a seed
//   - convergencerecord.go: the reviews that an owner on a seed no longer needs
//   - ledger.go: the call by which the gate asks whether an approval still counts
//   - runledger.go, useledger.go, configmapstore.go: uses in the memory of a process, and in a
//     ConfigMap of the cluster of the objects
//
// Three ledgers record the use of an approval, because each process has different knowledge:
//
//   - The operator records ids in the status of the Landscape. It sees a sync as a whole, and
//     people read the result. A failed sync uses up its approvals, because a server may have
//     executed a deletion without an answer.
//   - A gardenlet records ids with the UIDs of their objects on its seed (Uses). It repeats single
//     owners, maybe after a restart. The objects may be deleted until they no longer exist; a
//     recreated object has another UID and needs another approval.
//   - Any other process records ids in its memory (Runs). It sees the result of each deletion.
//     An approval ends with a run that has applied everything, or that has deleted its one object.
//     The approvals are arguments of a command and end with it. Runs also wraps the ledger of the
//     operator: a permitted object that waits for another one needs no second permission.
//
// Other packages delete objects (apply), render the reviewed differences (operator) and publish
// them for a seed (seedpublication).
package permit
