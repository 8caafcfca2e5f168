package gardenwebhooks

import (
	"encoding/pem"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/api/crds"
	"github.com/pergola-dev/pergola/controllers/admission"
	"github.com/pergola-dev/pergola/controllers/authorizer"
	"github.com/pergola-dev/pergola/hack/apiserver"
)

// TestOnAPIServer: a real API server asks, with the registration of upstream's form.
func TestOnAPIServer(t *testing.T) {
	apiserver.Needed(t)
	config := apiserver.Start(t)
	config.QPS = -1
	_, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{CRDs: crds.All()})
	require.NoError(t, err)
	ctx := t.Context()
	admin, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	core, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	for _, name := range []string{"garden-one", "garden-two"} {
		_, err := core.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"gardener.cloud/role": "project"}}}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	v1beta1 := gardencorev1beta1.SchemeGroupVersion
	there := func(resource, text string) {
		t.Helper()
		o := object(t, text)
		_, err := admin.Resource(v1beta1.WithResource(resource)).Namespace(o.GetNamespace()).Create(ctx, o, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	there("projects", `{apiVersion: core.gardener.cloud/v1beta1, kind: Project, metadata: {name: one}, spec: {namespace: garden-one}}`)
	for namespace, seed := range map[string]string{"garden-one": "a", "garden-two": "b"} {
		there("shoots", `{apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, metadata: {name: s, namespace: `+namespace+`}, spec: {seedName: `+seed+`, region: local, provider: {type: local}, kubernetes: {version: 1.34.1}, cloudProfile: {kind: CloudProfile, name: local}}}`)
	}

	surroundings, err := admission.NewLiveSurroundings(ctx, config)
	require.NoError(t, err)
	reader, err := NewReader(config, surroundings)
	require.NoError(t, err)
	authorizers, err := authorizer.New(ctx, config, authorizer.Options{})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return authorizers.Ready() == nil }, 30*time.Second, 50*time.Millisecond)
	handler, err := admission.New(ctx, admission.Options{More: New(Options{Garden: reader, Authorizers: authorizers})})
	require.NoError(t, err)
	webhook := httptest.NewTLSServer(handler)
	t.Cleanup(webhook.Close)
	registered := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "gardener-admission-controller"}}
	register := func(name, path string, operations []admissionregistrationv1.OperationType, selector *metav1.LabelSelector, resources ...string) {
		registered.Webhooks = append(registered.Webhooks, admissionregistrationv1.ValidatingWebhook{
			Name: name + ".gardener.cloud", AdmissionReviewVersions: []string{"v1", "v1beta1"}, SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone), ObjectSelector: selector,
			ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: ptr.To(webhook.URL + path), CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: webhook.Certificate().Raw})},
			Rules:        []admissionregistrationv1.RuleWithOperations{{Operations: operations, Rule: admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: resources}}},
		})
	}
	const create, change, remove = admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete
	operations := func(all ...admissionregistrationv1.OperationType) []admissionregistrationv1.OperationType { return all }
	register("validate-namespace-deletion", PathNamespaceDeletion, operations(remove), nil, "namespaces")
	register("seed-restriction", PathSeedRestriction, operations(create), nil, "configmaps", "secrets")
	register("update-restriction", PathUpdateRestriction, operations(create, change, remove), &metav1.LabelSelector{MatchLabels: map[string]string{"gardener.cloud/update-restriction": "true"}}, "configmaps")
	_, err = core.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(ctx, registered, metav1.CreateOptions{})
	require.NoError(t, err)

	// The gardenlet of a has all rights by roles: what it may not is said by admission alone.
	gardenlet := rest.CopyConfig(config)
	gardenlet.Impersonate = rest.ImpersonationConfig{UserName: authorizer.UserSeed + "a", Groups: []string{authorizer.GroupSeeds, "system:masters"}}
	as, err := kubernetes.NewForConfig(gardenlet)
	require.NoError(t, err)
	secret := func(namespace, name string) error {
		_, err := as.CoreV1().Secrets(namespace).Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		return err
	}
	require.Eventually(t, func() bool { return apierrors.IsForbidden(secret("garden-two", "s.kubeconfig")) }, 30*time.Second, 100*time.Millisecond, "the API server takes a moment to ask")
	require.NoError(t, secret("garden-one", "s.kubeconfig"))
	require.True(t, apierrors.IsForbidden(secret("garden-one", "of-somebody")))

	published := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "s.ca-cluster", Labels: map[string]string{"gardener.cloud/update-restriction": "true"}}, Data: map[string]string{"ca.crt": "x"}}
	_, err = core.CoreV1().ConfigMaps("garden-one").Create(ctx, published, metav1.CreateOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	published, err = as.CoreV1().ConfigMaps("garden-one").Create(ctx, published, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = core.CoreV1().ConfigMaps("garden-one").Update(ctx, published, metav1.UpdateOptions{FieldManager: "encrypts-anew"})
	require.NoError(t, err, "what is written as it is harms nobody")
	published.Data["ca.crt"] = "y"
	_, err = core.CoreV1().ConfigMaps("garden-one").Update(ctx, published, metav1.UpdateOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)

	err = core.CoreV1().Namespaces().Delete(ctx, "garden-one", metav1.DeleteOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	assert.ErrorContains(t, err, "delete the Project")
	require.NoError(t, core.CoreV1().Namespaces().Delete(ctx, "garden-two", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}))
}
