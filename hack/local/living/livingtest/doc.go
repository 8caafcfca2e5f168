// SPDX-License-Identifier: Apache-2.0

// Package livingtest starts a real API server for tests of the controllers of a living cluster.
//
// Only tests may import it.
package livingtest
