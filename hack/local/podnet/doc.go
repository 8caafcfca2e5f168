// SPDX-License-Identifier: Apache-2.0

// Package podnet creates the networks of pods: a network namespace per pod, with one device (eth0)
// and one address. All traffic goes through the main namespace, which is the namespace of the
// process that uses this package, inside a holder (package hold).
//
// Packets are routed; there is no bridge. A pod's only neighbour is 169.254.1.1, an address of
// main's loopback device, and main has a route for each pod. Ranges of Services and load balancers
// are addresses of main (Local), so that a program in main can listen on each of them. Callers
// assign the addresses of pods and listen on local ones. The network has only IPv4; within a pod
// [::] and [::1] work.
//
// Names derive from the folder of a Network and the name of a pod. So a process finds networks of
// an earlier process (Names, Remove).
//
// Namespaces belong to threads. Code in a pod's namespace runs on a thread that ends afterwards
// (Inside).
package podnet
