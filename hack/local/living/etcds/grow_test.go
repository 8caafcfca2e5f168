// SPDX-License-Identifier: Apache-2.0

package etcds

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/hack/local/childprocess"
	"github.com/pergola-dev/pergola/hack/local/pki"
)

// localEtcd is an Etcd whose members are processes, each on its own loopback address.
type localEtcd struct {
	*etcd
	t      *testing.T
	binary string
	data   string
}

func newLocal(t *testing.T) localEtcd {
	t.Helper()
	binary := filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "etcd")
	if _, err := os.Stat(binary); err != nil {
		t.Skip("KUBEBUILDER_ASSETS names no folder with an etcd")
	}
	e, err := parseEtcd(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "druid.gardener.cloud/v1alpha1", "kind": "Etcd", "metadata": map[string]any{"name": "main", "namespace": "ns"},
		"spec": map[string]any{"replicas": int64(3), "etcd": map[string]any{
			"clientPort": int64(freePort(t)), "serverPort": int64(freePort(t)), "wrapperPort": int64(freePort(t)),
		}},
	}})
	require.NoError(t, err)
	e.hostOf = func(ordinal int32) string { return fmt.Sprintf("127.0.77.%d", ordinal+1) }
	l := localEtcd{etcd: e, t: t, binary: binary, data: t.TempDir()}

	folder := &pki.Folder{Path: filepath.Join(l.data, "pki"), Now: time.Now()}
	ca, err := folder.Authority("ca")
	require.NoError(t, err)
	// Peers verify a member's source address, which is 127.0.0.1 here.
	require.NoError(t, folder.Issue(ca, pki.Leaf{Name: "etcd", User: "etcd", Hosts: []string{e.hostOf(0), e.hostOf(1), e.hostOf(2), "127.0.0.1"}, ClientAuth: true}))
	return l
}

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

// enablePeerTLS enables TLS between members from their next start.
func (l localEtcd) enablePeerTLS() { l.Spec.Etcd.PeerURLTLS = &tlsRefs{} }

// start runs a member with its configuration of a Pod, but listening on its own address.
func (l localEtcd) start(ordinal, founders int32) (stop func()) {
	l.t.Helper()
	c := l.memberConfiguration(ordinal, founders, true)
	host := l.hostOf(ordinal)
	own := func(url string) string { return strings.Replace(url, "0.0.0.0", host, 1) }
	c.ListenPeerURLs, c.ListenClientURLs, c.ListenMetricsURLs = own(c.ListenPeerURLs), own(c.ListenClientURLs), own(c.ListenMetricsURLs)
	c.DataDir = filepath.Join(l.data, l.member(ordinal))
	if c.PeerSecurity != nil {
		folder := pki.Folder{Path: filepath.Join(l.data, "pki")}
		c.PeerSecurity = &security{folder.Cert("etcd"), folder.Key("etcd"), folder.Cert("ca"), true}
	}
	data, err := yaml.Marshal(c)
	require.NoError(l.t, err)
	file := filepath.Join(l.data, l.member(ordinal)+".yaml")
	require.NoError(l.t, os.WriteFile(file, data, 0o600))
	command := exec.Command(l.binary, "--config-file="+file)
	log, err := os.Create(filepath.Join(l.data, l.member(ordinal)+".log"))
	require.NoError(l.t, err)
	command.Stdout, command.Stderr = log, log
	require.NoError(l.t, childprocess.Start(command))
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		_ = command.Process.Kill()
		_ = command.Wait()
		if text, err := os.ReadFile(log.Name()); err == nil && l.t.Failed() {
			l.t.Logf("%s: ... %s", log.Name(), text[max(0, len(text)-2000):])
		}
		log.Close()
	}
	l.t.Cleanup(stop)
	return stop
}

func (l localEtcd) connect() *connection {
	l.t.Helper()
	endpoint := l.url(0, l.Spec.Etcd.ClientPort, nil)
	m, err := dial(l.t.Context(), endpoint, strings.TrimPrefix(endpoint, "http://"), (*tls.Config)(nil))
	require.NoError(l.t, err)
	l.t.Cleanup(func() { m.Close() })
	return m.(*connection)
}

// TestGrowMembership grows a real etcd from one member to three with TLS, in the controller's
// steps.
func TestGrowMembership(t *testing.T) {
	l := newLocal(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	stop := l.start(0, 1)
	c := l.connect()
	_, err := c.client.Put(ctx, "key", "kept")
	require.NoError(t, err)
	stop()
	l.enablePeerTLS()
	l.start(0, 1)

	s := shape{1, 1, 1}
	seen := []shape{s}
	running := map[int32]bool{0: true}
	require.Eventually(t, func() bool {
		stepCtx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		// Errors are ignored: for five seconds after adding a member etcd accepts no further one.
		grown, _ := growMembership(stepCtx, c, l.etcd, s)
		if grown != s {
			s, seen = grown, append(seen, grown)
		}
		for i := range s.Pods {
			if !running[i] {
				running[i] = true
				l.start(i, 1)
			}
		}
		return s.Voters == 3
	}, time.Minute, 50*time.Millisecond)
	assert.Equal(t, []shape{{1, 1, 1}, {1, 1, 2}, {1, 2, 2}, {1, 2, 3}, {1, 3, 3}}, seen, "one after the other")
	peers, err := c.List(ctx)
	require.NoError(t, err)
	require.Len(t, peers, 3)
	for _, p := range peers {
		assert.False(t, p.Learner)
		assert.True(t, strings.HasPrefix(p.URLs[0], "https://"), p.URLs[0])
	}
	got, err := c.client.Get(ctx, "key")
	require.NoError(t, err)
	assert.Equal(t, "kept", string(got.Kvs[0].Value))
}

// failingMembership is a fake etcd that fails every change.
type failingMembership struct{ peers []peer }

func (r failingMembership) List(context.Context) ([]peer, error)         { return r.peers, nil }
func (r failingMembership) Update(context.Context, uint64, string) error { return assert.AnError }
func (r failingMembership) AddLearner(context.Context, string) error     { return assert.AnError }
func (r failingMembership) Promote(context.Context, uint64) error        { return assert.AnError }
func (r failingMembership) Close() error                                 { return nil }

func TestGrowWaitsOnEtcdErrors(t *testing.T) {
	e := &etcd{ObjectMeta: metav1.ObjectMeta{Name: "main", Namespace: "ns"}}
	e.Spec.Replicas = 3
	first := peer{ID: 1, Name: "main-0", URLs: []string{e.peerURL(0)}}
	for name, test := range map[string]struct {
		peers []peer
		want  shape
		fails bool
	}{
		"no new member":         {[]peer{first}, shape{1, 1, 1}, true},
		"a former address":      {[]peer{{ID: 1, Name: "main-0", URLs: []string{"http://elsewhere"}}}, shape{1, 1, 1}, true},
		"one that never ran":    {[]peer{first, {ID: 2, URLs: []string{e.peerURL(1)}, Learner: true}}, shape{1, 1, 2}, false},
		"one that lags":         {[]peer{first, {ID: 2, Name: "main-1", URLs: []string{e.peerURL(1)}, Learner: true}}, shape{1, 1, 2}, true},
		"one that votes by now": {[]peer{first, {ID: 2, Name: "main-1", URLs: []string{e.peerURL(1)}}}, shape{1, 2, 2}, false},
	} {
		got, err := growMembership(t.Context(), failingMembership{test.peers}, e, shape{1, 1, 1})
		assert.Equal(t, test.want, got, name)
		assert.Equal(t, test.fails, err != nil, name)
	}
}
