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

// registered is a gardenlet's access as the registration of its seed creates it.
type registered struct {
	*place
	secret        types.NamespacedName
	virtual, seed kubernetes.Interface
}

func (p *place) register() *registered {
	p.Helper()
	r := &registered{place: p, secret: types.NamespacedName{Namespace: "garden", Name: "access-" + p.name}}
	var err error
	r.virtual, err = kubernetes.NewForConfig(plain(servers.virtual))
	require.NoError(p, err)
	r.seed, err = kubernetes.NewForConfig(plain(servers.seed))
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

// token returns a new token of the gardenlet's service account.
func (r *registered) token(lifetime time.Duration) string {
	r.Helper()
	seconds := int64(lifetime / time.Second)
	made, err := r.virtual.CoreV1().ServiceAccounts("garden").CreateToken(r.ctx, "gardenlet-"+r.name,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}, metav1.CreateOptions{})
	require.NoError(r, err)
	return made.Status.Token
}

// give creates the Secret with access.
func (r *registered) give(user clientcmdapi.AuthInfo) {
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

// given returns the token and the certificate authorities of the Secret.
func (r *registered) given() (token, authorities string) {
	r.Helper()
	secret, err := r.seed.CoreV1().Secrets("garden").Get(r.ctx, r.secret.Name, metav1.GetOptions{})
	require.NoError(r, err)
	config, err := clientcmd.Load(secret.Data["kubeconfig"])
	require.NoError(r, err)
	return config.AuthInfos["gardenlet"].Token, string(config.Clusters["garden"].CertificateAuthorityData)
}

// publishCAs writes the authorities of the virtual garden into their public ConfigMap.
func (r *registered) publishCAs(bundle string) {
	r.Helper()
	maps := r.virtual.CoreV1().ConfigMaps("garden")
	_ = maps.Delete(r.ctx, "kube-root-ca.crt", metav1.DeleteOptions{})
	_, err := maps.Create(r.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kube-root-ca.crt"}, Data: map[string]string{"ca.crt": bundle}}, metav1.CreateOptions{})
	require.NoError(r, err)
	r.Cleanup(func() { _ = maps.Delete(context.Background(), "kube-root-ca.crt", metav1.DeleteOptions{}) })
}

func (r *registered) ask(operation string) {
	r.patch("Seed", "", r.name, `{"metadata":{"annotations":{"gardener.cloud/operation":"`+operation+`"}}}`)
}

func (r *registered) isAsked() bool {
	seed, err := r.of("Seed", "").Get(r.ctx, r.name, metav1.GetOptions{})
	return err != nil || seed.GetAnnotations()[gardencorev1beta1.GardenerOperation] != ""
}

func (r *registered) own(o *Options) { o.Garden, o.GardenSecret = nil, r.secret }

// TestAccessIsRenewedWhenTheSeedIsAsked: the operation is answered once the new access is in use,
// with a new token and the current authorities.
func TestAccessIsRenewedWhenTheSeedIsAsked(t *testing.T) {
	p := newPlace(t)
	r := p.register()
	first := r.token(time.Hour)
	r.give(clientcmdapi.AuthInfo{Token: first})
	p.publish("main@1")
	p.run(r.own)
	p.eventually("the seed is converged", func() bool { return p.operation("Seed", "", p.name, "state") == "Succeeded" })

	bundle := string(servers.virtual.CAData) + "\n" + string(servers.seed.CAData)
	r.publishCAs(bundle)
	r.ask("renew-kubeconfig")
	p.eventually("it is renewed", func() bool { return !r.isAsked() })
	second, authorities := r.given()
	assert.NotEqual(t, first, second)
	assert.Equal(t, bundle, authorities, "both authorities of a rotation")
	p.patch("Seed", "", p.name, `{"metadata":{"annotations":{"gardener.cloud/operation":"reconcile"}}}`)
	p.eventually("it is at work", func() bool { return !r.isAsked() })

	// A server that the new authorities do not cover is still trusted by the earlier ones.
	r.publishCAs(string(servers.seed.CAData))
	r.ask("renew-garden-access-secrets")
	p.eventually("it is renewed once more", func() bool { return !r.isAsked() })
	third, authorities := r.given()
	assert.NotEqual(t, second, third)
	assert.Equal(t, bundle, authorities)
}

// TestAccessIsRenewedBeforeItEnds: a token is renewed before it expires, without a request.
func TestAccessIsRenewedBeforeItEnds(t *testing.T) {
	p := newPlace(t)
	r := p.register()
	first := r.token(time.Hour)
	r.give(clientcmdapi.AuthInfo{Token: first})
	p.publish("main@1")
	clk := clocktesting.NewFakeClock(time.Now())
	g := p.run(r.own, func(o *Options) { o.Clock = clk })
	require.NoError(t, g.stop(), "it would renew what the clock says is due")
	for ago, want := range map[time.Duration]bool{0: false, 40 * time.Minute: false, 49 * time.Minute: true} {
		clk.SetTime(time.Now().Add(ago))
		wait, err := g.untilDue(p.ctx)
		require.NoError(t, err)
		assert.Equal(t, want, wait <= 0, ago)
	}
	p.run(r.own, func(o *Options) { o.Clock = clocktesting.NewFakeClock(time.Now().Add(49 * time.Minute)) })
	p.eventually("it is renewed as soon as it is due", func() bool {
		token, _ := r.given()
		return token != first
	})
}

// TestAccessThatIsNotRenewedIsTold: a failed renewal is an Event, and the operation stays.
func TestAccessThatIsNotRenewedIsTold(t *testing.T) {
	t.Run("a certificate", func(t *testing.T) {
		p := newPlace(t)
		r := p.register()
		r.give(clientcmdapi.AuthInfo{ClientCertificateData: servers.virtual.CertData, ClientKeyData: servers.virtual.KeyData})
		p.publish("main@1")
		p.run(r.own)
		p.eventually("the seed is converged", func() bool { return p.operation("Seed", "", p.name, "state") == "Succeeded" })
		assert.Empty(t, p.events(reasonNotRenewed, p.name), "nobody asked")
		r.ask("renew-kubeconfig")
		p.eventually("it is told", p.told(reasonNotRenewed, p.name, "only where it is the token of a ServiceAccount", r.secret.String()))
		assert.True(t, r.isAsked())
	})
	t.Run("a file", func(t *testing.T) {
		p := newPlace(t)
		r := p.register()
		p.publish("main@1")
		p.run()
		r.ask("renew-kubeconfig")
		p.eventually("it is told", p.told(reasonNotTakenUp, p.name, "given by a file"))
		assert.True(t, r.isAsked())
	})
}
