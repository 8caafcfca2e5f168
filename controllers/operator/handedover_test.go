// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/source/gittest"
)

// newShootLandscape creates a landscape with the demonstration's Seed, Project and Shoot.
func (w *testEnv) newShootLandscape(name string, more map[string]string) *servedRepository {
	w.Helper()
	w.Cleanup(func() {
		for kind, namespace := range map[schema.GroupVersionKind]string{
			gardencorev1beta1.SchemeGroupVersion.WithKind("Shoot"): "garden-local", gardencorev1beta1.SchemeGroupVersion.WithKind("Seed"): "",
			gardencorev1beta1.SchemeGroupVersion.WithKind("Project"): "", gardencorev1beta1.SchemeGroupVersion.WithKind("CloudProfile"): "",
			{Group: "security.gardener.cloud", Version: "v1alpha1", Kind: "CredentialsBinding"}: "garden-local",
			corev1.SchemeGroupVersion.WithKind("Secret"):                                        "garden-local",
		} {
			o := &unstructured.Unstructured{}
			o.SetGroupVersionKind(kind)
			require.NoError(w, w.client.DeleteAllOf(context.Background(), o, client.InNamespace(namespace)))
		}
		require.NoError(w, w.client.DeleteAllOf(context.Background(), &corev1.Secret{}, client.InNamespace("garden")))
	})
	s := w.newServedRepository(name)
	files := map[string]string{
		"cloudprofile.yaml": readLocalFile(w.T, "gardenconfig/cloudprofile.yaml"),
		"seed.yaml":         readLocalFile(w.T, "seeds/local.yaml") + emptySecrets("virtual", "seed-dns-local", "backup-local"),
		"project.yaml":      readLocalFile(w.T, "projects/local/project.yaml") + "---\n" + readLocalFile(w.T, "projects/local/credentials.yaml"),
		"shoot.yaml":        shootFile(w.T),
	}
	for name, text := range more {
		files[name] = text
	}
	s.push("shoots", files)
	return s
}

// shootFile is the Shoot with schedules and an old version, and without a Seed, which the scheduler
// chooses.
func shootFile(t *testing.T) string {
	t.Helper()
	text := readLocalFile(t, "projects/local/shoot.yaml")
	for old, new := range map[string]string{
		"  seedName: local\n": "",
		"version: 1.34.1":     "version: 1.33.5",
		"  purpose: ":         "  hibernation:\n    schedules: [{start: \"0 20 * * *\", end: \"0 6 * * *\"}]\n    enabled: false\n  purpose: ",
	} {
		require.Contains(t, text, old)
		text = strings.Replace(text, old, new, 1)
	}
	return text
}

func (w *testEnv) getShoot() *unstructured.Unstructured {
	w.Helper()
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(gardencorev1beta1.SchemeGroupVersion.WithKind("Shoot"))
	require.NoError(w, w.client.Get(context.Background(), client.ObjectKey{Namespace: "garden-local", Name: "local"}, o))
	return o
}

// changeShootAs changes the Shoot as a controller does.
func (w *testEnv) changeShootAs(manager string, change func(spec map[string]any)) {
	w.Helper()
	o := w.getShoot()
	change(o.Object["spec"].(map[string]any))
	require.NoError(w, w.client.Update(context.Background(), o, client.FieldOwner(manager)))
}

func nestedField(o *unstructured.Unstructured, path ...string) any {
	v, _, _ := unstructured.NestedFieldNoCopy(o.Object, path...) // a malformed field is nil
	return v
}

// TestControllerOwnedShootFields: maintenance, hibernation and scheduling change the Shoot between
// two syncs. Neither drift repair nor the next revision nor a restart reverts them. A change of the
// field in Git counts.
func TestControllerOwnedShootFields(t *testing.T) {
	w := newTestEnv(t)
	small := func(r *Role) { r.Catalogue = smallCatalogue(t) }
	s := w.newShootLandscape("handed", nil)
	stop := w.startOperator(small)
	w.followServed(s, repositoryURL(gittest.ServeHTTP(t, s.server.Root).URL), func(spec *landscapev1alpha1.LandscapeSpec) {
		spec.Interval = &metav1.Duration{Duration: time.Second}
	})
	w.awaitApplied(s, "", "1")
	before := w.getShoot()
	assert.Equal(t, "1.33.5", nestedField(before, "spec", "kubernetes", "version"))
	assert.Nil(t, nestedField(before, "spec", "seedName"))

	w.changeShootAs("gardener-controller-manager", func(spec map[string]any) {
		spec["kubernetes"].(map[string]any)["version"] = "1.34.1"
		spec["hibernation"].(map[string]any)["enabled"] = true
	})
	w.changeShootAs("gardener-scheduler", func(spec map[string]any) { spec["seedName"] = "local" })
	acted := w.getShoot()
	holds := func(o *unstructured.Unstructured) {
		t.Helper()
		assert.Equal(t, []any{"1.34.1", true, "local"}, []any{nestedField(o, "spec", "kubernetes", "version"), nestedField(o, "spec", "hibernation", "enabled"), nestedField(o, "spec", "seedName")})
	}
	require.Never(t, func() bool { return w.getShoot().GetResourceVersion() != acted.GetResourceVersion() }, 3*time.Second, testInterval, "somebody writes")
	holds(w.getShoot())

	purpose := strings.Replace(shootFile(t), "purpose: evaluation", "purpose: development", 1)
	l := w.awaitApplied(s, s.push("another purpose", map[string]string{"shoot.yaml": purpose}), "1")
	assert.EqualValues(t, 1, l.Status.History[0].Changed)
	assert.Equal(t, "development", nestedField(w.getShoot(), "spec", "purpose"))
	holds(w.getShoot())
	w.restartOperator(&stop, small)
	l = w.awaitApplied(s, s.pushValue("2"), "2")
	holds(w.getShoot())
	assert.Empty(t, l.Status.LastErrors)

	// Git catches up: no revision may skip a minor version.
	var awake string
	for _, version := range []string{"1.34.1", "1.35.0"} {
		awake = strings.Replace(purpose, "1.33.5", version, 1)
		w.awaitApplied(s, s.push("version "+version, map[string]string{"shoot.yaml": awake}), "2")
		assert.Equal(t, version, nestedField(w.getShoot(), "spec", "kubernetes", "version"))
	}
	assert.Equal(t, []any{true, "local"}, []any{nestedField(w.getShoot(), "spec", "hibernation", "enabled"), nestedField(w.getShoot(), "spec", "seedName")})
	awake = strings.Replace(awake, "    enabled: false\n", "    enabled: true\n", 1)
	w.awaitApplied(s, s.push("asleep", map[string]string{"shoot.yaml": awake}), "2")
	w.changeShootAs("gardener-controller-manager", func(spec map[string]any) { spec["hibernation"].(map[string]any)["enabled"] = false })
	w.awaitApplied(s, s.push("awake", map[string]string{"shoot.yaml": strings.Replace(awake, "    schedules: ", "    # none: ", 1)}), "2")
	assert.Equal(t, true, nestedField(w.getShoot(), "spec", "hibernation", "enabled"), "without schedules Git decides")
}

// TestOperationIsExecutedOnce: a file operations/ID.yaml is executed exactly once. The operator may
// die between the request and its record, and the next one finds the file.
func TestOperationIsExecutedOnce(t *testing.T) {
	w := newTestEnv(t)
	operation := func(name string) string {
		return fmt.Sprintf("apiVersion: landscape.pergola.dev/v1alpha1\nkind: Operation\nspec:\n  object: Shoot garden-local/local\n  operation: %s\n", name)
	}
	s := w.newShootLandscape("operations", map[string]string{"operations/one.yaml": operation("reconcile")})
	p := newProxy(t)
	records := 0
	p.isLastRequest = func(r recordedRequest) bool {
		// The second write of the record marks it as done.
		if r.method == http.MethodPatch && strings.Contains(r.uri, "/configmaps/") && strings.Contains(r.uri, s.name+".operations") && strings.Contains(r.uri, "pergola-operate") {
			records++
		}
		return records >= 2
	}
	w.mayFail = true
	stop := w.startOperator(func(r *Role) { r.Catalogue, r.Config = smallCatalogue(t), p.clientConfig() })
	w.followServed(s, repositoryURL(gittest.ServeHTTP(t, s.server.Root).URL), func(spec *landscapev1alpha1.LandscapeSpec) {
		spec.Interval = &metav1.Duration{Duration: time.Second}
	})
	select {
	case <-p.killed:
	case <-time.After(time.Minute):
		require.Fail(t, "it does not come so far")
	}
	stop()
	w.deleteLease()
	w.mayFail = false
	// takeUp handles an operation as gardenlet does.
	takeUp := func() string {
		o := w.getShoot()
		asked := o.GetAnnotations()["gardener.cloud/operation"]
		require.NoError(t, w.client.Patch(context.Background(), o, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"gardener.cloud/operation":null}}}`))))
		return asked
	}
	assert.Equal(t, "reconcile", takeUp())

	small := func(r *Role) { r.Catalogue = smallCatalogue(t) }
	stop = w.startOperator(small)
	l := w.awaitApplied(s, "", "1")
	executed := func(l *landscapev1alpha1.Landscape) (ids []string) {
		for _, o := range l.Status.Operations {
			ids = append(ids, o.ID)
		}
		return ids
	}
	assert.Equal(t, []string{"one"}, executed(l))
	assert.Empty(t, takeUp(), "it was asked for already")

	next := s.push("another one", map[string]string{"operations/two.yaml": operation("retry")})
	l = w.awaitApplied(s, next, "1")
	assert.Equal(t, []string{"two", "one"}, executed(l))
	assert.Contains(t, l.Status.History[0].Message, "operation two executed: retry of Shoot garden-local/local")
	assert.NotContains(t, l.Status.History[0].Message, "operation one")
	assert.Equal(t, "retry", takeUp())
	w.restartOperator(&stop, small)
	w.awaitApplied(s, s.pushValue("2"), "2")
	assert.Empty(t, takeUp())
	assert.Equal(t, []string{"two", "one"}, executed(w.getLandscape(s.name)))

	// The same id with other content is an error, and nothing happens.
	s.push("other content", map[string]string{"operations/two.yaml": operation("reconcile")})
	l = w.awaitReady(s.name, "False ApplyFailed")
	assert.Contains(t, readyText(l), "an id counts once")
	assert.Empty(t, takeUp())
}
