// SPDX-License-Identifier: Apache-2.0

package strict

import "testing"

func TestIstio(t *testing.T) {
	network := func(kind, spec string) string {
		return "{apiVersion: networking.istio.io/v1beta1, kind: " + kind + ", metadata: {name: a, namespace: b}, spec: {" + spec + "}}"
	}
	policy := func(rule string) string {
		return "{apiVersion: security.istio.io/v1, kind: AuthorizationPolicy, metadata: {name: a, namespace: b}, spec: {rules: [{" + rule + "}]}}"
	}
	server := func(fields string) string { return network("Gateway", "servers: [{hosts: [a], "+fields+"}]") }
	checkObjects(t, map[string]objectCase{
		"durations":             {network("VirtualService", "http: [{timeout: 10s, retries: {perTryTimeout: 1m}, headers: {request: {set: {timeout: '10'}}}}]"), ""},
		"no unit":               {network("VirtualService", "http: [{timeout: '10'}]"), `spec.http[0].timeout: "10" is not a duration; write a unit, such as 10s`},
		"no unit of a try":      {network("VirtualService", "http: [{timeout: 0s, retries: {perTryTimeout: '2.5'}}]"), "spec.http[0].retries.perTryTimeout"},
		"no unit of a rule":     {network("DestinationRule", "trafficPolicy: {connectionPool: {tcp: {connectTimeout: '3', tcpKeepalive: {time: 1m}}}}"), "spec.trafficPolicy.connectionPool.tcp.connectTimeout"},
		"labels of a rule":      {network("DestinationRule", "subsets: [{name: a, labels: {time: '10'}}]"), ""},
		"expression":            {network("VirtualService", "http: [{match: [{uri: {regex: '/a/.*'}}]}]"), ""},
		"no expression":         {network("VirtualService", "http: [{match: [{uri: {regex: '/a/('}}]}]"), "spec.http[0].match[0].uri.regex: is not a regular expression: missing closing ): `/a/(`"},
		"lookahead":             {network("VirtualService", "http: [{match: [{headers: {a: {regex: '(?!a)'}}}]}]"), "spec.http[0].match[0].headers.a.regex: is not a regular expression"},
		"all at the end":        {network("VirtualService", "http: [{match: [{uri: {prefix: /a}}]}, {route: []}]"), ""},
		"all at the beginning":  {network("VirtualService", "http: [{route: []}, {match: [{uri: {prefix: /a}}]}]"), "spec.http[0]: has no match and takes all requests"},
		"all of two":            {network("VirtualService", "tcp: [{match: []}, {route: []}]"), "spec.tcp[0]: has no match"},
		"servers":               {network("Gateway", "servers: [{port: {protocol: HTTPS}, tls: {mode: SIMPLE, credentialName: a}}, {port: {protocol: TLS}, tls: {mode: PASSTHROUGH}}, {port: {protocol: HTTP}, tls: {httpsRedirect: true}}, {port: {protocol: TCP}}, {port: {protocol: HTTPS}, tls: {mode: MUTUAL, serverCertificate: /a, privateKey: /b, caCertificates: /c}}]"), ""},
		"no certificate":        {server("port: {protocol: HTTPS}, tls: {mode: SIMPLE}"), "spec.servers[0].tls.credentialName: must be set for the mode SIMPLE"},
		"none for both sides":   {server("port: {protocol: HTTPS}, tls: {mode: MUTUAL, caCertificates: /a}"), "must be set for the mode MUTUAL"},
		"TLS without settings":  {server("port: {protocol: HTTPS}"), "spec.servers[0].tls: must be set for the protocol HTTPS"},
		"TLS of HTTP":           {server("port: {protocol: HTTP}, tls: {mode: SIMPLE, credentialName: a}"), "spec.servers[0].tls: the protocol HTTP has no TLS besides httpsRedirect; write HTTPS"},
		"ranges":                {policy("from: [{source: {ipBlocks: [10.0.0.0/8, 1.2.3.4, '::1/128']}}], when: [{key: source.ip, values: [1.2.3.4]}, {key: 'request.headers[a]', values: [b]}]"), ""},
		"no range":              {policy("from: [{source: {ipBlocks: [10.0.0.0/33]}}]"), `spec.rules[0].from[0].source.ipBlocks[0]: "10.0.0.0/33" is neither an address range`},
		"no range of others":    {policy("from: [{source: {namespaces: [a]}}, {source: {notRemoteIpBlocks: [a, 10.0.0]}}]"), "spec.rules[0].from[1].source.notRemoteIpBlocks[1]"},
		"no address":            {policy("when: [{key: remote.ip, values: [10.0.0.256]}]"), "spec.rules[0].when[0].values[0]"},
		"a Gateway of the SIGs": {"{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {name: a, namespace: b}, spec: {servers: [{port: {protocol: HTTPS}}]}}", ""},
	})
}
