// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/hack/apiserver"
)

// seedSecret creates a Secret of the secrets manager and its namespace.
func seedSecret(t *testing.T, client kubernetes.Interface, namespace, name, value string, labels map[string]string) {
	t.Helper()
	_, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		require.NoError(t, err)
	}
	all := map[string]string{labelManagedBy: secretsManager, "manager-identity": "gardenlet", labelName: name}
	maps.Copy(all, labels)
	_, err = client.CoreV1().Secrets(namespace).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: all}, StringData: map[string]string{"a": value}}, metav1.CreateOptions{})
	require.NoError(t, err)
}

// TestRestoreOfSeeds: the Secrets that migrate with control planes are restored to a seed. Running
// seeds stay unchanged, and a seed that does not exist yet is reported.
func TestRestoreOfSeeds(t *testing.T) {
	apiserver.SkipIfUnavailable(t)
	config := apiserver.Start(t)
	before := newSite(t, config)
	before.seeds = map[string]*rest.Config{"seed": apiserver.Start(t), "same": config}
	before.connect()
	ctx := t.Context()
	client, err := kubernetes.NewForConfig(before.seeds["seed"])
	require.NoError(t, err)
	persist := map[string]string{labelPersist: valueTrue}
	seedSecret(t, client, "garden", "ca-seed", "seed", nil)
	seedSecret(t, client, "shoot--a--b", "ca", "shoot", persist)
	seedSecret(t, client, "shoot--a--b", "server", "signed anew", nil)
	require.NoError(t, before.apply())
	a := rewriteArchive(t, before.collect())
	var names []string
	for _, e := range a.EntriesOf("seed") {
		names = append(names, e.Item.Namespace+"/"+e.Item.Name)
	}
	assert.Equal(t, []string{"garden/ca-seed", "shoot--a--b/ca"}, names)
	assert.Empty(t, a.EntriesOf("same"), "what is in the runtime cluster is in it once")
	same := map[string]string{}
	for _, c := range a.Manifest.Clusters {
		same[c.Name] = c.SameAs
	}
	assert.Equal(t, map[string]string{"runtime": "", "same": "runtime", "seed": ""}, same)

	t.Log("it lives")
	require.NoError(t, client.CoreV1().Namespaces().Delete(ctx, "shoot--a--b", metav1.DeleteOptions{}))
	p, err := before.restorer(a).Plan(ctx)
	require.NoError(t, err)
	assert.False(t, p.HasWrites())
	assert.Equal(t, []SkippedCluster{{Cluster: "seed", Reason: "it has its Secrets, and is running", IsRunning: true}}, p.Skipped)

	t.Log("it is not there yet")
	after := newSite(t, apiserver.Start(t))
	p, err = after.restorer(a).Restore(ctx)
	require.NoError(t, err)
	assert.Equal(t, []SkippedCluster{{Cluster: "seed", Reason: "there is no access to it"}}, p.Skipped)
	require.NoError(t, after.apply())
	dead := rest.CopyConfig(config)
	dead.Host = "https://127.0.0.1:1"
	after.seeds = map[string]*rest.Config{"seed": dead}
	after.connect()
	p, err = after.restorer(a).Plan(ctx)
	require.NoError(t, err)
	require.Len(t, p.Skipped, 1)
	assert.False(t, p.Skipped[0].IsRunning)
	r := after.restorer(a)
	r.OnlyClusters = []string{"seed"}
	_, err = r.Plan(ctx)
	require.Error(t, err, "who is asked for has to be there")

	t.Log("it is new")
	after.seeds["seed"] = apiserver.Start(t)
	after.connect()
	p, err = after.restorer(a).Restore(ctx)
	require.NoError(t, err)
	assert.Empty(t, p.Skipped)
	client, err = kubernetes.NewForConfig(after.seeds["seed"])
	require.NoError(t, err)
	ca, err := client.CoreV1().Secrets("shoot--a--b").Get(ctx, "ca", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, "shoot", string(ca.Data["a"]))
	assert.Equal(t, valueTrue, ca.Labels[labelPersist])
	require.NoError(t, client.CoreV1().Secrets("shoot--a--b").Delete(ctx, "ca", metav1.DeleteOptions{}))
	p, err = after.restorer(a).Restore(ctx)
	require.NoError(t, err)
	assert.True(t, p.HasWrites(), "the same backup can be gone on with")
	_, err = client.CoreV1().Secrets("shoot--a--b").Get(ctx, "ca", metav1.GetOptions{})
	require.NoError(t, err)

	t.Log("what it has made since goes before the backup")
	require.NoError(t, client.CoreV1().Secrets("shoot--a--b").Delete(ctx, "ca", metav1.DeleteOptions{}))
	seedSecret(t, client, "shoot--a--b", "ca", "another one", persist)
	_, err = r.withConverger(after.converger).Plan(ctx)
	require.NoError(t, err)
	_, err = r.Restore(ctx)
	require.ErrorAs(t, err, new(*RefusedError))
	require.ErrorContains(t, err, "seed: Secret shoot--a--b/ca: it exists with other content")
	assert.NotContains(t, err.Error(), "another one")
}

func (r *Restorer) withConverger(c *landscape.Converger) *Restorer {
	r.Converger = c
	return r
}
