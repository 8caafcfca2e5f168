// SPDX-License-Identifier: Apache-2.0

// Package conventions configures the apply engine for Gardener. It defines labels and annotations
// of ManagedResources, kinds that are never recreated, field managers to take over from, and
// consequences of changes.
//
// The engine itself is in apply, the consequences in plan. Neither knows the other.
package conventions
