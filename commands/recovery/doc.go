// SPDX-License-Identifier: Apache-2.0

// Package recovery backs up the data of a landscape that is not in Git and restores it to new
// clusters. The data are CAs and keys of the secrets manager, credentials in a Garden's status, its
// UID, and executed operations. docs/reference/backup-file.md describes the file.
//
// Collect reads an Archive from clusters; Seal and Open convert it to and from a file, which is
// always encrypted (age). Plan shows what a restore would write and what prevents it. Restore
// writes it and can be interrupted at any point.
//
// Only the archive has values: printing an Entry shows names and checksums.
//
// Snapshots of etcd are separate. controllers/landscape creates the Garden and blocks its
// reconciliation during a restore.
package recovery
