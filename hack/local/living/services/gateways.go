// SPDX-License-Identifier: Apache-2.0

package services

import (
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The Istio resources that route TLS.
var (
	gatewayResource        = schema.GroupVersionResource{Group: "networking.istio.io", Version: "v1", Resource: "gateways"}
	virtualServiceResource = schema.GroupVersionResource{Group: "networking.istio.io", Version: "v1", Resource: "virtualservices"}
)

type gateway struct {
	namespace, name string
	Selector        map[string]string `json:"selector"`
	Servers         []gatewayServer   `json:"servers"`
}

type gatewayServer struct {
	Hosts []string `json:"hosts"`
	Port  struct {
		Number   int64  `json:"number"`
		Protocol string `json:"protocol"`
	} `json:"port"`
}

type virtualService struct {
	namespace string
	Hosts     []string    `json:"hosts"`
	Gateways  []string    `json:"gateways"`
	TLS       []tlsRoute  `json:"tls"`
	HTTP      []httpRoute `json:"http"`
}

type tlsRoute struct {
	Match []struct {
		SNIHosts []string `json:"sniHosts"`
		Port     int64    `json:"port"`
	} `json:"match"`
	Route []weightedDestination `json:"route"`
}

type httpRoute struct {
	Match []map[string]any      `json:"match"`
	Route []weightedDestination `json:"route"`
}

type weightedDestination struct {
	Destination struct {
		Host string `json:"host"`
		Port struct {
			Number int64 `json:"number"`
		} `json:"port"`
	} `json:"destination"`
}

// route is the destination of one server name, which may begin with "*.".
type route struct {
	host string
	to   destination
}

// destination is a port of a Service; 0 means its only port.
type destination struct {
	namespace, name string
	port            int32
}

func (d destination) key() string { return d.namespace + "/" + d.name }

func parseSpec[T any](object *unstructured.Unstructured, into *T) *T {
	data, err := json.Marshal(object.Object["spec"])
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		return nil // invalid objects are ignored
	}
	return into
}

// routesOf returns the routes of gateways on a Service's Pods for one of its ports, or none if no
// gateway has that port.
func routesOf(service *corev1.Service, port corev1.ServicePort, gateways, virtualServices []*unstructured.Unstructured) []route {
	var routes []route
	for _, object := range gateways {
		g := parseSpec(object, &gateway{namespace: object.GetNamespace(), name: object.GetName()})
		if g == nil || len(g.Selector) == 0 || !labels.SelectorFromSet(g.Selector).Matches(labels.Set(service.Spec.Selector)) {
			continue
		}
		for _, server := range g.Servers {
			if !server.hasPort(port) {
				continue
			}
			for _, object := range virtualServices {
				v := parseSpec(object, &virtualService{namespace: object.GetNamespace()})
				if v != nil && v.isBoundTo(g) {
					routes = append(routes, v.routes(server)...)
				}
			}
		}
	}
	// Exact names precede patterns, and long patterns precede short patterns.
	slices.SortStableFunc(routes, func(a, b route) int {
		if wild := strings.HasPrefix(a.host, "*"); wild != strings.HasPrefix(b.host, "*") {
			if wild {
				return 1
			}
			return -1
		}
		return len(b.host) - len(a.host)
	})
	return routes
}

// hasPort reports whether the gateway's port is this port of its Service. Istio allows the
// Service's number, and the number that the Pods listen on.
func (s gatewayServer) hasPort(port corev1.ServicePort) bool {
	if protocol := strings.ToUpper(s.Port.Protocol); protocol != "TLS" && protocol != "HTTPS" {
		return false
	}
	return s.Port.Number == int64(port.Port) || s.Port.Number == int64(port.TargetPort.IntValue())
}

// hasHost reports whether the server accepts a host. It ignores the namespace that hosts may be
// limited to.
func (s gatewayServer) hasHost(host string) bool {
	return slices.ContainsFunc(s.Hosts, func(pattern string) bool {
		if _, rest, ok := strings.Cut(pattern, "/"); ok {
			pattern = rest
		}
		return isHostMatch(pattern, host)
	})
}

func (v *virtualService) isBoundTo(g *gateway) bool {
	return slices.ContainsFunc(v.Gateways, func(name string) bool {
		return name == g.namespace+"/"+g.name || name == g.name && v.namespace == g.namespace
	})
}

func (v *virtualService) routes(server gatewayServer) []route {
	var routes []route
	add := func(host string, to []weightedDestination) {
		if len(to) == 0 || !server.hasHost(host) {
			return
		}
		if d, ok := v.destination(to[0]); ok {
			routes = append(routes, route{strings.ToLower(host), d})
		}
	}
	for _, r := range v.TLS {
		for _, match := range r.Match {
			if match.Port != 0 && match.Port != server.Port.Number {
				continue
			}
			for _, host := range match.SNIHosts {
				add(host, r.Route)
			}
		}
	}
	if len(v.TLS) > 0 || len(v.HTTP) == 0 {
		return routes
	}
	// The gateway would end TLS and inspect requests. Here all requests use the default route.
	rest := v.HTTP[len(v.HTTP)-1]
	for _, r := range v.HTTP {
		if len(r.Match) == 0 {
			rest = r
		}
	}
	for _, host := range v.Hosts {
		add(host, rest.Route)
	}
	return routes
}

func (v *virtualService) destination(w weightedDestination) (destination, bool) {
	host := w.Destination.Host
	host = strings.TrimSuffix(host, ".cluster.local")
	host, _ = strings.CutSuffix(host, ".svc")
	parts := strings.Split(host, ".")
	d := destination{namespace: v.namespace, name: parts[0], port: int32(w.Destination.Port.Number)}
	if len(parts) == 2 {
		d.namespace = parts[1]
	}
	return d, host != "" && len(parts) <= 2
}

// isHostMatch reports whether a name equals or matches the pattern.
func isHostMatch(pattern, name string) bool {
	pattern, name = strings.ToLower(pattern), strings.ToLower(name)
	if pattern == "*" || pattern == name {
		return true
	}
	rest, wild := strings.CutPrefix(pattern, "*")
	return wild && len(name) > len(rest) && strings.HasSuffix(name, rest)
}

func findRoute(routes []route, name string) (destination, bool) {
	for _, r := range routes {
		if isHostMatch(r.host, name) {
			return r.to, true
		}
	}
	return destination{}, false
}
