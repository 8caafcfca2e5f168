// Package recovery makes a backup of what a landscape has in no Git, and restores it in new
// clusters: CAs and keys of the secrets manager, what a Garden's status says of its credentials,
// its UID, and which operations were executed. The file is described in docs/backup.md.
//
// An Archive is that in memory; Collect reads it from clusters, Seal and Open are its way to a file
// and back, which only ever holds it encrypted (age). Plan says what a restore would write, and
// what keeps it from that; Restore writes it, and can be interrupted at any point.
//
// Values are in the archive and nowhere else: what prints an Entry prints names and checksums.
//
// Not here: the data of etcd, which has snapshots of its own, and how a Garden is made and kept
// from being reconciled meanwhile (controllers/landscape).
package recovery
