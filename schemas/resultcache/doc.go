// SPDX-License-Identifier: Apache-2.0

// Package resultcache caches validation results on disk between runs, so that the cost follows the
// change and not the size of a landscape. Each landscape has one file, which is read and replaced
// as a whole. If processes save concurrently, the last one wins and the others only lose cached
// work.
//
// The caller defines results and their dependencies, and includes all dependencies in the key.
// Files of other programs, with other schemas and rules, are ignored.
package resultcache
