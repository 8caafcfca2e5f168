// SPDX-License-Identifier: Apache-2.0

// Command pool runs a command, usually `go test`, with a pool of API servers, each with its own
// etcd. Test packages take a server from it (package hack/apiserver) instead of starting one, which
// takes some seconds of two cores. The pool takes a server back when its process ends, however it
// ends, and restores the content. Tests that restart servers or set flags do not use the pool.
package main
