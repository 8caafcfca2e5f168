// Package permit decides which deletions and recreations may happen, and makes each permission count once.
//
//   - gate.go: the limits by number, share and protected kind, and what stays held
//   - review.go: the deletions that a reviewer has seen
//   - approvalid.go: the ids of approvals
//   - ledger.go: where it is noted that an approval is used; runs.go notes it in the memory of a process, uses.go in a ConfigMap (notes.go) of the cluster of
//     the objects, and package operator in the status of the Landscape
//
// What does not live here: deleting (apply), rendering what a reviewer sees (operator), publishing it for a seed (seedpublication).
package permit
