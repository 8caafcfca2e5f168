// Package source reads landscapes from where they are kept.
//
//   - Repository: any revision of a local repository as a file system, without a checkout
//     (treefs.go).
//   - Remote: a Git repository or an OCI artifact that is polled and fetched. Resolve asks for the
//     head in one request, Fetch transfers what is new, verifies it and gives a Snapshot; At gives
//     a former revision. What was fetched is kept in a folder that survives restarts.
//
// A Remote takes everything it needs from its Options: no environment, no configuration of the
// user, no agent. What comes from the other side is untrusted: sizes, times and depths are bounded,
// nothing half-fetched is used, and no path leaves a Snapshot. Errors are of type Error and never
// show credentials.
//
// What does not live here: what the files mean (landscapes); when it is polled and what is told
// about it (controllers/operator).
package source
