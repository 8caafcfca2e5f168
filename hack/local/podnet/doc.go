// Package podnet gives pods networks of their own: a network namespace per pod, with one device
// (eth0), one address, and everything else behind the main namespace, which is that of the process
// that uses this package, inside of a holder (package hold).
//
// Packets are routed, there is no bridge: a pod has no neighbour but 169.254.1.1, which is an
// address of the loopback device of main, and main has a route for each pod. Ranges of Services and
// load balancers are addresses of main (Local), so that a program in main can listen on each of
// them; what listens there is not this package's business, nor is which address a pod gets. IPv4
// only; within a pod [::] and [::1] work.
//
// What is made has names that follow from the folder of a Network and the name of a pod, so that a
// process finds what a former one has left (Names, Remove).
//
// Namespaces belong to threads. All that is done in a pod's is done on a thread that ends with it
// (Inside).
package podnet
