// SPDX-License-Identifier: Apache-2.0

// Package tally counts written objects and formats the counts.
package tally
