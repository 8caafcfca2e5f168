// Package rotation says how the rotations of an owner's credentials stand: what an operation
// begins, what a reconciliation that went well has finished, and what follows for the secrets that
// are asked for. It reads no cluster and no clock.
//
// The state is status.credentials of a Garden (upstream's API, so that a rotation can go on which
// somebody else has begun); a Shoot has the same one. A rotation in two steps is Preparing while
// new credentials are made known beside the old ones, Prepared when everybody may change over,
// Completing while the old ones are taken away, and Completed. Between the steps people look
// whether their clients have changed over.
//
// The key that encrypts etcd has one more: while it is Preparing, API servers first learn to read
// what the new key writes, all of them, and only then write with it; and it is not Prepared before
// everything was written anew.
//
// What does not live here: who takes operations up and runs the steps (controllers/owner), writing
// objects anew (rewrite.go knows how, of one cluster; seeds.go how gardenlets are asked to follow),
// making secrets (secrets), and which operation is allowed when (schemas).
package rotation
