// SPDX-License-Identifier: Apache-2.0

package authorizer

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/api/crds"
	"github.com/pergola-dev/pergola/hack/apiserver"
)

// authorizationConfig returns the catalogue's AuthorizationConfiguration with the files of a test.
func authorizationConfig(t *testing.T, webhook *httptest.Server) string {
	t.Helper()
	files, err := filepath.Glob("../../../landscapes/local/golden/runtime/garden/kube-apiserver/configmap-garden-kube-apiserver-authorization-config-*.yaml")
	require.NoError(t, err)
	require.Len(t, files, 1)
	data, err := os.ReadFile(files[0])
	require.NoError(t, err)
	var rendered corev1.ConfigMap
	require.NoError(t, yaml.Unmarshal(data, &rendered))

	dir := t.TempDir()
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: webhook.Certificate().Raw}))
	for _, name := range []string{"seed", "shoot"} {
		kubeconfig := `{apiVersion: v1, kind: Config, current-context: w, contexts: [{name: w, context: {cluster: w, user: w}}], users: [{name: w, user: {}}],
  clusters: [{name: w, cluster: {server: "` + webhook.URL + Path + name + `", certificate-authority-data: ` + ca + `}}]}`
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+"-authorizer-kubeconfig.yaml"), []byte(kubeconfig), 0o600))
	}
	config := regexp.MustCompile(`/etc/kubernetes/structured/authorization-kubeconfigs`).ReplaceAllString(rendered.Data["config.yaml"], dir)
	require.Contains(t, config, filepath.Join(dir, "seed-authorizer-kubeconfig.yaml"))
	file := filepath.Join(dir, "config.yaml")
	require.NoError(t, os.WriteFile(file, []byte(config), 0o600))
	return file
}

// TestWithAPIServer: a real API server with the configuration of the catalogue calls the webhook.
func TestWithAPIServer(t *testing.T) {
	apiserver.SkipIfUnavailable(t)
	var handler atomic.Pointer[Handler]
	webhook := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h := handler.Load(); h != nil {
			h.ServeHTTP(w, r)
			return
		}
		http.Error(w, "nobody is there", http.StatusServiceUnavailable)
	}))
	webhook.StartTLS()
	t.Cleanup(webhook.Close)

	var definitions []*apiextensionsv1.CustomResourceDefinition
	for _, k := range watchedKinds() {
		if definition := crds.Get(k.resource.Group, kindNames[k.kind]); definition != nil {
			definitions = append(definitions, definition)
		}
	}
	env := &envtest.Environment{CRDs: definitions}
	env.ControlPlane.GetAPIServer().Configure().Disable("authorization-mode").Set("authorization-config", authorizationConfig(t, webhook))
	config, err := apiserver.StartEnvironment(env)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, env.Stop()) })
	config.QPS = -1
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()

	admin, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	as := func(who authorizationv1.SubjectAccessReviewSpec) dynamic.Interface {
		other := rest.CopyConfig(config)
		other.Impersonate = rest.ImpersonationConfig{UserName: who.User, Groups: who.Groups}
		client, err := dynamic.NewForConfig(other)
		require.NoError(t, err)
		return client
	}
	shoots := gardencorev1beta1.SchemeGroupVersion.WithResource("shoots")
	secrets := corev1.SchemeGroupVersion.WithResource("secrets")
	namespaces := corev1.SchemeGroupVersion.WithResource("namespaces")
	create := func(object *unstructured.Unstructured) {
		gvr := secrets
		switch object.GetKind() {
		case "Shoot":
			gvr = shoots
		case "Namespace":
			gvr = namespaces
		case "Seed":
			gvr = gardencorev1beta1.SchemeGroupVersion.WithResource("seeds")
		}
		_, err := admin.Resource(gvr).Namespace(object.GetNamespace()).Create(ctx, object, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	shoot := func(namespace, name, seed string) *unstructured.Unstructured {
		return parseObjects(t, `[{apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, metadata: {namespace: `+namespace+`, name: `+name+`}, spec: {seedName: `+seed+`, region: r, kubernetes: {version: 1.34.1}, provider: {type: local}, cloudProfile: {name: local},
  resources: [{name: `+name+`, resourceRef: {apiVersion: v1, kind: Secret, name: `+name+`}}]}}]`)[0]
	}
	for _, namespace := range []string{"garden-one", "garden-two", "seed-a", "seed-b"} {
		create(parseObjects(t, `[{apiVersion: v1, kind: Namespace, metadata: {name: `+namespace+`}}]`)[0])
		create(parseObjects(t, `[{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: `+namespace+`}}]`)[0])
		create(parseObjects(t, `[{apiVersion: v1, kind: Secret, metadata: {name: unrelated, namespace: `+namespace+`}}]`)[0])
	}
	create(shoot("garden-one", "s", "a"))
	create(shoot("garden-two", "s", "b"))

	a, b, extension := as(gardenletA), as(gardenletB), as(extensionA)
	get := func(client dynamic.Interface, what, namespace, name string) error {
		gvr := shoots
		if what == "secrets" {
			gvr = secrets
		}
		_, err := client.Resource(gvr).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
		return err
	}
	refused := func(t *testing.T, err error) {
		t.Helper()
		require.Error(t, err)
		assert.True(t, apierrors.IsForbidden(err), "%v", err)
	}

	// The API server must report a failure and not "forbidden", so that clients retry.
	failed := func(t *testing.T, err error) {
		t.Helper()
		require.Error(t, err)
		assert.True(t, apierrors.IsInternalError(err), "%v", err)
	}

	t.Run("before anything is known", func(t *testing.T) {
		failed(t, get(a, "shoots", "garden-one", "s"))
		require.NoError(t, get(admin, "shoots", "garden-one", "s"), "others are not asked about")
	})

	h, err := New(ctx, config, Options{})
	require.NoError(t, err)
	handler.Store(h)
	require.NoError(t, wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) { return h.Ready() == nil, nil }), "%v", h.Ready())

	t.Run("its own", func(t *testing.T) {
		require.NoError(t, get(a, "shoots", "garden-one", "s"))
		require.NoError(t, get(a, "secrets", "garden-one", "s"))
		require.NoError(t, get(a, "secrets", "seed-a", "unrelated"))
		require.NoError(t, get(b, "shoots", "garden-two", "s"))
		require.NoError(t, get(b, "secrets", "garden-two", "s"))
		require.NoError(t, get(extension, "secrets", "garden-one", "s"))
		patch := []byte(`{"metadata":{"annotations":{"a":"b"}}}`)
		_, err := a.Resource(shoots).Namespace("garden-one").Patch(ctx, "s", "application/merge-patch+json", patch, metav1.PatchOptions{})
		require.NoError(t, err)
		_, err = a.Resource(shoots).Namespace("garden-two").Patch(ctx, "s", "application/merge-patch+json", patch, metav1.PatchOptions{})
		refused(t, err)
	})
	t.Run("that of others", func(t *testing.T) {
		refused(t, get(a, "shoots", "garden-two", "s"))
		refused(t, get(a, "secrets", "garden-two", "s"))
		refused(t, get(a, "secrets", "garden-one", "unrelated"))
		refused(t, get(a, "secrets", "seed-b", "s"))
		refused(t, get(b, "secrets", "garden-one", "s"))
		refused(t, get(extension, "secrets", "garden-two", "s"))
		err := get(a, "secrets", "garden-two", "s")
		assert.ErrorContains(t, err, "neither seed a nor its objects refer to secrets garden-two/s")
	})
	t.Run("lists", func(t *testing.T) {
		list, err := a.Resource(shoots).List(ctx, metav1.ListOptions{FieldSelector: "spec.seedName=a"})
		require.NoError(t, err)
		require.Len(t, list.Items, 1)
		_, err = a.Resource(shoots).List(ctx, metav1.ListOptions{FieldSelector: "spec.seedName=b"})
		refused(t, err)
		_, err = a.Resource(shoots).List(ctx, metav1.ListOptions{})
		refused(t, err)
		assert.ErrorContains(t, err, "spec.seedName=a")
		_, err = a.Resource(secrets).Namespace("garden-one").List(ctx, metav1.ListOptions{})
		refused(t, err)
		_, err = a.Resource(secrets).Namespace("garden-one").List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=s"})
		require.NoError(t, err)
		watch, err := a.Resource(shoots).Watch(ctx, metav1.ListOptions{LabelSelector: gardencorev1beta1.NameSeedPrefix + "a=true"})
		require.NoError(t, err)
		watch.Stop()
	})
	t.Run("changes", func(t *testing.T) {
		create(shoot("garden-one", "unrelated", "a"))
		eventually := func(what string, ok func() bool) {
			t.Helper()
			require.NoError(t, wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) { return ok(), nil }), what)
		}
		eventually("a Shoot that is new refers to it", func() bool { return get(a, "secrets", "garden-one", "unrelated") == nil })
		require.NoError(t, admin.Resource(shoots).Namespace("garden-one").Delete(ctx, "unrelated", metav1.DeleteOptions{}))
		eventually("it is gone", func() bool { return apierrors.IsForbidden(get(a, "secrets", "garden-one", "unrelated")) })
		eventually("its gardenlet is told so", func() bool { return apierrors.IsNotFound(get(a, "shoots", "garden-one", "unrelated")) })
	})
	t.Run("accounts", func(t *testing.T) {
		typed, err := kubernetes.NewForConfig(config)
		require.NoError(t, err)
		ask := func(q string, who authorizationv1.SubjectAccessReviewSpec) authorizationv1.SubjectAccessReviewStatus {
			attributes := parseQuestion(t, q)
			who.ResourceAttributes = &attributes
			answer, err := typed.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: who}, metav1.CreateOptions{})
			require.NoError(t, err)
			return answer.Status
		}
		assert.True(t, ask("create serviceaccounts/token seed-a/extension-x", gardenletA).Allowed)
		assert.False(t, ask("create serviceaccounts/token seed-b/extension-x", gardenletA).Allowed)
		assert.True(t, ask("create certificatesigningrequests/seedclient.certificates.k8s.io", gardenletA).Allowed, "whoever approves certificates asks so")
		assert.True(t, ask("get secrets x/y", authorizationv1.SubjectAccessReviewSpec{User: "nobody", Groups: []string{groupSeeds}}).Denied)
	})
	t.Run("when nobody is there any more", func(t *testing.T) {
		handler.Store(nil)
		failed(t, get(a, "shoots", "garden-one", "s"))
		webhook.Close()
		failed(t, get(a, "shoots", "garden-one", "s"))
		require.NoError(t, get(admin, "shoots", "garden-one", "s"))
	})
}
