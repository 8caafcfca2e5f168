// Package networkpolicy lets pods reach the ports of Services that they carry a label for: for each
// such port it keeps a NetworkPolicy that allows the traffic in, and one that allows it out. It
// does the work of gardener-resource-manager's networkpolicy controller, with the same names and
// labels, so that each takes over what the other made.
//
//	service.go          what a Service says about the traffic to its pods (pure)
//	names.go            names and labels (pure)
//	policies.go         the policies that follow from it (pure)
//	index*.go           what is known of the cluster, kept by what has to be looked up, so that a change costs what it changes
//	feed.go, istio.go   watches that fill the index and say which Services to look at
//	reconciler.go       the difference between what is wanted and what is there, written by server-side apply
//
// A client needs the label `networking.resources.gardener.cloud/to-<service>-<protocol>-<target
// port>: allowed`, with `<namespace of the Service or its alias>-` before the name of the Service
// if it is in another namespace, which a selector in an annotation of the Service has to name.
// Policies are there for namespaces in which some pod carries the label. Pods of the ingress
// controller and of Istio gateways need no label: Ingresses and VirtualServices name the Services
// for them.
//
// What does not live here: the policies that each namespace has, whatever runs in it (deny-all, to
// DNS, to networks): package namespacepolicies.
package networkpolicy
