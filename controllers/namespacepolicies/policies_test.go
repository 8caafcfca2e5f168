// SPDX-License-Identifier: Apache-2.0

package namespacepolicies

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

func parseObject(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(text), &o.Object))
	return o
}

// egressYAML returns the egress rules of a policy as YAML.
func egressYAML(t *testing.T, s *policyInputs, name string) string {
	t.Helper()
	spec := s.policySpec(name)
	if spec == nil {
		return ""
	}
	text, err := yaml.Marshal(spec.Egress)
	require.NoError(t, err)
	return string(text)
}

const garden = `{kind: Garden, metadata: {name: garden}, spec: {runtimeCluster: {networking: {nodes: [10.1.0.0/16], pods: [10.2.0.0/16, "2001:db8:2::/56"],
  services: [10.3.0.0/16, "2001:db8:3::/112"], blockCIDRs: [169.254.169.254/32, 10.2.3.4/32, "fd00:ec2::254/128"]}}}}`

func TestPolicySpecs(t *testing.T) {
	networks, err := NetworksOfGarden(parseObject(t, garden))
	require.NoError(t, err)
	s := &policyInputs{networks: networks}

	assert.Equal(t, []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress}, s.policySpec(policyDenyAll).PolicyTypes)
	assert.Empty(t, s.policySpec(policyDenyAll).PodSelector)
	assert.Equal(t, map[string]string{"networking.gardener.cloud/to-private-networks": "allowed"}, s.policySpec(policyToPrivateNetworks).PodSelector.MatchLabels)
	assert.Equal(t, []networkingv1.PolicyType{networkingv1.PolicyTypeEgress}, s.policySpec(policyToPrivateNetworks).PolicyTypes)

	assert.YAMLEq(t, `
- to:
  - {ipBlock: {cidr: 0.0.0.0/0, except: [10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, 100.64.0.0/10, 169.254.169.254/32]}}
  - {ipBlock: {cidr: "::/0", except: ["fe80::/10", "fc00::/7", "2001:db8:2::/56", "2001:db8:3::/112"]}}`, egressYAML(t, s, policyToPublicNetworks))
	assert.YAMLEq(t, `
- to:
  - {ipBlock: {cidr: 10.0.0.0/8, except: [10.2.0.0/16, 10.3.0.0/16, 10.1.0.0/16]}}
  - {ipBlock: {cidr: 172.16.0.0/12}}
  - {ipBlock: {cidr: 192.168.0.0/16}}
  - {ipBlock: {cidr: 100.64.0.0/10}}
- to:
  - {ipBlock: {cidr: "fe80::/10"}}
  - {ipBlock: {cidr: "fc00::/7", except: ["fd00:ec2::254/128"]}}`, egressYAML(t, s, policyToPrivateNetworks))
	assert.YAMLEq(t, `
- to: [{ipBlock: {cidr: 169.254.169.254/32}}]
- to: [{ipBlock: {cidr: 10.2.3.4/32}}]
- to: [{ipBlock: {cidr: "fd00:ec2::254/128"}}]`, egressYAML(t, s, policyToBlockedRanges))
	assert.YAMLEq(t, `
- to:
  - namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: kube-system}}
    podSelector: {matchExpressions: [{key: k8s-app, operator: In, values: [kube-dns]}]}
  - namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: kube-system}}
    podSelector: {matchExpressions: [{key: k8s-app, operator: In, values: [node-local-dns]}]}
  - ipBlock: {cidr: 169.254.20.10/32}
  - ipBlock: {cidr: "fd30:1319:f1e:230b::1/128"}
  - ipBlock: {cidr: 10.3.0.10/32}
  - ipBlock: {cidr: "2001:db8:3::a/128"}
  ports: [{protocol: UDP, port: 53}, {protocol: TCP, port: 53}, {protocol: UDP, port: 8053}, {protocol: TCP, port: 8053}]`, egressYAML(t, s, policyToDNS))
}

// TestExceptionsOpenNothing: a rule without peers would allow everything, and the API
// rejects an exception that covers its whole network.
func TestExceptionsOpenNothing(t *testing.T) {
	networks, err := NetworksOfSeed(parseObject(t, `{kind: Seed, spec: {networks: {pods: 10.0.0.0/8, services: 100.64.0.0/10, nodes: 172.0.0.0/8, blockCIDRs: [192.168.0.0/16, "fc00::/7", "fe80::/10"]}}}`))
	require.NoError(t, err)
	s := &policyInputs{networks: networks}
	assert.YAMLEq(t, `null`, egressYAML(t, s, policyToPrivateNetworks))
	assert.YAMLEq(t, `[{to: [{ipBlock: {cidr: 0.0.0.0/0, except: [10.0.0.0/8, 192.168.0.0/16, 100.64.0.0/10, 172.0.0.0/8]}}, {ipBlock: {cidr: "::/0", except: ["fe80::/10", "fc00::/7"]}}]}]`,
		egressYAML(t, s, policyToPublicNetworks))

	everything, err := NetworksOfSeed(parseObject(t, `{kind: Seed, spec: {networks: {pods: 10.0.0.0/16, services: 10.1.0.0/16, blockCIDRs: [0.0.0.0/0, "::/0"]}}}`))
	require.NoError(t, err)
	assert.YAMLEq(t, `null`, egressYAML(t, &policyInputs{networks: everything}, policyToPublicNetworks))
	assert.YAMLEq(t, `null`, egressYAML(t, &policyInputs{networks: &Networks{}}, policyToBlockedRanges))
}

func TestNetworksOfAShoot(t *testing.T) {
	networks, err := NetworksOfSeed(parseObject(t, `{kind: Seed, spec: {networks: {pods: 10.0.0.0/16, services: 10.1.0.0/16}}}`))
	require.NoError(t, err)
	cluster, err := trimCluster(parseObject(t, `{kind: Cluster, metadata: {name: shoot--p--s}, spec: {seed: {spec: {}}, shoot: {metadata: {name: s},
	  spec: {networking: {type: calico, pods: 172.20.0.0/16, services: 172.21.0.0/16, nodes: 172.22.0.0/16}}, status: {networking: {pods: [172.20.0.0/16, "fd01::/48"], egressCIDRs: [1.2.3.4/32]}}}}}`))
	require.NoError(t, err)
	shoot, err := networksOfShoot(cluster.(*unstructured.Unstructured))
	require.NoError(t, err)
	assert.YAMLEq(t, `
- to:
  - {ipBlock: {cidr: 10.0.0.0/8, except: [10.0.0.0/16, 10.1.0.0/16]}}
  - {ipBlock: {cidr: 172.16.0.0/12, except: [172.22.0.0/16, 172.20.0.0/16, 172.21.0.0/16]}}
  - {ipBlock: {cidr: 192.168.0.0/16}}
  - {ipBlock: {cidr: 100.64.0.0/10}}
- to:
  - {ipBlock: {cidr: "fe80::/10"}}
  - {ipBlock: {cidr: "fc00::/7", except: ["fd01::/48"]}}`, egressYAML(t, &policyInputs{networks: networks, shoot: shoot}, policyToPrivateNetworks))
	assert.Nil(t, (&policyInputs{networks: networks, isShootUnknown: true}).policySpec(policyToPrivateNetworks), "as long as its networks are not known")
}

func TestInvalidNetworks(t *testing.T) {
	for _, text := range []string{`{kind: Seed, spec: {networks: {pods: nonsense}}}`, `{kind: Seed, spec: {networks: {blockCIDRs: [10.0.0.0/99]}}}`, `{kind: Seed, spec: {networks: {pods: 5}}}`, `{kind: Seed, spec: {networks: 5}}`} {
		_, err := NetworksOfSeed(parseObject(t, text))
		assert.Error(t, err, text)
	}
}

func TestPolicyNamesOfNamespaces(t *testing.T) {
	further, err := labels.Parse("team=network")
	require.NoError(t, err)
	all := policyNames()
	for _, c := range []struct {
		namespace string
		set       labels.Set
		want      []string
	}{
		{"garden", nil, all},
		{"shoot--p--s", labels.Set{"gardener.cloud/role": "shoot"}, all},
		{"extension-x", labels.Set{"gardener.cloud/role": "extension"}, all},
		{"istio-system", labels.Set{"gardener.cloud/role": "istio-system"}, []string{policyToDNS, policyToAPIServer, policyDenyAll}},
		{"virtual-garden-istio-ingress", labels.Set{"gardener.cloud/role": "istio-ingress"}, []string{policyToDNS, policyToAPIServer, policyDenyAll}},
		{"istio-ingress-handler-x", labels.Set{"gardener.cloud/role": "exposureclass-handler", "handler.exposureclass.gardener.cloud/name": "x"}, []string{policyToDNS, policyDenyAll}},
		{"mine", labels.Set{"team": "network"}, all},
		{"kube-system", labels.Set{"gardener.cloud/role": "system-component"}, nil},
		{"default", nil, nil},
	} {
		assert.Equal(t, c.want, policyNamesFor(c.namespace, c.set, []labels.Selector{further}), c.namespace)
	}
}

func TestAPIServerRules(t *testing.T) {
	var slices []*discoveryv1.EndpointSlice
	require.NoError(t, yaml.Unmarshal([]byte(`
- {metadata: {name: kubernetes-6}, addressType: IPv6, endpoints: [{addresses: ["2001:db8::1"]}], ports: [{name: https, port: 6443, protocol: TCP}]}
- {metadata: {name: kubernetes}, addressType: IPv4, endpoints: [{addresses: [192.0.2.2]}, {addresses: [192.0.2.1], conditions: {ready: true}}, {addresses: [192.0.2.3], conditions: {ready: false}}],
   ports: [{name: https, port: 443}]}
- {metadata: {name: without-ports}, addressType: IPv4, endpoints: [{addresses: [192.0.2.9]}]}
- {metadata: {name: without-endpoints}, addressType: IPv4, ports: [{port: 443}]}
`), &slices))
	host, port := apiServerHost(&rest.Config{Host: "https://api.example.org:8443"}, func(string) string { return "" })
	assert.Equal(t, "api.example.org 8443", host+" "+formatPort(port))
	text, err := yaml.Marshal(buildAPIServerRules(slices, addressesWithPort([]string{"198.51.100.7", "::ffff:198.51.100.8", "nonsense"}, port)))
	require.NoError(t, err)
	assert.YAMLEq(t, `
- {to: [{ipBlock: {cidr: 192.0.2.1/32}}, {ipBlock: {cidr: 192.0.2.2/32}}], ports: [{port: 443, protocol: TCP}]}
- {to: [{ipBlock: {cidr: "2001:db8::1/128"}}], ports: [{port: 6443, protocol: TCP}]}
- {to: [{ipBlock: {cidr: 198.51.100.7/32}}, {ipBlock: {cidr: 198.51.100.8/32}}], ports: [{port: 8443, protocol: TCP}]}`, string(text))
	assert.Empty(t, buildAPIServerRules(nil, nil))
}

func TestAPIServerHost(t *testing.T) {
	env := func(host string) func(string) string {
		return func(name string) string {
			return map[string]string{"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": "6443"}[name]
		}
	}
	for _, c := range []struct{ host, env, want string }{
		{"https://10.0.0.1:443", "10.0.0.1", " 0"},
		{"https://10.0.0.1:443", "api.shoot.example.org", "api.shoot.example.org 6443"},
		{"https://[2001:db8::1]:443", "", " 0"},
		{"api.example.org", "", "api.example.org 443"},
		{"https://api.example.org", "other.example.org", "api.example.org 443"},
	} {
		host, port := apiServerHost(&rest.Config{Host: c.host}, env(c.env))
		assert.Equal(t, c.want, host+" "+formatPort(port), "%+v", c)
	}
}
