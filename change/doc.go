// Package change has the types of a change: which object, which fields, what happens to it and why.
// Package plan makes them, apply performs them, and controllers/permit judges them.
//
// A Plan is one plain value with JSON tags: the difference of two revisions, the dry run against
// live clusters and the deletion gate all speak of it.
//
// What does not live here: comparing objects and hiding their secrets (change/redact), comparing
// renderings and printing (plan).
package change
