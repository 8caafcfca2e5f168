// SPDX-License-Identifier: Apache-2.0

package gardenlet

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/controllers/seedpublication"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/render"
)

// TestRenderMatchesGit: the example landscape renders the same on the seed as from Git, with the
// real catalogue.
func TestRenderMatchesGit(t *testing.T) {
	l, _, err := landscapes.Load(t.Context(), "../../landscapes/local", landscapes.Options{})
	require.NoError(t, err)
	g, err := New(Options{Seed: "local", Garden: &rest.Config{Host: "https://127.0.0.1:1"}, Local: &rest.Config{Host: "https://127.0.0.1:1"}})
	require.NoError(t, err)
	defer g.connections.garden.Close()
	defer g.connections.local.Close()
	// The virtual garden has the objects from Git, with the fields that the server adds.
	for i := range l.Declarations {
		o := l.Declarations[i].Object().DeepCopy()
		for _, w := range g.objects.kinds {
			if w.kind == o.GetKind() && w.kind != kindPublicationPart && w.kind != kindPublicationPointer {
				o.SetUID(types.UID("uid-" + o.GetName()))
				o.SetResourceVersion("1")
				o.SetGeneration(1)
				o.SetLabels(map[string]string{"resources.gardener.cloud/managed-by": "gardener"})
				o.SetFinalizers([]string{"gardener"})
				o.SetAnnotations(mergeMaps(o.GetAnnotations(), map[string]string{"resources.gardener.cloud/origin": "landscape/virtual", "gardener.cloud/operation": "reconcile"}))
				require.NoError(t, w.informer.GetStore().Add(o))
			}
		}
	}
	c, err := seedpublication.ContentOf(l, seedpublication.ObjectSettings{})
	require.NoError(t, err)
	p, err := seedpublication.New(c, "main@1")
	require.NoError(t, err)
	s, err := g.prepareSettings(t.Context(), p)
	require.NoError(t, err)

	options, err := render.LandscapeOptions(components.FS, l)
	require.NoError(t, err)
	inputs, err := render.Owners(l)
	require.NoError(t, err)
	facts := render.Facts{Clusters: map[string]render.ClusterFact{render.ClusterSeed: {KubernetesVersion: "1.34.1"}}}
	compared := 0
	for _, git := range inputs {
		kind := map[string]string{owner.Seed: kindSeed, owner.Shoot: kindShoot}[git.Owner.Kind]
		if kind == "" {
			continue
		}
		in, err := g.renderInput(g.renderSourcesOf(git.Owner.Kind, g.objects.get(kind, git.Owner.Namespace, git.Owner.Name), s))
		require.NoError(t, err)
		// Only the cluster knows the UIDs.
		assert.Equal(t, "uid-local", in.Owner.UID)
		git.Owner.UID = in.Owner.UID
		if git.Owner.Kind == owner.Shoot {
			git.Objects = withSeedUID(git.Objects, "uid-local")
		}
		git.Facts, in.Facts = facts, facts
		want, err := render.Render(git, options)
		require.NoError(t, err)
		got, err := render.Render(in, s.reconciler.Render)
		require.NoError(t, err)
		require.Len(t, got.Bundles, len(want.Bundles))
		for i := range want.Bundles {
			assert.Equal(t, objectsOf(want.Bundles[i]), objectsOf(got.Bundles[i]), want.Bundles[i].Name)
			compared += len(want.Bundles[i].Objects)
		}
	}
	assert.Greater(t, compared, 50)
}

func objectsOf(b render.Bundle) []map[string]any {
	var out []map[string]any
	for _, o := range b.Objects {
		out = append(out, o.Object)
	}
	return out
}

func mergeMaps(a, b map[string]string) map[string]string {
	out := map[string]string{}
	for _, m := range []map[string]string{a, b} {
		for k, v := range m {
			out[k] = v
		}
	}
	return out
}

// TestControllerAnnotationsAreNotDeclared: annotations of controllers are not part of a
// declaration.
func TestControllerAnnotationsAreNotDeclared(t *testing.T) {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetAnnotations(map[string]string{
		seedpublication.AnnotationUsedApprovals: "a", landscape.AnnotationOperationID: "demo/a", "gardener.cloud/operation": "reconcile", "kept": "yes",
	})
	assert.Equal(t, map[string]string{"kept": "yes"}, landscape.DeclarationOf(o).GetAnnotations())
}
