// SPDX-License-Identifier: Apache-2.0

// Package preview finds consequences of a change besides the difference of rendered objects. These
// are held removals, settings of landscape.yaml that affect protection (settings.go), and
// operations that come too late.
//
// It makes no requests. Package plan compares rendered objects, cmd/pergola prints.
package preview
