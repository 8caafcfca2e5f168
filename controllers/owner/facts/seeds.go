// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	seedmanagementv1alpha1 "github.com/pergola-dev/pergola/api/seedmanagement/v1alpha1"
	"github.com/pergola-dev/pergola/controllers/access"
	"github.com/pergola-dev/pergola/render"
)

const (
	// labelSeedNetwork marks a seed that is not reachable from everywhere (upstream's).
	labelSeedNetwork = "seed.gardener.cloud/network"
	networkPrivate   = "private"
	// seedsTimeout limits requests to a virtual garden that may not exist yet.
	seedsTimeout = 3 * time.Second
	// upstreamGardenletPrefix begins the names of upstream gardenlets, the names of their pods, in
	// the status of their Seed. Pergola's gardenlets have other names and deploy no monitoring.
	upstreamGardenletPrefix = "gardenlet-"
)

// seedFacts returns the Seeds of the virtual garden, or the last known ones while it does not
// answer.
func seedFacts(ctx context.Context, s Source, before []render.SeedFact) []render.SeedFact {
	former := before
	if former == nil {
		former = s.Seeds
	}
	if s.Target == nil || !access.HasCredentials(ctx, s.Target.RESTConfig()) {
		return former
	}
	ctx, cancel := context.WithTimeout(ctx, seedsTimeout)
	defer cancel()
	seeds, err := s.Target.List(ctx, gardencorev1beta1.SchemeGroupVersion.WithKind("Seed"), "", labels.Everything())
	if err != nil {
		return former
	}
	managed, err := s.Target.List(ctx, seedmanagementv1alpha1.SchemeGroupVersion.WithKind("ManagedSeed"), gardencorev1beta1.GardenNamespace, labels.Everything())
	if err != nil {
		return former
	}
	facts := seedFactsOf(seeds, managed)
	s.OnSeeds(facts)
	return facts
}

// seedFactsOf sorts the facts by name, so that the list order does not matter.
func seedFactsOf(seeds, managed []*unstructured.Unstructured) []render.SeedFact {
	out := make([]render.SeedFact, 0, len(seeds))
	for _, s := range seeds {
		domain, _, _ := unstructured.NestedString(s.Object, "spec", "ingress", "domain")
		gardenlet, _, _ := unstructured.NestedString(s.Object, "status", "gardener", "name")
		out = append(out, render.SeedFact{
			Name: s.GetName(), IngressDomain: domain, Private: s.GetLabels()[labelSeedNetwork] == networkPrivate,
			Managed:   slices.ContainsFunc(managed, func(m *unstructured.Unstructured) bool { return m.GetName() == s.GetName() }),
			Monitored: strings.HasPrefix(gardenlet, upstreamGardenletPrefix),
		})
	}
	slices.SortFunc(out, func(a, b render.SeedFact) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// terminalHost returns the seed for the garden terminals of the dashboard. It is the first managed
// seed, because the dashboard gets no access to others, that is not private. It is empty if there
// is none, or if terminals are not declared.
func terminalHost(s Source, seeds []render.SeedFact) string {
	_, has, _ := unstructured.NestedMap(s.Garden, "spec", "virtualCluster", "gardener", "gardenerDashboard", "terminal")
	i := slices.IndexFunc(seeds, func(s render.SeedFact) bool { return s.Managed && !s.Private })
	if !has || i < 0 {
		return ""
	}
	return seeds[i].Name
}
