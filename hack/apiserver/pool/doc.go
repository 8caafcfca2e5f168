// Command pool runs a command, usually `go test`, with a pool of API servers, each with an etcd of
// its own: packages of tests take a server from it (package hack/apiserver) instead of starting
// one, which takes some seconds of two cores. A server comes back when the process that took it
// ends, however it ends, and gets the content that it had before.
//
// Not here: servers that tests restart or start with flags of their own.
package main
