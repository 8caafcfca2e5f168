// Command sync takes `pergola operator`, as a process of its own, through the benchmark of the sync
// from Git: a landscape in a repository on loopback, a runtime cluster and a virtual garden on real
// API servers. Requests are counted by proxies between the operator and the API servers, and by the
// Git server. It prints what it has measured as JSON, a sample for each scenario.
//
// It is started by hack/bench (-only sync), which generates the landscape, brings up the clusters
// and makes the table. What does not live here: the landscape, comparing, contracts.
package main
