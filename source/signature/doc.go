// Package signature verifies OpenPGP and SSH signatures of Git commits and annotated tags. It works
// on the bytes that Git stores, so that what is verified is what is used.
//
// Validity is asked for now, not for the time that the signature claims: whoever has an expired key
// can claim any time.
//
// What does not live here: which commit is looked at, and what follows from it (source).
package signature
