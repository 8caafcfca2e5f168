// SPDX-License-Identifier: Apache-2.0

// Package rulebook explains fields and rules (`pergola explain`) and writes
// docs/reference/rules.md. Package structure provides the structure; packages schemas and
// crosscheck provide the rules.
package rulebook
