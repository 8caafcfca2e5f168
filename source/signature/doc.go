// SPDX-License-Identifier: Apache-2.0

// Package signature verifies OpenPGP and SSH signatures of Git commits and annotated tags. It works
// on the bytes that Git stores, so that the verified bytes are the used ones.
//
// Keys must be valid now, not at the time that the signature claims: the owner of an expired key
// can claim any time.
//
// Package source selects the commit and handles the result.
package signature
