// SPDX-License-Identifier: Apache-2.0

// Package networkpolicy lets pods reach the ports of Services for which they have a label. For each
// such port it maintains a NetworkPolicy for ingress and one for egress. It does the work of
// gardener-resource-manager's networkpolicy controller with the same names and labels, so that each
// can adopt the policies of the other.
//
//	service.go          traffic that a Service asks for (pure)
//	names.go            names and labels (pure)
//	policies.go         the resulting policies (pure)
//	index*.go           state of the cluster by lookup key, so that the cost depends on the change
//	feed.go, istio.go   watches that fill the index and enqueue the affected Services
//	reconciler.go       differences to the wanted policies, written by server-side apply
//
// A client needs the label `networking.resources.gardener.cloud/to-<service>-<protocol>-<target
// port>: allowed`. In another namespace, which a selector in an annotation of the Service must
// match, `<namespace of the Service or its alias>-` precedes the Service name. A namespace has
// policies while one of its pods has the label. Pods of the ingress controller and of Istio
// gateways need no label: Ingresses and VirtualServices name the Services for them.
//
// Package namespacepolicies creates the policies of every namespace (deny-all, to DNS, to
// networks).
package networkpolicy
