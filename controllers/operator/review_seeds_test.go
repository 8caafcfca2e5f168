package operator

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/controllers/seedpublication"
	"github.com/pergola-dev/pergola/source/gittest"
)

// forSeed reads what is published for the Seed of the demonstration, nil if it is not there.
func (w *world) forSeed(name string) *corev1.ConfigMap {
	w.Helper()
	o := &corev1.ConfigMap{}
	err := w.client.Get(context.Background(), client.ObjectKey{Namespace: seedpublication.Namespace("local"), Name: name}, o)
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(w, err)
	return o
}

// TestSeedsLearnOfTheReview: what a difference of revisions shows of deletions on a seed is published for its gardenlet, before what deletes
// it; what is there again does not count any more.
func TestSeedsLearnOfTheReview(t *testing.T) {
	w := newWorld(t)
	w.Cleanup(func() {
		_ = w.client.DeleteAllOf(context.Background(), &corev1.ConfigMap{}, client.InNamespace(seedpublication.Namespace("local"))) // the namespace may not be there
	})
	const overlay = "components/shoot/b/"
	more := func(names ...string) map[string]string {
		text := ""
		for _, name := range names {
			text += "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: shoot--local--local}\n"
		}
		return map[string]string{overlay + "more.yaml": text, overlay + "kustomization.yaml": "resources: [more.yaml]\n"}
	}
	files := more("m1", "m2", "m3")
	shoot := strings.Replace(shootFile(t), "  region: local\n", "  region: local\n  seedName: local\n", 1)
	files["shoot.yaml"] = shoot
	s := w.shoots("unseen", files)
	w.start(func(r *Role) { r.Catalogue = smallCatalogue(t) })
	w.follow(s, repositoryURL(gittest.ServeHTTP(t, s.bare.Root).URL), func(spec *landscapev1alpha1.LandscapeSpec) {
		spec.Review = landscapev1alpha1.ReviewRequired
	})
	w.applied(s, "", "1")
	require.NotNil(t, w.forSeed(seedpublication.PointerName))
	assert.Nil(t, w.forSeed(seedpublication.ReviewName), "nothing was lost yet")
	parts := &corev1.SecretList{}
	require.NoError(t, w.client.List(context.Background(), parts, client.InNamespace(seedpublication.Namespace("local"))))
	published := ""
	for _, p := range parts.Items {
		published += string(p.Data["data"])
	}
	assert.Contains(t, published, "review: Required", "the gardenlet knows that a review is demanded")

	first := w.forSeed(seedpublication.PointerName).ResourceVersion
	w.applied(s, s.push("one less", more("m2", "m3")), "1")
	lost := func() string { return w.forSeed(seedpublication.ReviewName).Data["seen"] }
	assert.Contains(t, lost(), `"object":"/ConfigMap {control-plane}/m1","owners":["shoot garden-local/local"]`)
	assert.NotContains(t, lost(), "/m2")
	pointer := w.forSeed(seedpublication.PointerName)
	assert.NotEqual(t, first, pointer.ResourceVersion)
	version := func(o metav1.Object) int {
		n, err := strconv.Atoi(o.GetResourceVersion())
		require.NoError(t, err)
		return n
	}
	assert.Less(t, version(w.forSeed(seedpublication.ReviewName)), version(pointer), "what was seen comes first")

	// A declaration that deletes something on a seed, and one object that is there again.
	w.applied(s, s.push("there again", more("m1", "m3")), "1")
	assert.NotContains(t, lost(), "/m1")
	assert.Contains(t, lost(), "/m2")
	before := version(w.forSeed(seedpublication.ReviewName))
	w.applied(s, s.push("a purpose", map[string]string{"shoot.yaml": strings.Replace(shoot, "purpose: evaluation", "purpose: development", 1)}), "1")
	assert.Equal(t, before, version(w.forSeed(seedpublication.ReviewName)), "nothing to say")
}
