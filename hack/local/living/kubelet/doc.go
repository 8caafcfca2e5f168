// SPDX-License-Identifier: Apache-2.0

// Package kubelet runs the kubelet of Kubernetes for one node of a local cluster, with a container
// runtime in the same process (package cri). It has no cgroups, cadvisor or eviction. The node
// reports a configured size, because a local landscape requests more than a laptop has.
//
// The kubelet makes all decisions about pods, as documented by Kubernetes.
package kubelet
