package owner

import (
	"cmp"
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	seedmanagementv1alpha1 "github.com/pergola-dev/pergola/api/seedmanagement/v1alpha1"
	"github.com/pergola-dev/pergola/render"
)

const (
	// labelSeedNetwork says that a seed cannot be reached from everywhere (upstream's).
	labelSeedNetwork = "seed.gardener.cloud/network"
	networkPrivate   = "private"
	// terminalHostTimeout bounds how long a virtual garden is asked that may not be there yet.
	terminalHostTimeout = 3 * time.Second
)

// terminalHost is the seed in which the dashboard's terminals for the garden run: the first that is managed, since the dashboard gets no access to others, and not
// private. While the virtual garden does not answer, it is the one that was known before.
func terminalHost(ctx context.Context, o *Owner, before map[string]string) string {
	if _, has, _ := unstructured.NestedMap(o.Input.Objects[Garden], "spec", "virtualCluster", "gardener", "gardenerDashboard", "terminal"); !has || o.Target == nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, terminalHostTimeout)
	defer cancel()
	former := cmp.Or(before[render.FactTerminalHost], o.lastTerminalHost())
	seeds, err := o.Target.List(ctx, gardencorev1beta1.SchemeGroupVersion.WithKind(Seed), "", labels.Everything())
	if err != nil {
		return former
	}
	managed, err := o.Target.List(ctx, seedmanagementv1alpha1.SchemeGroupVersion.WithKind("ManagedSeed"), gardencorev1beta1.GardenNamespace, labels.Everything())
	if err != nil {
		return former
	}
	host := firstPublicManaged(seeds, managed)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.terminalHost = host
	return host
}

func (o *Owner) lastTerminalHost() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.terminalHost
}

// firstPublicManaged is the first by name; empty where there is none.
func firstPublicManaged(seeds, managed []*unstructured.Unstructured) string {
	var names []string
	for _, s := range seeds {
		if s.GetLabels()[labelSeedNetwork] != networkPrivate && slices.ContainsFunc(managed, func(m *unstructured.Unstructured) bool { return m.GetName() == s.GetName() }) {
			names = append(names, s.GetName())
		}
	}
	if len(names) == 0 {
		return ""
	}
	return slices.Min(names)
}
