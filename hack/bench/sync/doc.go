// SPDX-License-Identifier: Apache-2.0

// Command sync takes a process of `pergola operator` through the benchmark of the sync from Git.
// The landscape is in a repository on loopback; runtime cluster and virtual garden have real API
// servers. Proxies of the API servers and the Git server count requests. It prints a JSON sample
// for each scenario.
//
// hack/bench (-only sync) starts it, generates the landscape, brings up the clusters and makes the
// table.
package main
