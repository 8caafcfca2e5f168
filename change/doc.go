// SPDX-License-Identifier: Apache-2.0

// Package change has the types of a change: which object, which fields, the action and the reason.
// Package plan makes changes, apply performs them, and controllers/permit judges them.
//
// A Plan is a plain value with JSON tags. The difference of two revisions, the dry run against live
// clusters and the deletion gate all use it.
//
// Not in this package: comparing objects and hiding their secrets (change/redact), comparing
// renderings and printing (plan).
package change
