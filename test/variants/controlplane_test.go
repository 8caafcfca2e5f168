// SPDX-License-Identifier: Apache-2.0

package variants

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// controlPlaneClient is the control plane of the Garden or a Shoot.
type controlPlaneClient struct {
	// cluster and namespace are where it runs; the names of its parts have the prefix.
	cluster, namespace, prefix string
	// hostClient is a client of that cluster; config and api are for the API server that it serves.
	hostClient *kubernetes.Clientset
	config     *rest.Config
	apiClient  *kubernetes.Clientset
}

// connectGarden returns the control plane of the virtual garden.
func connectGarden(t *testing.T) *controlPlaneClient {
	t.Helper()
	return connect(t, &controlPlaneClient{cluster: runtimeCluster, namespace: "garden", prefix: "virtual-garden-"})
}

// connectShoot returns the control plane of a Shoot.
func connectShoot(t *testing.T, shoot string) *controlPlaneClient {
	t.Helper()
	if skipIfNotRunning(t); !hasShoot(shoot) {
		t.Skipf("in make test-all: Shoot %s", shoot)
	}
	return connect(t, &controlPlaneClient{cluster: seedCluster, namespace: controlPlaneNamespace(shoot)})
}

func connect(t *testing.T, p *controlPlaneClient) *controlPlaneClient {
	t.Helper()
	skipIfNotRunning(t)
	var err error
	p.hostClient, err = localClient(p.cluster)
	require.NoError(t, err)
	access := p.secret(t, "gardener-internal")
	p.config, err = clientcmd.RESTConfigFromKubeConfig(access["kubeconfig"])
	require.NoError(t, err)
	p.config.Proxy, p.config.QPS, p.config.WarningHandler = podNetworkProxy, -1, rest.NoWarnings{}
	// Use the address: names of Services are known in one cluster only.
	host, _, _ := strings.Cut(strings.TrimPrefix(p.config.Host, "https://"), ":")
	p.config.ServerName, p.config.Host = host, "https://"+p.serviceAddress(t, p.prefix+"kube-apiserver")
	p.apiClient, err = kubernetes.NewForConfig(p.config)
	require.NoError(t, err)
	return p
}

// localClient returns a client of a cluster in which control planes run.
func localClient(name string) (*kubernetes.Clientset, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: env.kubeconfig}, &clientcmd.ConfigOverrides{CurrentContext: "pergola-" + name}).ClientConfig()
	if err != nil {
		return nil, err
	}
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	return kubernetes.NewForConfig(config)
}

func podNetworkProxy(*http.Request) (*url.URL, error) { return url.Parse(env.proxy) }

// serviceAddress returns the address of a Service of the control plane.
func (p *controlPlaneClient) serviceAddress(t *testing.T, name string) string {
	t.Helper()
	service, err := p.hostClient.CoreV1().Services(p.namespace).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	return service.Spec.ClusterIP
}

func (p *controlPlaneClient) secret(t *testing.T, name string) map[string][]byte {
	t.Helper()
	secret, err := p.hostClient.CoreV1().Secrets(p.namespace).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	return secret.Data
}

// clientWithToken returns a client of the API server with only a token.
func (p *controlPlaneClient) clientWithToken(t *testing.T, token string) *kubernetes.Clientset {
	t.Helper()
	config := rest.AnonymousClientConfig(p.config)
	config.Proxy, config.BearerToken = podNetworkProxy, token
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	return client
}

// ensureNamespace creates a namespace in the API server unless it exists.
func (p *controlPlaneClient) ensureNamespace(t *testing.T, name string) string {
	t.Helper()
	_, err := p.apiClient.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		require.NoError(t, err)
	}
	return name
}

// pods returns the pods of a part of the control plane, without terminating ones.
func (p *controlPlaneClient) pods(t *testing.T, selector string) []corev1.Pod {
	t.Helper()
	list, err := p.hostClient.CoreV1().Pods(p.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: selector})
	require.NoError(t, err)
	return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
}

const apiServerPods = "app=kubernetes,role=apiserver"

// etcdClient is a client of the control plane's etcd with its JSON API.
type etcdClient struct {
	t      *testing.T
	url    string
	client *http.Client
}

// etcd returns a client for a role, main or events, with the certificate of the API server.
func (p *controlPlaneClient) etcd(t *testing.T, role string) etcdClient {
	t.Helper()
	deployment, err := p.hostClient.AppsV1().Deployments(p.namespace).Get(t.Context(), p.prefix+"kube-apiserver", metav1.GetOptions{})
	require.NoError(t, err)
	files := map[string]map[string][]byte{}
	for _, v := range deployment.Spec.Template.Spec.Volumes {
		if v.Name == "etcd-client" || v.Name == "ca-etcd" {
			files[v.Name] = p.secret(t, v.Secret.SecretName)
		}
	}
	pair, err := tls.X509KeyPair(files["etcd-client"]["tls.crt"], files["etcd-client"]["tls.key"])
	require.NoError(t, err)
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(files["ca-etcd"]["bundle.crt"]))
	name := p.prefix + "etcd-" + role + "-client"
	transport := &http.Transport{Proxy: podNetworkProxy, TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, ServerName: name}}
	t.Cleanup(transport.CloseIdleConnections)
	return etcdClient{t, "https://" + p.serviceAddress(t, name) + ":2379", &http.Client{Transport: transport, Timeout: 10 * time.Second}}
}

// post sends a request to etcd's API.
func (e etcdClient) post(path string, body, into any) error {
	request, err := json.Marshal(body)
	require.NoError(e.t, err)
	response, err := e.client.Post(e.url+path, "application/json", bytes.NewReader(request))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s says %s: %s", e.url, response.Status, text)
	}
	return json.Unmarshal(text, into)
}

// etcdEntry is a value in etcd with its lease.
type etcdEntry struct {
	value string
	lease int64
}

// get reads an existing key.
func (e etcdClient) get(key string) etcdEntry {
	e.t.Helper()
	var found struct {
		KVs []struct {
			Value []byte `json:"value"`
			Lease string `json:"lease"`
		} `json:"kvs"`
	}
	require.NoError(e.t, e.post("/v3/kv/range", map[string]any{"key": base64.StdEncoding.EncodeToString([]byte(key))}, &found))
	require.Len(e.t, found.KVs, 1, "%s in %s", key, e.url)
	out := etcdEntry{value: string(found.KVs[0].Value)}
	if found.KVs[0].Lease != "" {
		lease, err := strconv.ParseInt(found.KVs[0].Lease, 10, 64)
		require.NoError(e.t, err)
		out.lease = lease
	}
	return out
}

// leaseTTL returns the TTL of a lease in seconds.
func (e etcdClient) leaseTTL(lease int64) int64 {
	e.t.Helper()
	var found struct {
		GrantedTTL int64 `json:"grantedTTL,string"`
	}
	require.NoError(e.t, e.post("/v3/lease/timetolive", map[string]any{"ID": strconv.FormatInt(lease, 10)}, &found))
	return found.GrantedTTL
}

// pollUntil polls until nothing is wrong.
func pollUntil(t *testing.T, wrong func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	for {
		err := wrong(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			require.NoError(t, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
