// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/controllers/seedpublication"
	"github.com/pergola-dev/pergola/health/condition"
	"github.com/pergola-dev/pergola/source/gittest"
	"github.com/pergola-dev/pergola/source/receiver"
)

// TestNextSyncReportsSeedFailure: a Shoot fails while the sync waits for its Seed. An
// approval starts another sync of the commit, which replaces the first and reports the failure.
func TestNextSyncReportsSeedFailure(t *testing.T) {
	w := newTestEnv(t)
	w.Cleanup(func() {
		// The namespace may not exist.
		_ = w.client.DeleteAllOf(context.Background(), &corev1.ConfigMap{}, client.InNamespace(seedpublication.SeedNamespace("local")))
	})
	files := func(value, purpose string) map[string]string {
		shoot := strings.Replace(shootFile(t), "  region: local\n", "  region: local\n  seedName: local\n", 1)
		require.Contains(t, shoot, "purpose: evaluation")
		return map[string]string{
			"shoot.yaml":                            strings.Replace(shoot, "purpose: evaluation", "purpose: "+purpose, 1),
			"components/shoot/b/kustomization.yaml": "resources: [x.yaml]\n",
			"components/shoot/b/x.yaml":             "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: shoot--local--local}\ndata: {value: \"" + value + "\"}\n",
		}
	}
	s := w.newShootLandscape("over", files("1", "evaluation"))
	w.startOperator(func(r *Role) { r.Catalogue = smallCatalogue(t) })
	w.followServed(s, repositoryURL(gittest.ServeHTTP(t, s.server.Root).URL))
	w.awaitApplied(s, "", "1")
	working := func(want string) {
		t.Helper()
		w.awaitLandscape(s.name, func(l *landscapev1alpha1.Landscape) bool {
			c := condition.Get(l.Status.Conditions, landscapev1alpha1.LandscapeGardenletsWorking)
			return c == nil && want == "" || c != nil && want != "" && strings.Contains(c.Message, want)
		})
	}
	digest := func() string { return w.seedConfigMap(seedpublication.PointerName).Data["digest"] }
	working("Shoot garden-local/local")
	w.writeSeedReport(seedpublication.SeedReport{Digest: digest()})
	w.markReconciled("Seed", "")
	w.markReconciled("Shoot", "garden-local")
	working("")

	commit := s.push("both", files("2", "testing"))
	w.awaitLandscape(s.name, func(l *landscapev1alpha1.Landscape) bool {
		return strings.HasSuffix(l.Status.LastAppliedRevision, commit)
	})
	working("waiting for the gardenlets: Seed local, Shoot garden-local/local")
	failed := fmt.Sprintf(`{"status": {"observedGeneration": %d, "lastOperation": {"type": "Reconcile", "state": "Error", "progress": 10, "description": "no machines", "lastUpdateTime": "2026-01-01T00:00:00Z"}}}`, w.getShoot().GetGeneration())
	require.NoError(t, w.client.Status().Patch(context.Background(), w.getShoot(), client.RawPatch(types.MergePatchType, []byte(failed))))
	working("Shoot garden-local/local: Error (10%): no machines; waiting for the gardenlets: Seed local")

	before := digest()
	handle, err := NewLandscapeClient(testServer.config, receiver.Key{Namespace: w.namespace, Name: s.name}, clock.RealClock{}, "ada")
	require.NoError(t, err)
	require.NoError(t, handle.Approve(context.Background(), []string{"local/0123456789ab"}, true))
	w.eventually("the approval is published", func() bool { return digest() != before })
	w.writeSeedReport(seedpublication.SeedReport{Digest: digest()})
	// While that sync applies, no gardenlet is reported as working.
	l := w.awaitLandscape(s.name, func(l *landscapev1alpha1.Landscape) bool {
		return l.Status.History[0].Gardenlets == "Shoot garden-local/local: Error (10%): no machines"
	})
	assert.Contains(t, l.Status.History[0].Revision, commit)
	working("")
}
