// SPDX-License-Identifier: Apache-2.0

// Package changecounts counts written objects and formats the counts.
package changecounts
