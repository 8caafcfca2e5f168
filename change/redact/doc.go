// Package redact compares two versions of an object and takes the values of secrets out of what
// differs, and out of texts. Hidden values are replaced where fields are compared, not where they
// are printed: no printer can show it.
//
// What does not live here: what a difference does to a cluster (plan), words that sound like a
// secret (internal/secretwords).
package redact
