// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/apply/flow"
	"github.com/pergola-dev/pergola/controllers/conventions"
	"github.com/pergola-dev/pergola/controllers/owner/blockreasons"
	"github.com/pergola-dev/pergola/render"
)

const etcdDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: etcds.druid.gardener.cloud}
spec:
  group: druid.gardener.cloud
  names: {kind: Etcd, plural: etcds}
  scope: Namespaced
  versions: [{name: v1alpha1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]`

// selfSignedCertificate returns a self-signed certificate.
func selfSignedCertificate(t *testing.T, name string) (chain, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	require.NoError(t, err)
	raw, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})
}

// TestSnapshotAfterReencryption checks that one snapshot of etcd is taken after a rewrite, with
// mutual TLS, and none without a backup process.
func TestSnapshotAfterReencryption(t *testing.T) {
	s := newSite(t)
	var taken atomic.Int64
	answer := &atomic.Int64{}
	answer.Store(http.StatusOK)
	backup := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method+" "+r.URL.String() == "GET /snapshot/full" {
			taken.Add(1)
			w.WriteHeader(int(answer.Load()))
		}
	}))
	chain, key := selfSignedCertificate(t, "virtual-garden-etcd-main-client."+s.ns+".svc")
	pair, err := tls.X509KeyPair(chain, key)
	require.NoError(t, err)
	backup.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}
	backup.StartTLS()
	defer backup.Close()

	config := rest.CopyConfig(server.config)
	config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		if strings.HasPrefix(address, "virtual-garden-etcd-main-client.") {
			address = backup.Listener.Addr().String()
		}
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	local, err := conventions.NewCluster("local", config, apply.ClusterOptions{})
	require.NoError(t, err)
	t.Cleanup(local.Close)
	s.run.owner.Input = render.Input{Owner: render.Owner{Kind: Garden, Name: s.ns, ControlPlaneNamespace: s.ns}}
	// no test reads it
	s.run.status = &statusWriter{reconciler: s.run.reconciler, owner: s.run.owner, isWriting: true}
	s.run.blockReasons = blockreasons.New(flow.Graph{})
	require.NoError(t, s.run.snapshotEtcd(t.Context()), "there is no kind Etcd, or no Etcd")
	s.run.owner.Local = local // its discovery has not seen the kind yet

	client, err := kubernetes.NewForConfig(server.config)
	require.NoError(t, err)
	for name, data := range map[string]map[string][]byte{"ca": {"bundle.crt": chain}, "client": {"tls.crt": chain, "tls.key": key}} {
		_, err := client.CoreV1().Secrets(s.ns).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	_, err = s.api.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}).Create(t.Context(), s.object(etcdDefinition), metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) { // another test may have installed it
		require.NoError(t, err)
	}
	etcds := s.api.Resource(schema.GroupVersionResource{Group: "druid.gardener.cloud", Version: "v1alpha1", Resource: "etcds"}).Namespace(s.ns)
	etcd := s.object(`
apiVersion: druid.gardener.cloud/v1alpha1
kind: Etcd
metadata: {name: virtual-garden-etcd-main}
spec:
  backup:
    port: 8080
    store: {provider: local}
    tls: {tlsCASecretRef: {name: ca, dataKey: bundle.crt}, clientTLSSecretRef: {name: client}}`)
	s.eventually("the kind is served", func() bool {
		_, err := etcds.Create(s.ctx, etcd, metav1.CreateOptions{})
		return err == nil
	})
	deployments := s.api.Resource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}).Namespace(s.ns)
	_, err = deployments.Create(t.Context(), s.object(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: virtual-garden-kube-apiserver}
spec:
  selector: {matchLabels: {a: b}}
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: b}]}}`), metav1.CreateOptions{})
	require.NoError(t, err)
	service := func(port string) string {
		return "apiVersion: v1\nkind: Service\nmetadata: {name: virtual-garden-etcd-main-client}\nspec: {ports: [{name: client, port: 2379}, {name: other, port: " + port + "}]}"
	}
	_, err = s.resource("services", s.ns).Create(t.Context(), s.object(service("2380")), metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, s.run.snapshotEtcd(t.Context()))
	assert.Zero(t, taken.Load(), "nobody listens")

	require.NoError(t, s.resource("services", s.ns).Delete(t.Context(), "virtual-garden-etcd-main-client", metav1.DeleteOptions{}))
	_, err = s.resource("services", s.ns).Create(t.Context(), s.object(service("8080")), metav1.CreateOptions{})
	require.NoError(t, err)
	answer.Store(http.StatusInternalServerError)
	assert.ErrorContains(t, s.run.snapshotEtcd(t.Context()), "it answers 500")
	answer.Store(http.StatusOK)
	require.NoError(t, s.run.snapshotEtcd(t.Context()))
	assert.EqualValues(t, 2, taken.Load(), "it is asked again after a failure")
	require.NoError(t, s.run.snapshotEtcd(t.Context()))
	assert.EqualValues(t, 2, taken.Load(), "and not after it was done")
	live, err := deployments.Get(t.Context(), "virtual-garden-kube-apiserver", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, "true", live.GetAnnotations()[annotationSnapshotted])
}
