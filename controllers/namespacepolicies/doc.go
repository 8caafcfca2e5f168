// Package namespacepolicies keeps the NetworkPolicies that every namespace of Gardener has,
// whatever runs in it: deny-all, and those by which pods with a label reach DNS, the API server of
// the cluster, and networks outside of it. It does the work of upstream's networkpolicy controller
// (pkg/controller/networkpolicy), with the same names and labels, so that each takes over what the
// other made.
//
//	networks.go     the ranges of a cluster, as its Garden or Seed declares them (pure)
//	namespaces.go   which namespace gets which policies (pure)
//	policies.go     the policies (pure); peers.go the ranges in them
//	apiservers.go   where the API server of the cluster is; hostname.go asks for its name
//	controller.go   what is watched; reconcile.go the difference between what is wanted and what is there; gardens.go the Garden of a runtime cluster
//
// It is a controller over namespaces and no component: those of extensions and shoots come and go
// between two reconciliations of their owner, and none may be without deny-all meanwhile. Two roles
// run it, each with the lease of its cluster: the operator in the runtime cluster as long as there
// is a Garden, and the gardenlet in its seed, unless that is the runtime cluster, where the
// operator does it. Nothing is asked for in turns, except for the addresses of an API server that
// is known by name: of namespaces, NetworkPolicies, EndpointSlices and Clusters every change is
// told.
//
// What is done otherwise than upstream: each range counts for the family that it is of, and not for
// the one that is declared or assumed; ranges that are added to the Garden or Seed count at once; a
// private network that is one of the cluster's wholly is left out, instead of being open; policies
// of the same name that others made, in namespaces that are not Gardener's, are left alone.
//
// What does not live here: policies for the ports of Services (package networkpolicy), those of
// Pergola's own pods (deploy).
package namespacepolicies
