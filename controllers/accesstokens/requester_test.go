// SPDX-License-Identifier: Apache-2.0

package accesstokens

import (
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"

	"github.com/pergola-dev/pergola/controllers/access"
	"github.com/pergola-dev/pergola/hack/apiserver"
)

// sharedServer is both the cluster of the Secrets and the API server with the accounts; each has
// its own connections.
var sharedServer struct {
	config *rest.Config
	count  atomic.Int64
}

func TestMain(m *testing.M) {
	os.Exit(apiserver.Main(m, func(config *rest.Config) { sharedServer.config = config }))
}

// controlPlaneTest is the control plane of one test.
type controlPlaneTest struct {
	*testing.T
	namespace    string
	client       kubernetes.Interface
	controlPlane ControlPlane
}

func newControlPlaneTest(t *testing.T) *controlPlaneTest {
	t.Helper()
	apiserver.SkipIfUnavailable(t)
	client, err := kubernetes.NewForConfig(sharedServer.config)
	require.NoError(t, err)
	p := &controlPlaneTest{T: t, namespace: fmt.Sprintf("plane-%d", sharedServer.count.Add(1)), client: client}
	_, err = client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.namespace}}, metav1.CreateOptions{})
	require.NoError(t, err)
	read, err := access.NewSecretReader(sharedServer.config)
	require.NoError(t, err)
	p.controlPlane = ControlPlane{Namespace: p.namespace, Local: sharedServer.config, Target: access.LazyConfig(access.ShootSource("test", p.namespace, read, clock.RealClock{})), ResourceManager: "gardener-resource-manager"}
	return p
}

// createAccessSecret creates the Secret with access to the API server.
func (p *controlPlaneTest) createAccessSecret(name string, config *rest.Config) {
	p.Helper()
	raw, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:  map[string]*clientcmdapi.Cluster{"c": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"u": {ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}},
		Contexts:  map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}}, CurrentContext: "x",
	})
	require.NoError(p, err)
	_, err = p.client.CoreV1().Secrets(p.namespace).Create(p.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string][]byte{access.KubeconfigKey: raw}}, metav1.CreateOptions{})
	require.NoError(p, err)
}

// createTokenRequest creates a Secret that requests a token, as components do.
func (p *controlPlaneTest) createTokenRequest(name string) {
	p.Helper()
	_, err := p.client.CoreV1().Secrets(p.namespace).Create(p.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{"resources.gardener.cloud/purpose": "token-requestor", "resources.gardener.cloud/class": "shoot"},
		Annotations: map[string]string{"serviceaccount.resources.gardener.cloud/name": name + "-" + p.namespace, "serviceaccount.resources.gardener.cloud/namespace": "kube-system"},
	}}, metav1.CreateOptions{})
	require.NoError(p, err)
}

func (p *controlPlaneTest) token(name string) string {
	p.Helper()
	s, err := p.client.CoreV1().Secrets(p.namespace).Get(context.Background(), name, metav1.GetOptions{})
	require.NoError(p, err)
	return string(s.Data["token"])
}

func (p *controlPlaneTest) eventually(what string, ok func() bool) {
	p.Helper()
	require.Eventually(p, ok, 40*time.Second, 50*time.Millisecond, what)
}

// TestTokensAreRequested checks that a token follows the API server and the Secret soon, in
// whatever order they come, and is restored after its removal.
func TestTokensAreRequested(t *testing.T) {
	p := newControlPlaneTest(t)
	k := &Requester{}
	t.Cleanup(k.Close)
	p.createTokenRequest("before")
	k.Start(p.controlPlane)
	k.Start(p.controlPlane) // again, as each reconciliation does
	p.createAccessSecret(access.SecretName, sharedServer.config)
	p.eventually("the Secret that was there before the API server", func() bool { return p.token("before") != "" })
	p.createTokenRequest("after")
	p.eventually("the Secret that came later", func() bool { return p.token("after") != "" })

	claims, err := base64.RawURLEncoding.DecodeString(strings.Split(p.token("after"), ".")[1])
	require.NoError(t, err)
	assert.Contains(t, string(claims), "system:serviceaccount:kube-system:after-"+p.namespace)
	assert.Contains(t, string(claims), `"aud":["gardener"]`)

	_, err = p.client.CoreV1().Secrets(p.namespace).Patch(t.Context(), "after", types.MergePatchType, []byte(`{"data": {"token": null}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	p.eventually("a token that was taken away", func() bool { return p.token("after") != "" })

	k.Stop(p.namespace)
	p.createTokenRequest("stopped")
	other := newControlPlaneTest(t)
	other.createAccessSecret(access.SecretName, sharedServer.config)
	other.createTokenRequest("other")
	k.Start(other.controlPlane)
	other.eventually("another control plane in the same process", func() bool { return other.token("other") != "" })
	assert.Empty(t, p.token("stopped"))
}

// TestResourceManagerTakesOver checks that a gardener-resource-manager in the namespace takes over
// once a pod is ready; before, it may be waiting for its own token.
func TestResourceManagerTakesOver(t *testing.T) {
	p := newControlPlaneTest(t)
	p.createAccessSecret(access.SecretName, sharedServer.config)
	p.createTokenRequest("secret")
	w := &controlPlaneWorker{ControlPlane: p.controlPlane}
	isOurs := func() bool {
		ours, err := w.isResponsible(t.Context())
		require.NoError(t, err)
		return ours
	}
	labels := map[string]string{"a": "b"}
	spec := corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}
	_, err := p.client.AppsV1().Deployments(p.namespace).Create(t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: p.controlPlane.ResourceManager}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	assert.True(t, isOurs(), "without pods")

	pod, err := p.client.CoreV1().Pods(p.namespace).Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: labels}, Spec: spec}, metav1.CreateOptions{})
	require.NoError(t, err)
	for _, step := range []struct {
		about, address string
		ready          corev1.ConditionStatus
		ours           bool
	}{
		{"a pod that does not start", "", corev1.ConditionFalse, true},
		{"one that runs and is not ready", "10.1.2.3", corev1.ConditionFalse, true},
		{"one that is played", "239.1.2.3", corev1.ConditionTrue, true},
		{"one that is ready", "10.1.2.3", corev1.ConditionTrue, false},
	} {
		pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: step.ready}}}
		if step.address != "" {
			pod.Status.PodIP, pod.Status.PodIPs = step.address, []corev1.PodIP{{IP: step.address}}
		}
		pod, err = p.client.CoreV1().Pods(p.namespace).UpdateStatus(t.Context(), pod, metav1.UpdateOptions{})
		require.NoError(t, err, step.about)
		assert.Equal(t, step.ours, isOurs(), step.about)
	}

	require.NoError(t, p.client.AppsV1().Deployments(p.namespace).Delete(t.Context(), p.controlPlane.ResourceManager, metav1.DeleteOptions{}))
	assert.True(t, isOurs(), "its Deployment is gone")
	k := &Requester{}
	t.Cleanup(k.Close)
	k.Start(p.controlPlane)
	p.eventually("without it", func() bool { return p.token("secret") != "" })
}

// TestAPIServerDown checks that nothing happens while the API server does not answer, and that
// Close ends the work at once.
func TestAPIServerDown(t *testing.T) {
	p := newControlPlaneTest(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	down := rest.CopyConfig(sharedServer.config)
	down.Host = "https://" + listener.Addr().String()
	require.NoError(t, listener.Close())
	p.createAccessSecret(access.SecretName, down)
	p.createTokenRequest("secret")
	_, err = (&controlPlaneWorker{ControlPlane: p.controlPlane}).isResponsible(t.Context())
	require.ErrorContains(t, err, "refused")
	k := &Requester{}
	k.Start(p.controlPlane)
	k.Close()
	assert.Empty(t, p.token("secret"))
	k.Start(p.controlPlane)
	assert.Empty(t, k.workers, "nothing begins any more")
	(*Requester)(nil).Start(p.controlPlane)
	(*Requester)(nil).Close()
}
