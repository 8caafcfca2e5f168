// Package permit decides which deletions and recreations may happen, and makes each permission
// count once.
//
// The rule: a Gate holds a deletion that exceeds a limit, that concerns a protected kind, or that
// no demanded review has shown. A person can approve it. A review lifts no limit. Each permission
// is for its objects alone, and counts once. The use of an approval is noted before the first
// object goes.
//
//   - gate.go, held.go: the limits by number, share and protected kind, and the objects that they
//     hold
//   - approvalid.go, approvals.go: the ids of held objects, which approvals count, and when one
//     lapses
//   - review.go, seedreview.go: the deletions that a reviewer has seen, on the clusters of the
//     operator and on a seed
//   - converged.go: which reviews an owner on a seed has behind it
//   - ledger.go: the one question of the gate to those who note uses
//   - runs.go, uses.go, notes.go: notes in the memory of a process, and in a ConfigMap of the
//     cluster of the objects
//
// Three ledgers note the use of an approval. They differ where their keepers know different things:
//
//   - The operator notes ids in the status of the Landscape. It sees one sync as a whole, and
//     people read how it went. A sync that fails has used its approvals up, because a server may
//     have deleted what it was asked to without an answer.
//   - A gardenlet notes ids with the UIDs of their objects on its seed (Uses). It repeats single
//     owners, maybe as another process. The objects may go until they are gone; an object that is
//     made anew has another UID, and may not.
//   - A process without either notes ids in its memory (Runs). It sees the result of each deletion.
//     An approval stops counting after a run that has applied everything, or that has deleted its
//     one object. Its approvals are arguments of a command, so that they end with it. Runs is
//     around the ledger of the operator, too: an object that was permitted and waits for another
//     one needs no second permission.
//
// What does not live here: deleting (apply), rendering the differences that a reviewer sees
// (operator), publishing them for a seed (seedpublication).
package permit
