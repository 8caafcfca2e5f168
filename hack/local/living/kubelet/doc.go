// Package kubelet runs the kubelet of Kubernetes for one node of a local cluster, with a container
// runtime in the same process (package cri) and without what a machine of its own would have:
// cgroups, cadvisor, eviction. What the node says of its size is what it is told, for a local
// landscape asks for more than a laptop has.
//
// Everything that decides about pods is the kubelet's own. Who wants to know why a pod is as it is
// reads Kubernetes' documentation.
package kubelet
