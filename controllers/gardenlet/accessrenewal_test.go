// SPDX-License-Identifier: Apache-2.0

package gardenlet

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clocktesting "k8s.io/utils/clock/testing"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

// registeredSeed is a gardenlet's access as the registration of its seed creates it.
type registeredSeed struct {
	*testSeed
	secret        types.NamespacedName
	virtual, seed kubernetes.Interface
}

func (p *testSeed) register() *registeredSeed {
	p.Helper()
	r := &registeredSeed{testSeed: p, secret: types.NamespacedName{Namespace: "garden", Name: "access-" + p.name}}
	var err error
	r.virtual, err = kubernetes.NewForConfig(withoutRateLimit(servers.virtual))
	require.NoError(p, err)
	r.seed, err = kubernetes.NewForConfig(withoutRateLimit(servers.seed))
	require.NoError(p, err)
	for _, c := range []kubernetes.Interface{r.virtual, r.seed} {
		_, err = c.CoreV1().Namespaces().Create(p.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "garden"}}, metav1.CreateOptions{})
		require.True(p, err == nil || apierrors.IsAlreadyExists(err), err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "gardenlet-" + p.name}}
	_, err = r.virtual.CoreV1().ServiceAccounts("garden").Create(p.ctx, account, metav1.CreateOptions{})
	require.NoError(p, err)
	_, err = r.virtual.RbacV1().ClusterRoleBindings().Create(p.ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: account.Name}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "garden", Name: account.Name}},
	}, metav1.CreateOptions{})
	require.NoError(p, err)
	p.Cleanup(func() {
		ctx := context.Background()
		_ = r.virtual.RbacV1().ClusterRoleBindings().Delete(ctx, account.Name, metav1.DeleteOptions{})
		_ = r.seed.CoreV1().Secrets("garden").Delete(ctx, r.secret.Name, metav1.DeleteOptions{})
	})
	return r
}

// createToken returns a new token of the gardenlet's service account.
func (r *registeredSeed) createToken(lifetime time.Duration) string {
	r.Helper()
	seconds := int64(lifetime / time.Second)
	made, err := r.virtual.CoreV1().ServiceAccounts("garden").CreateToken(r.ctx, "gardenlet-"+r.name,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}, metav1.CreateOptions{})
	require.NoError(r, err)
	return made.Status.Token
}

// createAccessSecret creates the Secret with access.
func (r *registeredSeed) createAccessSecret(user clientcmdapi.AuthInfo) {
	r.Helper()
	raw, err := clientcmd.Write(clientcmdapi.Config{
		CurrentContext: "garden", Contexts: map[string]*clientcmdapi.Context{"garden": {Cluster: "garden", AuthInfo: "gardenlet"}},
		Clusters:  map[string]*clientcmdapi.Cluster{"garden": {Server: servers.virtual.Host, CertificateAuthorityData: servers.virtual.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"gardenlet": &user},
	})
	require.NoError(r, err)
	_, err = r.seed.CoreV1().Secrets("garden").Create(r.ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: r.secret.Name}, Data: map[string][]byte{"kubeconfig": raw},
	}, metav1.CreateOptions{})
	require.NoError(r, err)
}

// readAccessSecret returns the token and the certificate authorities of the Secret.
func (r *registeredSeed) readAccessSecret() (token, authorities string) {
	r.Helper()
	secret, err := r.seed.CoreV1().Secrets("garden").Get(r.ctx, r.secret.Name, metav1.GetOptions{})
	require.NoError(r, err)
	config, err := clientcmd.Load(secret.Data["kubeconfig"])
	require.NoError(r, err)
	return config.AuthInfos["gardenlet"].Token, string(config.Clusters["garden"].CertificateAuthorityData)
}

// publishCAs writes the authorities of the virtual garden into their public ConfigMap.
func (r *registeredSeed) publishCAs(bundle string) {
	r.Helper()
	maps := r.virtual.CoreV1().ConfigMaps("garden")
	_ = maps.Delete(r.ctx, "kube-root-ca.crt", metav1.DeleteOptions{})
	_, err := maps.Create(r.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kube-root-ca.crt"}, Data: map[string]string{"ca.crt": bundle}}, metav1.CreateOptions{})
	require.NoError(r, err)
	r.Cleanup(func() { _ = maps.Delete(context.Background(), "kube-root-ca.crt", metav1.DeleteOptions{}) })
}

func (r *registeredSeed) setOperation(operation string) {
	r.patch("Seed", "", r.name, `{"metadata":{"annotations":{"gardener.cloud/operation":"`+operation+`"}}}`)
}

func (r *registeredSeed) hasOperation() bool {
	seed, err := r.resourceClient("Seed", "").Get(r.ctx, r.name, metav1.GetOptions{})
	return err != nil || seed.GetAnnotations()[gardencorev1beta1.GardenerOperation] != ""
}

func (r *registeredSeed) useAccessSecret(o *Options) { o.Garden, o.GardenSecret = nil, r.secret }

// TestAccessIsRenewedOnRequest: the operation is answered once the new access is in use,
// with a new token and the current authorities.
func TestAccessIsRenewedOnRequest(t *testing.T) {
	p := newTestSeed(t)
	r := p.register()
	first := r.createToken(time.Hour)
	r.createAccessSecret(clientcmdapi.AuthInfo{Token: first})
	p.publish("main@1")
	p.runGardenlet(r.useAccessSecret)
	p.eventually("the seed is converged", func() bool { return p.lastOperation("Seed", "", p.name, "state") == "Succeeded" })

	bundle := string(servers.virtual.CAData) + "\n" + string(servers.seed.CAData)
	r.publishCAs(bundle)
	r.setOperation("renew-kubeconfig")
	p.eventually("it is renewed", func() bool { return !r.hasOperation() })
	second, authorities := r.readAccessSecret()
	assert.NotEqual(t, first, second)
	assert.Equal(t, bundle, authorities, "both authorities of a rotation")
	p.patch("Seed", "", p.name, `{"metadata":{"annotations":{"gardener.cloud/operation":"reconcile"}}}`)
	p.eventually("it is at work", func() bool { return !r.hasOperation() })

	// A server that the new authorities do not cover is still trusted by the earlier ones.
	r.publishCAs(string(servers.seed.CAData))
	r.setOperation("renew-garden-access-secrets")
	p.eventually("it is renewed once more", func() bool { return !r.hasOperation() })
	third, authorities := r.readAccessSecret()
	assert.NotEqual(t, second, third)
	assert.Equal(t, bundle, authorities)
}

// TestAccessIsRenewedBeforeItEnds: a token is renewed before it expires, without a request.
func TestAccessIsRenewedBeforeItEnds(t *testing.T) {
	p := newTestSeed(t)
	r := p.register()
	first := r.createToken(time.Hour)
	r.createAccessSecret(clientcmdapi.AuthInfo{Token: first})
	p.publish("main@1")
	clk := clocktesting.NewFakeClock(time.Now())
	g := p.runGardenlet(r.useAccessSecret, func(o *Options) { o.Clock = clk })
	require.NoError(t, g.stop(), "it would renew what the clock says is due")
	for ago, want := range map[time.Duration]bool{0: false, 40 * time.Minute: false, 49 * time.Minute: true} {
		clk.SetTime(time.Now().Add(ago))
		wait, err := g.timeUntilRenewal(p.ctx)
		require.NoError(t, err)
		assert.Equal(t, want, wait <= 0, ago)
	}
	p.runGardenlet(r.useAccessSecret, func(o *Options) { o.Clock = clocktesting.NewFakeClock(time.Now().Add(49 * time.Minute)) })
	p.eventually("it is renewed as soon as it is due", func() bool {
		token, _ := r.readAccessSecret()
		return token != first
	})
}

// TestFailedAccessRenewalIsReported: a failed renewal is an Event, and the operation stays.
func TestFailedAccessRenewalIsReported(t *testing.T) {
	t.Run("a certificate", func(t *testing.T) {
		p := newTestSeed(t)
		r := p.register()
		r.createAccessSecret(clientcmdapi.AuthInfo{ClientCertificateData: servers.virtual.CertData, ClientKeyData: servers.virtual.KeyData})
		p.publish("main@1")
		p.runGardenlet(r.useAccessSecret)
		p.eventually("the seed is converged", func() bool { return p.lastOperation("Seed", "", p.name, "state") == "Succeeded" })
		assert.Empty(t, p.eventMessages(reasonAccessNotRenewed, p.name), "nobody asked")
		r.setOperation("renew-kubeconfig")
		p.eventually("it is told", p.hasEvent(reasonAccessNotRenewed, p.name, "only the token of a ServiceAccount is renewed", r.secret.String()))
		assert.True(t, r.hasOperation())
	})
	t.Run("a file", func(t *testing.T) {
		p := newTestSeed(t)
		r := p.register()
		p.publish("main@1")
		p.runGardenlet()
		r.setOperation("renew-kubeconfig")
		p.eventually("it is told", p.hasEvent(reasonOperationIgnored, p.name, "comes from a file"))
		assert.True(t, r.hasOperation())
	})
}
