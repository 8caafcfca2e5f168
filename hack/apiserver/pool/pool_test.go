// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/pergola-dev/pergola/api/crds"
	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
	"github.com/pergola-dev/pergola/hack/apiserver"
)

// newPool starts a pool for this test alone.
func newPool(t *testing.T) {
	t.Helper()
	apiserver.SkipIfUnavailable(t)
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	require.NoError(t, err)
	p := &pool{}
	go p.serve(listener)
	t.Cleanup(func() {
		assert.NoError(t, listener.Close())
		p.stop()
	})
	t.Setenv(apiserver.PoolVariable, socket)
}

// acquire returns a server, and a function that gives it back.
func acquire(t *testing.T, definitions ...*apiextensionsv1.CustomResourceDefinition) (*rest.Config, kubernetes.Interface, func()) {
	t.Helper()
	config, end, err := apiserver.Acquire(definitions...)
	require.NoError(t, err)
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	return config, client, func() { require.NoError(t, end()) }
}

// listObjects returns all objects of a server by kind, without fields that it sets itself. An
// APIService is created again with the definitions of its group.
func listObjects(t *testing.T, config *rest.Config) map[string][]string {
	t.Helper()
	config = rest.CopyConfig(config)
	config.WarningHandler = rest.NoWarnings{}
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	served, err := discovery.NewDiscoveryClientForConfig(config)
	require.NoError(t, err)
	_, lists, err := served.ServerGroupsAndResources()
	require.NoError(t, err)
	out := map[string][]string{}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		require.NoError(t, err)
		for _, r := range list.APIResources {
			if !slices.Contains(r.Verbs, "list") || slices.Contains([]string{"leases", "events", "componentstatuses"}, r.Name) {
				continue
			}
			objects, err := client.Resource(version.WithResource(r.Name)).List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			out[r.Name] = []string{}
			for _, o := range objects.Items {
				o.SetResourceVersion("")
				o.SetManagedFields(nil)
				if r.Name == "apiservices" {
					o.SetUID("")
					o.SetCreationTimestamp(metav1.Time{})
				}
				text, err := o.MarshalJSON()
				require.NoError(t, err)
				out[r.Name] = append(out[r.Name], string(text))
			}
		}
	}
	return out
}

// TestServersAreReset checks that a server has nothing from its previous use.
func TestServersAreReset(t *testing.T) {
	newPool(t)
	ours := crds.ByGroup(resourcesv1alpha1.SchemeGroupVersion.Group)
	config, client, giveBack := acquire(t, ours...)
	ctx := t.Context()
	before := listObjects(t, config)

	_, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "one"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = client.CoreV1().ConfigMaps("one").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept", Finalizers: []string{"example.org/never"}}}, metav1.CreateOptions{})
	require.NoError(t, err)
	for i := range 300 { // more than one transaction
		_, err = client.CoreV1().ConfigMaps("one").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "many-"}, Data: map[string]string{"n": string(rune('a' + i%26))}}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	require.NoError(t, client.RbacV1().ClusterRoles().Delete(ctx, "view", metav1.DeleteOptions{}))
	edit, err := client.RbacV1().ClusterRoles().Get(ctx, "edit", metav1.GetOptions{})
	require.NoError(t, err)
	edit.Labels["changed"] = "yes"
	_, err = client.RbacV1().ClusterRoles().Update(ctx, edit, metav1.UpdateOptions{})
	require.NoError(t, err)
	_, err = envtest.InstallCRDs(config, envtest.CRDInstallOptions{CRDs: crds.ByGroup("security.gardener.cloud")})
	require.NoError(t, err)
	require.NoError(t, envtest.UninstallCRDs(config, envtest.CRDInstallOptions{CRDs: ours}))
	host := config.Host
	giveBack()

	config, client, giveBack = acquire(t, ours...)
	assert.Equal(t, host, config.Host, "another server was started")
	assert.Equal(t, before, listObjects(t, config))
	_, err = client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "one"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	giveBack()
}

// TestServersByDefinitions checks that two leases are two servers, and that a server without
// definitions does not serve the kinds of another lease.
func TestServersByDefinitions(t *testing.T) {
	newPool(t)
	ours := crds.ByGroup(resourcesv1alpha1.SchemeGroupVersion.Group)
	first, _, giveBackFirst := acquire(t)
	second, _, giveBackSecond := acquire(t, ours...)
	assert.NotEqual(t, first.Host, second.Host)
	assert.Contains(t, listObjects(t, second), "managedresources")
	giveBackSecond()
	giveBackFirst()

	again, _, giveBack := acquire(t)
	assert.Equal(t, first.Host, again.Host)
	assert.NotContains(t, listObjects(t, again), "managedresources")
	giveBack()
}

// TestRefusedDefinitions checks that New returns the reason.
func TestRefusedDefinitions(t *testing.T) {
	newPool(t)
	wrong := crds.ByGroup(resourcesv1alpha1.SchemeGroupVersion.Group)[0]
	wrong.Spec.Names.Plural = "others"
	_, _, err := apiserver.Acquire(wrong)
	require.ErrorContains(t, err, "metadata.name")
}
