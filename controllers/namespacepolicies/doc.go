// SPDX-License-Identifier: Apache-2.0

// Package namespacepolicies manages the NetworkPolicies of all Gardener namespaces. These are
// deny-all, and permissions for labelled pods to reach DNS, the cluster's API server and outside
// networks. It replaces upstream's networkpolicy controller (pkg/controller/networkpolicy), with
// the same names and labels, so that each takes over the other's objects.
//
// networks.go has the ranges of a cluster, as its Garden or Seed declares them (pure).
// namespaces.go selects the policies of a namespace (pure). policies.go makes the policies (pure),
// with ranges from peers.go. apiservers.go finds the API server of the cluster, and hostname.go
// resolves its name. controller.go has the watches, and reconcile.go writes differences. gardens.go
// follows the Garden of a runtime cluster.
//
// It is a controller and not a component: namespaces of extensions and Shoots appear between two
// reconciliations of their owner, and need deny-all at once. Two roles run it, each with the lease
// of its cluster. The operator runs it in the runtime cluster while a Garden exists, and the
// gardenlet in other seeds. It watches namespaces, NetworkPolicies, EndpointSlices and Clusters. It
// only polls the addresses of an API server that has a name.
//
// It differs from upstream: each range counts for its own IP family, not for the declared or
// assumed one. Ranges that are added to the Garden or Seed apply at once. A private network that is
// completely part of the cluster's is left out instead of being open. Policies of the same name
// that others made outside Gardener's namespaces are left alone.
//
// Policies for ports of Services are in package networkpolicy, and those for Pergola's own pods in
// deploy.
package namespacepolicies
