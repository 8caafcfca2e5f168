// SPDX-License-Identifier: Apache-2.0

// Package manifest checks objects in files without the landscape that they may belong to. Package
// schemas has the rules; commands/revisions checks landscape folders.
package manifest
