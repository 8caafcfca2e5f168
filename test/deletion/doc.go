// SPDX-License-Identifier: Apache-2.0

// Package deletion tests the deletion of a Garden on real API servers. It checks the blockers, the
// continuation without them, and that the runtime cluster is finally as before. The package has
// only tests.
//
// The tests share one set of local clusters (hack/local) with simulated pods. They run in a fixed
// order: each starts with the state that the previous one left.
package deletion
