// SPDX-License-Identifier: Apache-2.0

// Package landscape tests the controllers on real API servers: a landscape converges from nothing,
// costs nothing without changes, and reports what is wrong. The package has only tests.
//
// The tests share one set of local clusters (hack/local) and run in a fixed order: each leaves the
// landscape converged. The environment variable PERGOLA_LOCAL names the command that starts them;
// without it, it is built.
package landscape
