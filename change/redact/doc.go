// SPDX-License-Identifier: Apache-2.0

// Package redact compares two versions of an object and removes secret values from the differences,
// and from texts. Values are hidden where fields are compared, so that no printer can show them.
//
// Not in this package: the effects of a difference on a cluster (plan), words that sound like a
// secret (internal/secretwords).
package redact
