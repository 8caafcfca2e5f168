// Package services makes the addresses of Services answer: it listens on every cluster address,
// load-balancer address and external address and forwards TCP and UDP to ready endpoints, as
// kube-proxy would. It gives Services of type LoadBalancer their addresses. And it stands in for
// Istio's ingress gateways, which do not run here: where a Gateway and VirtualServices say so, it
// forwards TLS by the name that the client asks for.
//
// All addresses have to be local ones of the network namespace that this runs in; that is somebody
// else's business. Not here: node ports, SCTP, IPv6, traffic policies (all nodes are one machine),
// and anything of Istio that would need the contents of a connection: where a gateway would end
// TLS, it is passed through to the server behind.
//
// Rights that it needs, in all namespaces: services get, list, watch; services/status patch;
// endpointslices.discovery.k8s.io list, watch; gateways and virtualservices of networking.istio.io
// list, watch.
package services
