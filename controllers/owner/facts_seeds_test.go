package owner

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/render"
)

func TestSeedFacts(t *testing.T) {
	seed := func(name, network, rest string) *unstructured.Unstructured {
		return parsed(t, "{apiVersion: core.gardener.cloud/v1beta1, kind: Seed, metadata: {name: "+name+", labels: {seed.gardener.cloud/network: "+network+"}}, "+rest+"}")
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
		{Name: "applied", IngressDomain: "applied.example.org"}, // Pergola deploys no monitoring there
		{Name: "b", IngressDomain: "b.example.org"},
		{Name: "c", IngressDomain: "c.example.org", Managed: true, Monitored: true},
		{Name: "unmanaged"}, // nobody has said that it runs
	}, facts)

	o := &Owner{Input: render.Input{Objects: map[string]map[string]any{Garden: {"spec": map[string]any{}}}}}
	assert.Empty(t, terminalHost(o, facts), "nobody asks for terminals")
	o.Input.Objects = map[string]map[string]any{Garden: parsed(t, "{apiVersion: v1, kind: Garden, spec: {virtualCluster: {gardener: {gardenerDashboard: {terminal: {container: {image: x}}}}}}}").Object}
	assert.Equal(t, "c", terminalHost(o, facts))
	assert.Empty(t, terminalHost(o, facts[:3]), "the one that is managed is private")
	assert.Empty(t, terminalHost(o, nil))
}

// A virtual garden that does not answer changes nothing.
func TestSeedFactsAreKept(t *testing.T) {
	s := newSite(t)
	o := s.work.owner
	before, last := []render.SeedFact{{Name: "before"}}, []render.SeedFact{{Name: "last"}}
	o.Target = o.Local // it serves no Seeds
	assert.Equal(t, before, seedFacts(s.ctx, o, before))
	assert.Empty(t, seedFacts(s.ctx, o, nil))
	o.last.seeds = last
	assert.Equal(t, last, seedFacts(s.ctx, o, nil))
	o.Target = nil
	assert.Equal(t, last, seedFacts(s.ctx, o, nil))
}
