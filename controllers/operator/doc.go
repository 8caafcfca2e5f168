// SPDX-License-Identifier: Apache-2.0

// Package operator is the role `pergola operator`: it applies each Landscape object's Git
// repository to its clusters. One landscapeReconciler per Landscape:
//   - polls the source and decides whether a sync is due (syncdecision.go, a pure function),
//   - prepares a revision (preparation.go): it loads and validates it (revisionreader.go;
//     examination.go while it has to wait), and compares it with the reviewed plan (review.go),
//   - allows approved deletions (approvals.go) and publishes for seeds (publish.go),
//   - applies the revision (sync.go, and job.go in the background),
//   - maintains it, also after a restart, and records incomplete attempts (maintain.go),
//   - reports in status, events, metrics and to followers of a sync.
//
// Read landscapereconciler.go first: reconcileOnce is the whole reconciliation of one Landscape.
//
// Other packages apply (controllers/landscape), fetch and verify (source), parse webhooks
// (source/receiver) and notify (controllers/notification).
package operator
