// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/pergola-dev/pergola/controllers/permit"
	"github.com/pergola-dev/pergola/landscapes"
)

// TestSecretsOfHeldGardenStayInRuntimeCluster checks that removing the file of a Garden, but not
// of its Secrets, copies no Secret to the virtual garden. The Garden stays until its deletion is
// confirmed.
func TestSecretsOfHeldGardenStayInRuntimeCluster(t *testing.T) {
	needsServer(t)
	garden := strings.Replace(derivedGarden, "spec:\n", "spec:\n  dns: {providers: [{name: primary, type: local, secretRef: {name: dns-of-the-runtime-cluster}}]}\n", 1)
	garden = strings.Replace(garden, "{name: derived.example}", "{name: derived.example, provider: primary}", 1)
	secret := "{apiVersion: v1, kind: Secret, metadata: {name: dns-of-the-runtime-cluster, namespace: garden}, stringData: {a: b}}\n"
	d := newDerivedLandscape(t, map[string]string{"garden.yaml": garden, "secret.yaml": secret}, caRequest)
	ctx := testContext(t)
	_, err := d.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "garden"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	d.createAccess()
	d.deleteObjectsAtEnd("inside")
	_, err = d.converger.Apply(ctx)
	require.NoError(t, err)

	dir := t.TempDir()
	for name, text := range map[string]string{"landscape.yaml": "apiVersion: landscape.pergola.dev/v1alpha1\nkind: Landscape\nmetadata: {name: derived}\n", "secret.yaml": secret} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	l, _, err := landscapes.Load(t.Context(), dir, landscapes.Options{})
	require.NoError(t, err)
	d.converger.Close()
	after, err := New(l, Options{Catalogue: d.converger.options.Catalogue, Connections: Connections{Configs: map[string]*rest.Config{Runtime: d.runtime, Virtual: server.config}}, Clock: clock.RealClock{},
		Permits: Permits{Gate: permit.DefaultGate()}, Process: ProcessIdentity{Holder: "test"}, Timing: Timing{StepTimeout: d.converger.options.Timing.StepTimeout}})
	require.NoError(t, err)
	t.Cleanup(after.Close)
	p, err := after.Plan(ctx)
	require.NoError(t, err)
	for _, item := range p.Items {
		assert.NotEqual(t, Virtual, item.Cluster, item.Object)
	}
	report, err := after.Apply(ctx)
	require.NoError(t, err)
	assert.Len(t, report.Held, 2, "the Garden, and what it refers to")
	_, err = d.client.CoreV1().Secrets("garden").Get(ctx, "dns-of-the-runtime-cluster", metav1.GetOptions{})
	require.NoError(t, err)
	inside, err := kubernetes.NewForConfig(server.config)
	require.NoError(t, err)
	_, err = inside.CoreV1().Secrets("garden").Get(ctx, "dns-of-the-runtime-cluster", metav1.GetOptions{})
	assert.True(t, apierrors.IsNotFound(err), "%v", err)
}
