// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/render"
)

func TestSeedFacts(t *testing.T) {
	seed := func(name, network, rest string) *unstructured.Unstructured {
		return parseObject(t, "{apiVersion: core.gardener.cloud/v1beta1, kind: Seed, metadata: {name: "+name+", labels: {seed.gardener.cloud/network: "+network+"}}, "+rest+"}")
	}
	seeds := []*unstructured.Unstructured{
		seed("c", "public", "spec: {ingress: {domain: c.example.org}}, status: {gardener: {name: gardenlet-0}}"),
		seed("b", "public", "spec: {ingress: {domain: b.example.org}}, status: {gardener: {name: pergola-gardenlet}}"),
		seed("a", "private", "spec: {ingress: {domain: a.example.org}}, status: {gardener: {name: gardenlet-0}}"),
		seed("unmanaged", "public", "spec: {}"),
		seed("applied", "public", "spec: {ingress: {domain: applied.example.org}}, status: {gardener: {name: pergola-4711@laptop}}"),
	}
	facts := seedFactsOf(seeds, []*unstructured.Unstructured{seed("c", "public", "spec: {}"), seed("a", "public", "spec: {}"), seed("not-there-yet", "public", "spec: {}")})
	assert.Equal(t, []render.SeedFact{
		{Name: "a", IngressDomain: "a.example.org", Private: true, Managed: true, Monitored: true},
		// Pergola deploys no monitoring there
		{Name: "applied", IngressDomain: "applied.example.org"},
		{Name: "b", IngressDomain: "b.example.org"},
		{Name: "c", IngressDomain: "c.example.org", Managed: true, Monitored: true},
		{Name: "unmanaged"}, // without a gardenlet in its status
	}, facts)

	s := Source{Garden: map[string]any{"spec": map[string]any{}}}
	assert.Empty(t, terminalHost(s, facts), "nobody asks for terminals")
	s.Garden = parseObject(t, "{apiVersion: v1, kind: Garden, spec: {virtualCluster: {gardener: {gardenerDashboard: {terminal: {container: {image: x}}}}}}}").Object
	assert.Equal(t, "c", terminalHost(s, facts))
	assert.Empty(t, terminalHost(s, facts[:3]), "the one that is managed is private")
	assert.Empty(t, terminalHost(s, nil))
}
