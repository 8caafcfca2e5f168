// SPDX-License-Identifier: Apache-2.0

package gardenletdeployer

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"

	"github.com/pergola-dev/pergola/api/crds"
	"github.com/pergola-dev/pergola/controllers/charts"
	"github.com/pergola-dev/pergola/hack/apiserver"
	"github.com/pergola-dev/pergola/hack/chartregistry"
)

// virtual is the API server that the tests share as their virtual garden.
var virtual *rest.Config

func TestMain(m *testing.M) {
	os.Exit(apiserver.Main(m, func(config *rest.Config) { virtual = config }, crds.All()...))
}

// testGarden is a garden with a runtime cluster.
type testGarden struct {
	*testing.T
	ctx                  context.Context
	registry             *chartregistry.Registry
	garden, runtime      kubernetes.Interface
	objects              dynamic.Interface
	deployer             *Deployer
	runtimeConfig        *rest.Config
	gardenlets, seedKind dynamic.ResourceInterface
}

func newTestGarden(t *testing.T) *testGarden {
	t.Helper()
	s := &testGarden{T: t, ctx: t.Context(), registry: chartregistry.New(t), runtimeConfig: apiserver.Start(t)}
	var err error
	s.garden, err = kubernetes.NewForConfig(virtual)
	require.NoError(t, err)
	s.runtime, err = kubernetes.NewForConfig(s.runtimeConfig)
	require.NoError(t, err)
	s.objects, err = dynamic.NewForConfig(virtual)
	require.NoError(t, err)
	s.gardenlets = s.objects.Resource(kindGardenlet.GroupVersion().WithResource("gardenlets")).Namespace(Namespace)
	s.seedKind = s.objects.Resource(kindSeed.GroupVersion().WithResource("seeds"))
	_, err = s.garden.CoreV1().Namespaces().Create(s.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		require.NoError(t, err)
	}
	s.createSecret("login", map[string][]byte{corev1.DockerConfigJsonKey: s.registry.DockerConfigJSON(t, chartregistry.Password)})
	s.createSecret("authority", map[string][]byte{"bundle.crt": s.registry.CA()})
	s.deployer = &Deployer{
		Runtime: s.runtimeConfig, Virtual: virtual, Charts: &charts.Puller{}, Clock: clock.RealClock{},
		Address: func(context.Context) (string, error) { return "https://api.garden.example", nil },
	}
	require.NoError(t, s.deployer.open())
	t.Cleanup(s.deployer.close)
	return s
}

// createSecret creates a Secret in the virtual garden and deletes it after the test.
func (s *testGarden) createSecret(name string, data map[string][]byte) {
	s.Helper()
	secrets := s.garden.CoreV1().Secrets(Namespace)
	_, err := secrets.Create(s.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}, metav1.CreateOptions{})
	require.NoError(s, err)
	s.Cleanup(func() { assert.NoError(s, secrets.Delete(context.Background(), name, metav1.DeleteOptions{})) })
}

var gardenletCounter atomic.Int64

func (s *testGarden) createGardenlet(change func(spec map[string]any)) string {
	s.Helper()
	name := fmt.Sprintf("seed-%d", gardenletCounter.Add(1))
	spec := map[string]any{
		"deployment": map[string]any{
			"replicaCount": int64(3), "podLabels": map[string]any{"a": "b"}, "componentImageVectorOverwrite": "components: []\n",
			"helm": map[string]any{"ociRepository": map[string]any{
				"ref":           s.registry.Host() + "/" + chartregistry.Repository + ":v1",
				"pullSecretRef": map[string]any{"name": "login"}, "caBundleSecretRef": map[string]any{"name": "authority"},
			}},
		},
		"config": map[string]any{
			"apiVersion": "gardenlet.config.gardener.cloud/v1alpha1", "kind": "GardenletConfiguration",
			"seedConfig": map[string]any{"spec": map[string]any{"provider": map[string]any{"type": "local"}}},
		},
	}
	if change != nil {
		change(spec)
	}
	o := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	o.SetGroupVersionKind(kindGardenlet)
	o.SetName(name)
	_, err := s.gardenlets.Create(s.ctx, o, metav1.CreateOptions{})
	require.NoError(s, err)
	s.Cleanup(func() { assert.NoError(s, s.gardenlets.Delete(context.Background(), name, metav1.DeleteOptions{})) })
	return name
}

// createSeed registers a Seed, as a gardenlet does.
func (s *testGarden) createSeed(name string) {
	s.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"provider": map[string]any{"type": "local", "region": "local"},
		"networks": map[string]any{"pods": "10.1.0.0/16", "services": "10.2.0.0/16"},
		"ingress":  map[string]any{"domain": "seed.example", "controller": map[string]any{"kind": "nginx"}},
		"dns":      map[string]any{"provider": map[string]any{"type": "local", "secretRef": map[string]any{"name": "a", "namespace": "b"}}},
	}}}
	o.SetGroupVersionKind(kindSeed)
	o.SetName(name)
	_, err := s.seedKind.Create(s.ctx, o, metav1.CreateOptions{})
	require.NoError(s, err)
	s.Cleanup(func() { assert.NoError(s, s.seedKind.Delete(context.Background(), name, metav1.DeleteOptions{})) })
}

// pushChart publishes a chart of the gardenlet with a part of upstream's.
func (s *testGarden) pushChart(tag string) {
	s.Helper()
	s.registry.Push(s, tag, map[string]string{
		"gardenlet/Chart.yaml":  "apiVersion: v2\nname: gardenlet\nversion: 1.0.0\n",
		"gardenlet/values.yaml": "replicaCount: 2\n",
		"gardenlet/templates/bootstrap.yaml": `{{- with .Values.config.gardenClientConnection.bootstrapKubeconfig }}
apiVersion: v1
kind: Secret
metadata: {name: {{ .name }}, namespace: {{ .namespace }}}
data: {kubeconfig: {{ .kubeconfig | b64enc }}}
{{- end }}
`,
		"gardenlet/templates/deployment.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: gardenlet, namespace: {{ .Release.Namespace }}, labels: {seed: {{ .Values.config.seedConfig.metadata.name }}, components: {{ .Values.componentImageVectorOverwrites | b64enc | trunc 8 }}}}
spec:
  replicas: {{ .Values.replicaCount }}
  selector: {matchLabels: {app: gardener}}
  template:
    metadata: {labels: {app: gardener, a: {{ .Values.podLabels.a }}}}
    spec: {containers: [{name: gardenlet, image: gardenlet:v1}]}
`,
	})
}

// reconcileAll reconciles the Gardenlets once the cache is up to date.
func (s *testGarden) reconcileAll(name string) time.Duration {
	s.Helper()
	want, err := s.gardenlets.Get(s.ctx, name, metav1.GetOptions{})
	require.NoError(s, err)
	require.Eventually(s, func() bool {
		list, err := s.deployer.virtual.List(s.ctx, kindGardenlet, Namespace, nil)
		for _, o := range list {
			if err == nil && o.GetName() == name && o.GetResourceVersion() == want.GetResourceVersion() {
				return true
			}
		}
		return false
	}, time.Minute, 20*time.Millisecond)
	delete(s.deployer.attempts, name) // it is due again
	return s.deployer.ReconcileAll(s.ctx)
}

func (s *testGarden) condition(name string) (status, reason, message string) {
	s.Helper()
	live, err := s.gardenlets.Get(s.ctx, name, metav1.GetOptions{})
	require.NoError(s, err)
	list, _, err := unstructured.NestedSlice(live.Object, "status", "conditions")
	require.NoError(s, err)
	require.Len(s, list, 1)
	c := list[0].(map[string]any)
	assert.Equal(s, "GardenletReconciled", c["type"])
	observed, _, _ := unstructured.NestedInt64(live.Object, "status", "observedGeneration")
	assert.Equal(s, live.GetGeneration(), observed)
	return c["status"].(string), c["reason"].(string), c["message"].(string)
}

func (s *testGarden) annotate(name, operation string) {
	s.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"gardener.cloud/operation":%q}}}`, operation)
	_, err := s.gardenlets.Patch(s.ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	require.NoError(s, err)
}

// TestInstallInRuntimeCluster installs a gardenlet in the runtime cluster until it manages itself.
func TestInstallInRuntimeCluster(t *testing.T) {
	apiserver.SkipIfUnavailable(t)
	s := newTestGarden(t)
	name := s.createGardenlet(nil)
	s.reconcileAll(name)
	status, reason, message := s.condition(name)
	assert.Equal(t, []string{"False", "ChartProblem"}, []string{status, reason}, message)
	assert.Contains(t, message, "cannot be pulled")

	s.pushChart("v1")
	s.deployer.Charts = &charts.Puller{} // as after the cache of answers expires
	s.reconcileAll(name)
	status, reason, message = s.condition(name)
	assert.Equal(t, []string{"True", "Reconciled", messageNotRegistered}, []string{status, reason, message})
	deployment, err := s.runtime.AppsV1().Deployments(Namespace).Get(t.Context(), "gardenlet", metav1.GetOptions{})
	require.NoError(t, err)
	assert.EqualValues(t, 3, *deployment.Spec.Replicas)
	assert.Equal(t, name, deployment.Labels["seed"])
	assert.Equal(t, "Y29tcG9u", deployment.Labels["components"])
	assert.Equal(t, "b", deployment.Spec.Template.Labels["a"])
	bootstrap := s.bootstrapConfig()
	assert.Equal(t, "https://api.garden.example", bootstrap.Host)
	assert.Equal(t, virtual.CAData, bootstrap.CAData)
	s.requireToken(bootstrap.BearerToken, name)

	s.reconcileAll(name)
	assert.Equal(t, bootstrap.BearerToken, s.bootstrapConfig().BearerToken, "the token is kept while it is valid")

	s.createSeed(name)
	require.NoError(t, s.runtime.AppsV1().Deployments(Namespace).Delete(t.Context(), "gardenlet", metav1.DeleteOptions{}))
	s.reconcileAll(name)
	_, _, message = s.condition(name)
	assert.Equal(t, messageReconciled, message)
	_, err = s.runtime.AppsV1().Deployments(Namespace).Get(t.Context(), "gardenlet", metav1.GetOptions{})
	assert.True(t, apierrors.IsNotFound(err), "from when the Seed is there the gardenlet looks after itself")

	// The gardenlet has its own access now.
	secrets := s.runtime.CoreV1().Secrets(Namespace)
	require.NoError(t, secrets.Delete(t.Context(), nameBootstrapSecret, metav1.DeleteOptions{}))
	_, err = secrets.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: nameAccessSecret}}, metav1.CreateOptions{})
	require.NoError(t, err)
	s.annotate(name, "reconcile")
	s.reconcileAll(name)
	_, err = s.runtime.AppsV1().Deployments(Namespace).Get(t.Context(), "gardenlet", metav1.GetOptions{})
	assert.True(t, apierrors.IsNotFound(err), "that is the gardenlet's")
	s.annotate(name, operationRedeploy)
	s.reconcileAll(name)
	_, err = s.runtime.AppsV1().Deployments(Namespace).Get(t.Context(), "gardenlet", metav1.GetOptions{})
	require.NoError(t, err)
	_, err = secrets.Get(t.Context(), nameBootstrapSecret, metav1.GetOptions{})
	assert.True(t, apierrors.IsNotFound(err), "what has access needs no other")
	live, err := s.gardenlets.Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	assert.Empty(t, live.GetAnnotations())

	_, err = s.seedKind.Patch(t.Context(), name, types.MergePatchType, []byte(`{"status":{"clientCertificateExpirationTimestamp":"2020-01-01T00:00:00Z"}}`), metav1.PatchOptions{}, "status")
	require.NoError(t, err)
	s.annotate(name, operationRedeploy)
	s.reconcileAll(name)
	s.bootstrapConfig()
	_, err = secrets.Get(t.Context(), nameAccessSecret, metav1.GetOptions{})
	assert.True(t, apierrors.IsNotFound(err), "what has expired is replaced")
}

// bootstrapConfig returns the access that the gardenlet was given.
func (s *testGarden) bootstrapConfig() *rest.Config {
	s.Helper()
	secret, err := s.runtime.CoreV1().Secrets(Namespace).Get(s.ctx, nameBootstrapSecret, metav1.GetOptions{})
	require.NoError(s, err)
	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["kubeconfig"])
	require.NoError(s, err)
	return config
}

func (s *testGarden) requireToken(token, name string) {
	s.Helper()
	require.Len(s, token, 6+1+16)
	secret, err := s.garden.CoreV1().Secrets("kube-system").Get(s.ctx, "bootstrap-token-"+token[:6], metav1.GetOptions{})
	require.NoError(s, err)
	assert.Equal(s, corev1.SecretTypeBootstrapToken, secret.Type)
	assert.Equal(s, token[7:], string(secret.Data["token-secret"]))
	assert.Contains(s, string(secret.Data["description"]), "garden/"+name)
}

// TestInstallInOtherCluster installs a gardenlet in another cluster, here the virtual garden's, and
// covers its errors.
func TestInstallInOtherCluster(t *testing.T) {
	apiserver.SkipIfUnavailable(t)
	s := newTestGarden(t)
	s.pushChart("v1")
	name := s.createGardenlet(func(spec map[string]any) { spec["kubeconfigSecretRef"] = map[string]any{"name": "target"} })
	expect := func(want, in string) {
		t.Helper()
		s.reconcileAll(name)
		_, reason, message := s.condition(name)
		assert.Equal(t, want, reason, message)
		assert.Contains(t, message, in)
	}
	expect("KubeconfigMissing", "target")
	s.createSecret("target", map[string][]byte{"other": nil})
	expect("KubeconfigMissing", "has no key kubeconfig")
	fill := func(kubeconfig []byte) {
		secrets := s.garden.CoreV1().Secrets(Namespace)
		had, err := secrets.Get(t.Context(), "target", metav1.GetOptions{})
		require.NoError(t, err)
		had.Data = map[string][]byte{"kubeconfig": kubeconfig}
		_, err = secrets.Update(t.Context(), had, metav1.UpdateOptions{})
		require.NoError(t, err)
	}
	fill([]byte("no kubeconfig"))
	expect("KubeconfigMissing", "cannot be read")
	fill(kubeconfigOf(t, &rest.Config{Host: "https://127.0.0.1:1"}))
	expect("ClusterNotReachable", "connection refused")
	fill(kubeconfigOf(t, virtual))
	expect("Reconciled", messageNotRegistered)
	deployments := s.garden.AppsV1().Deployments(Namespace)
	_, err := deployments.Get(t.Context(), "gardenlet", metav1.GetOptions{})
	require.NoError(t, err)
	require.NoError(t, deployments.Delete(t.Context(), "gardenlet", metav1.DeleteOptions{}))
	_, err = s.runtime.AppsV1().Deployments(Namespace).Get(t.Context(), "gardenlet", metav1.GetOptions{})
	assert.True(t, apierrors.IsNotFound(err), "nothing of it is in the runtime cluster")
}

func kubeconfigOf(t *testing.T, c *rest.Config) []byte {
	t.Helper()
	out, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:  map[string]*clientcmdapi.Cluster{"a": {Server: c.Host, CertificateAuthorityData: c.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"a": {ClientCertificateData: c.CertData, ClientKeyData: c.KeyData}},
		Contexts:  map[string]*clientcmdapi.Context{"a": {Cluster: "a", AuthInfo: "a"}}, CurrentContext: "a",
	})
	require.NoError(t, err)
	return out
}

// TestRunRetriesAfterError continues by itself after the cause of an error is fixed.
func TestRunRetriesAfterError(t *testing.T) {
	apiserver.SkipIfUnavailable(t)
	s := newTestGarden(t)
	s.pushChart("v1")
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	other := &Deployer{Runtime: s.runtimeConfig, Virtual: virtual, Address: s.deployer.Address, Charts: s.deployer.Charts, Clock: clock.RealClock{}}
	go func() { done <- other.Run(ctx) }()
	name := s.createGardenlet(func(spec map[string]any) { delete(spec["config"].(map[string]any), "seedConfig") })
	await := func(want string) {
		t.Helper()
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			live, err := s.gardenlets.Get(t.Context(), name, metav1.GetOptions{})
			require.NoError(c, err)
			list, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
			require.Len(c, list, 1)
			assert.Equal(c, want, list[0].(map[string]any)["reason"])
		}, 2*time.Minute, 50*time.Millisecond)
	}
	await("ConfigurationInvalid")
	_, err := s.gardenlets.Patch(t.Context(), name, types.MergePatchType, []byte(`{"spec":{"config":{"seedConfig":{"spec":{}}}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	await("Reconciled")
	stop()
	require.NoError(t, <-done)
}
