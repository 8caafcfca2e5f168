// SPDX-License-Identifier: Apache-2.0

package garden

import (
	"encoding/pem"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/api/crds"
	"github.com/pergola-dev/pergola/controllers/webhook/admission"
	"github.com/pergola-dev/pergola/controllers/webhook/authorizer"
	"github.com/pergola-dev/pergola/hack/apiserver"
)

// TestOnAPIServer: a real API server calls the webhooks as the catalogue registers them.
func TestOnAPIServer(t *testing.T) {
	apiserver.SkipIfUnavailable(t)
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
		o := parseObject(t, text)
		_, err := admin.Resource(v1beta1.WithResource(resource)).Namespace(o.GetNamespace()).Create(ctx, o, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	there("projects", `{apiVersion: core.gardener.cloud/v1beta1, kind: Project, metadata: {name: one}, spec: {namespace: garden-one}}`)
	for namespace, seed := range map[string]string{"garden-one": "a", "garden-two": "b"} {
		there("shoots", `{apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, metadata: {name: s, namespace: `+namespace+`}, spec: {seedName: `+seed+`, region: local, provider: {type: local}, kubernetes: {version: 1.34.1}, cloudProfile: {kind: CloudProfile, name: local}}}`)
	}

	surroundings, err := admission.NewWatchedObjects(ctx, config)
	require.NoError(t, err)
	reader, err := NewReader(config, surroundings)
	require.NoError(t, err)
	authorizers, err := authorizer.New(ctx, config, authorizer.Options{})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return authorizers.Ready() == nil }, 30*time.Second, 50*time.Millisecond)
	handler, err := admission.New(ctx, admission.Options{ExtraResponders: New(Options{Garden: reader, Authorizers: authorizers})})
	require.NoError(t, err)
	webhook := httptest.NewTLSServer(handler)
	t.Cleanup(webhook.Close)
	mutating, validating := catalogueWebhooks(t, webhook)
	_, err = core.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(ctx, mutating, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = core.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(ctx, validating, metav1.CreateOptions{})
	require.NoError(t, err)

	// Roles give the gardenlet of a all permissions: only admission restricts it.
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

	t.Run("configurations", func(t *testing.T) { testConfigurations(t, core, admin) })
	t.Run("who is asked about", func(t *testing.T) { testRequesters(t, config, core, webhook) })
	webhook.Close()
	t.Run("nobody answers", func(t *testing.T) { testUnavailableWebhooks(t, config, core) })
}

// catalogueWebhooks returns the configurations of the catalogue with the address of a test server.
func catalogueWebhooks(t *testing.T, webhook *httptest.Server) (*admissionregistrationv1.MutatingWebhookConfiguration, *admissionregistrationv1.ValidatingWebhookConfiguration) {
	t.Helper()
	const file = "../../../components/garden/gardener-admission-controller/cases/limits/gardener-admission-controller-webhooks.yaml"
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	mutating, validating := &admissionregistrationv1.MutatingWebhookConfiguration{}, &admissionregistrationv1.ValidatingWebhookConfiguration{}
	for _, document := range strings.Split(string(text), "\n---\n") {
		switch {
		case strings.Contains(document, "\nkind: MutatingWebhookConfiguration\n"):
			require.NoError(t, yaml.UnmarshalStrict([]byte(document), mutating))
		case strings.Contains(document, "\nkind: ValidatingWebhookConfiguration\n"):
			require.NoError(t, yaml.UnmarshalStrict([]byte(document), validating))
		}
	}
	require.NotEmpty(t, mutating.Webhooks)
	require.NotEmpty(t, validating.Webhooks)
	bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: webhook.Certificate().Raw})
	known, there := New(Options{}), map[string]bool{}
	lead := func(c *admissionregistrationv1.WebhookClientConfig) {
		t.Helper()
		path, is := strings.CutPrefix(*c.URL, "https://gardener-admission-controller.garden")
		require.True(t, is, *c.URL)
		require.Contains(t, known, path, "somebody answers it")
		there[path] = true
		c.URL, c.CABundle = ptr.To(webhook.URL+path), bundle
	}
	for i := range mutating.Webhooks {
		lead(&mutating.Webhooks[i].ClientConfig)
	}
	for i := range validating.Webhooks {
		lead(&validating.Webhooks[i].ClientConfig)
	}
	require.Len(t, there, len(known), "all that is answered is asked")
	return mutating, validating
}

// testConfigurations covers requests in a Project's namespace that are rejected for all users.
func testConfigurations(t *testing.T, core kubernetes.Interface, admin dynamic.Interface) {
	ctx := t.Context()
	policies := core.CoreV1().ConfigMaps("garden-one")
	config, err := policies.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "policy"}, Data: map[string]string{"policy": policy}}, metav1.CreateOptions{})
	require.NoError(t, err)
	shoots := admin.Resource(gardencorev1beta1.SchemeGroupVersion.WithResource("shoots")).Namespace("garden-one")
	refer := func(to string) error {
		_, err := shoots.Patch(ctx, "s", types.MergePatchType, []byte(`{"spec":{"kubernetes":{"kubeAPIServer":{"auditConfig":{"auditPolicy":{"configMapRef":{"name":"`+to+`"}}}}}}}`), metav1.PatchOptions{})
		return err
	}
	err = refer("absent")
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	require.ErrorContains(t, err, `ConfigMap "absent" does not exist`)
	require.NoError(t, refer("policy"))
	config.Data["policy"] = `{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Everything"}]}`
	require.Eventually(t, func() bool { // Shoots come from a cache
		_, err = policies.Update(ctx, config, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
		return apierrors.IsInvalid(err)
	}, 10*time.Second, 50*time.Millisecond)
	require.ErrorContains(t, err, "audit policy of Shoot garden-one/s")

	const runs = `{apiVersion: v1, kind: Config, users: [{name: a, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: sh}}}]}`
	access := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "access"}, Data: map[string][]byte{"kubeconfig": []byte(runs)}}
	_, err = core.CoreV1().Secrets("garden-one").Create(ctx, access, metav1.CreateOptions{})
	require.True(t, apierrors.IsForbidden(err) || apierrors.IsInvalid(err), "%v", err)
	_, err = core.CoreV1().Secrets("default").Create(ctx, access, metav1.CreateOptions{})
	require.NoError(t, err, "no Project's namespace")

	credentials := parseObject(t, `{apiVersion: security.gardener.cloud/v1alpha1, kind: CredentialsBinding, metadata: {name: c, namespace: garden-one}, provider: {type: local}, credentialsRef: {apiVersion: v1, kind: Secret, name: keys, namespace: garden-one}}`)
	_, err = admin.Resource(schema.GroupVersionResource{Group: "security.gardener.cloud", Version: "v1alpha1", Resource: "credentialsbindings"}).Namespace("garden-one").Create(ctx, credentials, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		keys, err := core.CoreV1().Secrets("garden-one").Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "keys"}}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err == nil && keys.Labels["provider.shoot.gardener.cloud/local"] == "true"
	}, 10*time.Second, 50*time.Millisecond, "they are labelled")
}

// isWebhookError reports whether an error comes from a webhook, either as a rejection or as a
// failed call.
func isWebhookError(err error, name string) bool {
	return err != nil && strings.Contains(err.Error(), `webhook "`+name)
}

// testRequesters: the restrictions apply to exactly the users that the authorizers know.
func testRequesters(t *testing.T, config *rest.Config, core kubernetes.Interface, webhook *httptest.Server) {
	ctx := t.Context()
	// The failure of an unreachable webhook shows that it was called.
	_, validating := catalogueWebhooks(t, webhook)
	only := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "who"}}
	for _, w := range validating.Webhooks {
		if w.Name == "seed-restriction.gardener.cloud" || w.Name == "shoot-restriction.gardener.cloud" {
			w.Name = "who-" + w.Name
			w.ClientConfig.URL = ptr.To("https://127.0.0.1:1/")
			only.Webhooks = append(only.Webhooks, w)
		}
	}
	require.Len(t, only.Webhooks, 2)
	_, err := core.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(ctx, only, metav1.CreateOptions{})
	require.NoError(t, err)
	asked := func(t *testing.T, user string, groups ...string) bool {
		t.Helper()
		as := rest.CopyConfig(config)
		as.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: append(groups, "system:masters")}
		client, err := kubernetes.NewForConfig(as)
		require.NoError(t, err)
		// The reachable webhook rejects all known users, since the object has no name.
		_, err = client.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "x-"}}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return isWebhookError(err, "who-") || isWebhookError(err, "seed-restriction") || isWebhookError(err, "shoot-restriction")
	}
	account := func(namespace, name string) (string, []string) {
		return "system:serviceaccount:" + namespace + ":" + name, []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace}
	}
	require.Eventually(t, func() bool { return asked(t, authorizer.UserSeed+"a", authorizer.GroupSeeds) }, 30*time.Second, 100*time.Millisecond)
	for _, who := range []struct {
		user   string
		groups []string
	}{
		{authorizer.UserSeed + "a", []string{authorizer.GroupSeeds}},
		{"somebody", []string{authorizer.GroupSeeds}},
		{authorizer.UserSeed + "a", nil},
		{authorizer.UserShoot + "garden-one:s", []string{authorizer.GroupShoots}},
		{"gardener.cloud:gardenadm:shoot:garden-one:s", []string{authorizer.GroupShoots}},
		{"somebody", []string{authorizer.GroupShoots}},
		{"somebody", nil},
		{"gardener.cloud:pergola", nil},
		{"system:kube-controller-manager", nil},
	} {
		r := authorizer.RequesterOf(who.user, who.groups)
		assert.Equal(t, r != authorizer.Requester{}, asked(t, who.user, who.groups...), "%s of %v", who.user, who.groups)
	}
	for _, who := range [][2]string{
		{"garden", "gardenlet-a"}, {"seed-a", "extension-provider"}, {"seed-a", "other"}, {"garden", "extension-shoot--s--provider"},
		{"garden-one", "extension-shoot--s--provider"}, {"garden-one", "robot"}, {"garden", "robot"}, {"kube-system", "gardener-internal"},
		{"kube-system", "gardener-resource-manager"}, {"kube-system", "root-ca-cert-publisher"}, {"kube-system", "gardenlet-a"},
	} {
		user, groups := account(who[0], who[1])
		r := authorizer.RequesterOf(user, groups)
		assert.Equal(t, r != authorizer.Requester{}, asked(t, user, groups...), user)
	}
	require.NoError(t, core.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(ctx, "who", metav1.DeleteOptions{}))
}

// testUnavailableWebhooks: without the webhooks, objects that restore the controller can be
// created, but Projects stay protected.
func testUnavailableWebhooks(t *testing.T, config *rest.Config, core kubernetes.Interface) {
	ctx := t.Context()
	_, err := core.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "garden", Labels: map[string]string{"app": "gardener", "gardener.cloud/role": "project"}}}, metav1.CreateOptions{})
	require.NoError(t, err)
	for user, groups := range map[string][]string{
		"gardener.cloud:pergola": nil, "system:serviceaccount:kube-system:gardener-resource-manager": {"system:serviceaccounts", "system:serviceaccounts:kube-system"},
	} {
		t.Run(user, func(t *testing.T) {
			as := rest.CopyConfig(config)
			as.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: append(groups, "system:masters")}
			client, err := kubernetes.NewForConfig(as)
			require.NoError(t, err)
			named := metav1.ObjectMeta{GenerateName: "repair-"}
			dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
			for _, namespace := range []string{metav1.NamespaceSystem, "default"} {
				_, err = client.CoreV1().Secrets(namespace).Create(ctx, &corev1.Secret{ObjectMeta: named}, dry)
				require.NoError(t, err)
				_, err = client.CoreV1().ConfigMaps(namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: named}, dry)
				require.NoError(t, err)
				_, err = client.CoreV1().ServiceAccounts(namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: named}, dry)
				require.NoError(t, err)
				_, err = client.CoordinationV1().Leases(namespace).Create(ctx, &coordinationv1.Lease{ObjectMeta: named}, dry)
				require.NoError(t, err)
			}
			_, err = client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: named, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"}}, dry)
			require.NoError(t, err)
			_, err = client.CoreV1().ConfigMaps("garden").Create(ctx, &corev1.ConfigMap{ObjectMeta: named}, dry)
			require.NoError(t, err, "new ones are in nobody's use")

			_, err = client.CoreV1().Secrets("garden").Create(ctx, &corev1.Secret{ObjectMeta: named}, dry)
			require.True(t, isWebhookError(err, "sync-provider-secret-labels.gardener.cloud"), "%v", err)
			err = client.CoreV1().Namespaces().Delete(ctx, "garden-two", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
			require.True(t, isWebhookError(err, "validate-namespace-deletion.gardener.cloud"), "%v", err)
		})
	}
	hooks := core.AdmissionregistrationV1()
	require.NoError(t, hooks.MutatingWebhookConfigurations().Delete(ctx, "gardener-admission-controller", metav1.DeleteOptions{}))
	require.NoError(t, hooks.ValidatingWebhookConfigurations().Delete(ctx, "gardener-admission-controller", metav1.DeleteOptions{}), "nobody is locked out for good")
}
