// SPDX-License-Identifier: Apache-2.0

// Package rotation computes the state of an owner's credential rotations: how operations start
// them, how reconciliations finish them, and the resulting requests for secrets. The state itself
// needs no cluster and no clock.
//
// The state is status.credentials of a Garden in upstream's API, so a rotation that upstream began
// can continue; a Shoot has the same field. A rotation in two steps is Preparing while new
// credentials are published beside the old ones, then Prepared when clients may switch. It is
// Completing while the old ones are removed, then Completed. Before the second step people check
// whether their clients have switched.
//
// The encryption key of etcd takes one more round. While it is Preparing, all API servers first
// learn to read data of the new key, and only then write with it. It is Prepared once everything
// was rewritten.
//
// gardenletrequests.go requests operations from
// gardenlets. Other packages run the steps (controllers/owner), make secrets (secrets), and define
// which operation is allowed when (schemas).
package rotation
