// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

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

// seedConfigMap reads a ConfigMap for the demonstration's Seed, nil if it does not exist.
func (w *testEnv) seedConfigMap(name string) *corev1.ConfigMap {
	w.Helper()
	o := &corev1.ConfigMap{}
	err := w.client.Get(context.Background(), client.ObjectKey{Namespace: seedpublication.SeedNamespace("local"), Name: name}, o)
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(w, err)
	return o
}

// watchSeedConfigMaps returns a function that waits for the next write to the Seed's two ConfigMaps
// and returns its name.
func (w *testEnv) watchSeedConfigMaps() (next func() string) {
	w.Helper()
	c, err := client.NewWithWatch(testServer.config, client.Options{})
	require.NoError(w, err)
	list := &corev1.ConfigMapList{}
	require.NoError(w, c.List(context.Background(), list, client.InNamespace(seedpublication.SeedNamespace("local"))))
	changes, err := c.Watch(context.Background(), &corev1.ConfigMapList{}, client.InNamespace(seedpublication.SeedNamespace("local")), &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
	require.NoError(w, err)
	w.Cleanup(changes.Stop)
	out := make(chan string, 100)
	go func() {
		for change := range changes.ResultChan() {
			if o, ok := change.Object.(*corev1.ConfigMap); ok && (o.Name == seedpublication.ReviewName || o.Name == seedpublication.PointerName) {
				out <- o.Name
			}
		}
	}()
	return func() string {
		select {
		case name := <-out:
			return name
		case <-time.After(time.Minute):
			return "nothing"
		}
	}
}

// TestReviewIsPublishedForSeeds: reviewed deletions on a seed are published for its gardenlet
// before the change itself. Restored objects no longer count.
func TestReviewIsPublishedForSeeds(t *testing.T) {
	w := newTestEnv(t)
	w.Cleanup(func() {
		// The namespace may not exist.
		_ = w.client.DeleteAllOf(context.Background(), &corev1.ConfigMap{}, client.InNamespace(seedpublication.SeedNamespace("local")))
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
	s := w.newShootLandscape("unseen", files)
	w.startOperator(func(r *Role) { r.Catalogue = smallCatalogue(t) })
	w.followServed(s, repositoryURL(gittest.ServeHTTP(t, s.server.Root).URL), func(spec *landscapev1alpha1.LandscapeSpec) {
		spec.Review = landscapev1alpha1.ReviewRequired
	})
	w.awaitApplied(s, "", "1")
	require.NotNil(t, w.seedConfigMap(seedpublication.PointerName))
	assert.Nil(t, w.seedConfigMap(seedpublication.ReviewName), "nothing was lost yet")
	parts := &corev1.SecretList{}
	require.NoError(t, w.client.List(context.Background(), parts, client.InNamespace(seedpublication.SeedNamespace("local"))))
	published := ""
	for _, p := range parts.Items {
		published += string(p.Data["data"])
	}
	assert.Contains(t, published, "review: Required", "the gardenlet knows that a review is demanded")

	first := w.seedConfigMap(seedpublication.PointerName).ResourceVersion
	written := w.watchSeedConfigMaps()
	w.awaitApplied(s, s.push("one less", more("m2", "m3")), "1")
	assert.Equal(t, seedpublication.ReviewName, written(), "what was seen comes first")
	assert.Equal(t, seedpublication.PointerName, written())
	assert.Equal(t, seedpublication.ReviewName, written(), "and that it is done comes last")
	lost := func() string { return w.seedConfigMap(seedpublication.ReviewName).Data["seen"] }
	assert.Contains(t, lost(), `"object":"/ConfigMap {control-plane}/m1","owners":["shoot garden-local/local"]`)
	assert.NotContains(t, lost(), "/m2")
	pointer := w.seedConfigMap(seedpublication.PointerName)
	assert.NotEqual(t, first, pointer.ResourceVersion)
	version := func(o metav1.Object) int {
		n, err := strconv.Atoi(o.GetResourceVersion())
		require.NoError(t, err)
		return n
	}

	// Restored objects are void.
	w.awaitApplied(s, s.push("there again", more("m1", "m3")), "1")
	assert.NotContains(t, lost(), "/m1")
	assert.Contains(t, lost(), "/m2")
	before := version(w.seedConfigMap(seedpublication.ReviewName))
	w.awaitApplied(s, s.push("a purpose", map[string]string{"shoot.yaml": strings.Replace(shoot, "purpose: evaluation", "purpose: development", 1)}), "1")
	assert.Equal(t, before, version(w.seedConfigMap(seedpublication.ReviewName)), "nothing to say")
}

// TestHeldShootLosesNothing: a Shoot without its file is held with all its objects, which are not
// lost. Without a required review, the published one is removed.
func TestHeldShootLosesNothing(t *testing.T) {
	w := newTestEnv(t)
	w.Cleanup(func() {
		// The namespace may not exist.
		_ = w.client.DeleteAllOf(context.Background(), &corev1.ConfigMap{}, client.InNamespace(seedpublication.SeedNamespace("local")))
	})
	extra := map[string]string{"components/seed/a/kustomization.yaml": "resources: [x.yaml]\n", "components/seed/a/x.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: garden}\n"}
	files := map[string]string{"shoot.yaml": strings.Replace(shootFile(t), "  region: local\n", "  region: local\n  seedName: local\n", 1)}
	for name, text := range extra {
		files[name] = text
	}
	s := w.newShootLandscape("staying", files)
	w.startOperator(func(r *Role) { r.Catalogue = smallCatalogue(t) })
	w.followServed(s, repositoryURL(gittest.ServeHTTP(t, s.server.Root).URL), func(spec *landscapev1alpha1.LandscapeSpec) {
		spec.Review = landscapev1alpha1.ReviewRequired
	})
	w.awaitApplied(s, "", "1")
	s.git("rm", "-q", "shoot.yaml")
	w.awaitApplied(s, s.push("a Shoot goes, and something of the Seed", map[string]string{"components/seed/a/kustomization.yaml": "", "components/seed/a/x.yaml": ""}), "1")
	w.eventually("the seed knows", func() bool { return w.seedConfigMap(seedpublication.ReviewName) != nil })
	review := w.seedConfigMap(seedpublication.ReviewName)
	assert.Contains(t, review.Data["seen"], `"object":"/ConfigMap garden/x","owners":["seed local"]`)
	assert.NotContains(t, review.Data["seen"], "shoot ")
	assert.Equal(t, review.Data["number"], review.Data["complete"], "all of it is applied")

	w.changeLandscape(s.name, func(l *landscapev1alpha1.Landscape) { l.Spec.Review = "" })
	w.eventually("it is taken back", func() bool { return w.seedConfigMap(seedpublication.ReviewName) == nil })
}
