// SPDX-License-Identifier: Apache-2.0

// Package source reads landscapes from Git repositories and OCI artifacts.
//
//   - Repository: any revision of a local repository as a file system, without a checkout
//     (treefs.go).
//   - Remote: a Git repository or an OCI artifact to poll and fetch. Resolve asks for the head in
//     one request; Fetch transfers new objects, verifies them and returns a Snapshot; At returns an
//     earlier revision. A folder stores fetched objects across restarts.
//
// A Remote uses only its Options: no environment, no user configuration, no agent. Everything that
// a server sends is untrusted: sizes, times and depths are bounded, incomplete transfers are not
// used, and no path leaves a Snapshot. Errors are of type Error and never show credentials.
//
// Package landscapes parses the files; controllers/operator decides when to poll and reports it.
package source
