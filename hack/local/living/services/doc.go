// SPDX-License-Identifier: Apache-2.0

// Package services serves the addresses of Services. It listens on every cluster, load-balancer and
// external address and forwards TCP and UDP to ready endpoints, like kube-proxy. It assigns
// addresses to Services of type LoadBalancer. It also replaces Istio's ingress gateways, which do
// not run here: it routes TLS by server name, as Gateways and VirtualServices declare.
//
// The addresses must be local in this network namespace; package podnet does that. Left out are
// node ports, SCTP, IPv6, traffic policies (all nodes are one machine), and Istio features that
// need the content of a connection. If a gateway would end TLS, the server behind it gets the
// connection.
//
// It needs, in all namespaces: services get, list, watch; services/status patch;
// endpointslices.discovery.k8s.io list, watch; gateways and virtualservices of networking.istio.io
// list, watch.
package services
