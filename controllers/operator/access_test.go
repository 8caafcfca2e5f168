// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/controllers/access"
	"github.com/pergola-dev/pergola/controllers/landscape"
)

// TestGardenAccessIsDerived: a Landscape beside the Garden without a secretRef waits for the
// Garden's access, reports that, and continues once it exists.
func TestGardenAccessIsDerived(t *testing.T) {
	w := newTestEnv(t)
	w.namespace = access.GardenNamespace
	err := w.client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}})
	require.NoError(t, client.IgnoreAlreadyExists(err))
	r := w.newRepository("derives")
	r.commit("something for the virtual garden", map[string]string{"b.yaml": strings.ReplaceAll(r.configMap("b", "1"), ": runtime", ": virtual")})
	w.startOperator()
	w.createLandscape("derives", r, func(spec *landscapev1alpha1.LandscapeSpec) { spec.Clusters = nil })
	w.awaitLandscape("derives", func(l *landscapev1alpha1.Landscape) bool {
		return strings.HasPrefix(readyText(l), "False ApplyFailed") &&
			strings.Contains(readyText(l), "access to the virtual garden does not exist yet: Secret garden/gardener-internal is created with the Garden")
	})
	assert.Equal(t, "1", w.configMapValue("a"), "the runtime cluster does not wait")
	w.createSecret(access.SecretName, map[string]string{access.KubeconfigKey: kubeconfig(t)})
	w.awaitReady("derives", "True")
	assert.Equal(t, "1", w.configMapValue("b"))
	assert.NotContains(t, w.log.String(), "PRIVATE KEY")
}

// TestVirtualAccessPrecedence: only Landscapes beside the Garden get its access, and a secretRef
// takes precedence.
func TestVirtualAccessPrecedence(t *testing.T) {
	w := newTestEnv(t)
	named := &landscapev1alpha1.Landscape{}
	named.Spec.Clusters = &landscapev1alpha1.Clusters{Virtual: &landscapev1alpha1.ClusterAccess{SecretRef: &landscapev1alpha1.SecretKeyReference{Name: "virtual"}}}
	for name, c := range map[string]struct {
		namespace string
		object    *landscapev1alpha1.Landscape
		there     bool
		late      bool
	}{
		"beside the Garden": {access.GardenNamespace, &landscapev1alpha1.Landscape{}, true, true},
		"elsewhere":         {w.namespace, &landscapev1alpha1.Landscape{}, false, false},
		"named":             {w.namespace, named, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			var all clusterConnections
			defer all.close()
			connect := func() *apply.Cluster {
				err := all.connectChanged(t.Context(), testServer.config, nil, secretReader{client: w.client, namespace: c.namespace}, c.object, apply.ClusterOptions{Clock: clock.RealClock{}})
				require.NoError(t, err)
				return all.virtual
			}
			first := connect()
			require.Equal(t, c.there, first != nil)
			assert.Same(t, first, connect(), "it stays as long as the access is the same")
			if c.there {
				assert.Equal(t, c.late, access.IsLazyConfig(first.RESTConfig()))
			}
		})
	}
}

// TestUsedConnectionsStayOpen: a discarded preparation leaves the connections of the
// running job open.
func TestUsedConnectionsStayOpen(t *testing.T) {
	s := newTestReconciler(t, landscapev1alpha1.LandscapeStatus{})
	defer s.shared.clusters.close()
	connect := func(account string) *apply.Cluster {
		object := &landscapev1alpha1.Landscape{}
		object.Spec.ServiceAccountName = account
		require.NoError(t, s.shared.clusters.connectChanged(t.Context(), &rest.Config{Host: "https://127.0.0.1:1"}, nil, secretReader{namespace: "elsewhere"}, object, apply.ClusterOptions{Clock: s.operator.role.Clock}))
		return s.shared.clusters.runtime
	}
	used := connect("")
	given := minimalRevision(t, "a")
	other := connect("somebody")
	assert.NotSame(t, used, other)
	converger, err := landscape.New(given.landscape, landscape.Options{Catalogue: components.FS, Connections: landscape.Connections{Clusters: s.shared.clusters.byName()}, Clock: s.operator.role.Clock})
	require.NoError(t, err)
	// Another revision is prepared meanwhile.
	s.finishPreparation(&preparation{cancel: func() {}}, &job{revision: given, converger: converger}, nil)
	assert.Same(t, other, connect("somebody"))
	assert.Equal(t, []*apply.Cluster{used}, s.shared.clusters.takeReplaced())
	assert.Empty(t, s.shared.clusters.takeReplaced())
	used.Close()
}
