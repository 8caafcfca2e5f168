// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/yaml"
)

// requests are one of each kind, as components declare them.
const requests = `{
	"ca": {"kind": "ca", "commonName": "kubernetes", "rotation": "keepOld"},
	"ca-client": {"kind": "ca", "commonName": "kubernetes-client", "rotation": "keepOld"},
	"kube-apiserver": {"kind": "certificate", "commonName": "system:apiserver:kube-apiserver", "dnsNames": ["kube-apiserver", "kube-apiserver.garden.svc"],
		"ipAddresses": ["127.0.0.1", "100.64.0.1"], "certType": "server", "signingCA": "ca", "skipPublishingCACertificate": true},
	"kube-aggregator": {"kind": "certificate", "commonName": "system:kube-aggregator", "organization": ["a", "b"], "certType": "client", "signingCA": "ca-client"},
	"etcd-peer": {"kind": "certificate", "commonName": "etcd", "certType": "serverclient", "signingCA": "ca", "includeCACertificateInServerChain": true},
	"service-account-key": {"kind": "rsaPrivateKey", "rotation": "keepOld", "persist": true},
	"ssh-keypair": {"kind": "sshKeypair"},
	"kube-apiserver-etcd-encryption-key": {"kind": "etcdEncryptionKey", "rotation": "keepOld", "persist": true},
	"kube-apiserver-etcd-encryption-configuration": {"kind": "etcdEncryptionConfiguration", "key": "kube-apiserver-etcd-encryption-key",
		"resources": ["secrets", "configmaps."], "encryptedResources": ["secrets", "leases.coordination.k8s.io"]},
	"kube-apiserver-static-token": {"kind": "staticToken", "users": [{"username": "health-check", "userID": "health-check"}, {"username": "admin", "groups": ["x", "y"]}]},
	"plutono-admin": {"kind": "basicAuth", "validity": "720h"},
	"generic-token-kubeconfig": {"kind": "kubeconfig", "server": "https://kube-apiserver", "ca": "ca", "tokenFile": "/var/run/secrets/token"},
	"bootstrap": {"kind": "kubeconfig", "server": "https://kube-apiserver", "ca": "ca", "clientCertificate": "kube-aggregator"}
}`

func parse(t *testing.T, text string) []Config {
	t.Helper()
	var raw map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(text), &raw))
	configs, err := ParseRequests("garden/test", raw)
	require.NoError(t, err)
	return configs
}

func request(t *testing.T, name, text string) Config {
	t.Helper()
	c, err := ParseConfig("garden/test", name, []byte(text))
	require.NoError(t, err)
	return c
}

// storeFixture is a store and a clock that outlive managers.
type storeFixture struct {
	t     *testing.T
	clock *clocktesting.FakeClock
	store *memoryStore
}

func newStoreFixture(t *testing.T) *storeFixture {
	clk := clocktesting.NewFakeClock(startTime)
	return &storeFixture{t: t, clock: clk, store: newMemoryStore(clk)}
}

// manager returns a new Manager, as in each reconciliation.
func (w *storeFixture) manager(opts ...Option) *Manager {
	return New(w.store, "garden", "gardener-operator", w.clock, append([]Option{WithKeyBits(testBits)}, opts...)...)
}

func (w *storeFixture) generate(m *Manager, configs ...Config) []Ref {
	w.t.Helper()
	refs, err := m.GenerateAll(w.t.Context(), configs)
	require.NoError(w.t, err)
	return refs
}

func certOf(t *testing.T, m *Manager, name, key string) *x509.Certificate {
	t.Helper()
	s, ok := m.Get(name)
	require.True(t, ok, name)
	c, err := decodeCertificate(s.Data[key].Reveal())
	require.NoError(t, err)
	return c
}

func TestGenerateAllKinds(t *testing.T) {
	w := newStoreFixture(t)
	configs := parse(t, requests)
	m := w.manager()
	refs := w.generate(m, configs...)
	require.Len(t, refs, len(configs))
	for i, ref := range refs {
		assert.Equal(t, configs[i].Name, ref.Name)
		assert.Regexp(t, "^"+ref.Name+"-[0-9a-f]{8}$", ref.Secret)
		assert.Len(t, ref.Checksum, 64)
	}
	assert.Equal(t, 1, w.store.calls["get"], "only the derived secret is looked for by name")

	t.Run("certificates", func(t *testing.T) {
		ca, server := certOf(t, m, "ca", keyCACert), certOf(t, m, "kube-apiserver", keyTLSCert)
		assert.True(t, ca.IsCA)
		assert.Equal(t, startTime.AddDate(10, 0, 0), ca.NotAfter)
		assert.Equal(t, startTime.Add(-time.Minute), ca.NotBefore)
		require.NoError(t, server.CheckSignatureFrom(ca))
		require.NoError(t, server.VerifyHostname("kube-apiserver.garden.svc"))
		require.NoError(t, server.VerifyHostname("100.64.0.1"))
		assert.Equal(t, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, server.ExtKeyUsage)
		client := certOf(t, m, "kube-aggregator", keyTLSCert)
		require.NoError(t, client.CheckSignatureFrom(certOf(t, m, "ca-client", keyCACert)))
		assert.Equal(t, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, client.ExtKeyUsage)
		assert.Equal(t, []string{"a", "b"}, client.Subject.Organization)
		assert.Len(t, certOf(t, m, "etcd-peer", keyTLSCert).ExtKeyUsage, 2)

		published, _ := m.Get("kube-aggregator")
		assert.Contains(t, published.Data, keyCACert)
		hidden, _ := m.Get("kube-apiserver")
		assert.NotContains(t, hidden.Data, keyCACert)
	})
	t.Run("tokens", func(t *testing.T) {
		s, _ := m.Get("kube-apiserver-static-token")
		lines := strings.Split(string(s.Data[keyStaticTokens].Reveal()), "\n")
		require.Len(t, lines, 2)
		assert.Regexp(t, `^[0-9A-Za-z]{128},admin,,"x,y"$`, lines[0])
		assert.Regexp(t, `^[0-9A-Za-z]{128},health-check,health-check,$`, lines[1])
		token, ok := m.StaticToken("kube-apiserver-static-token", "health-check")
		require.True(t, ok)
		assert.Equal(t, lines[1][:128], string(token.Reveal()))
		_, ok = m.StaticToken("kube-apiserver-static-token", "nobody")
		assert.False(t, ok)
		auth, _ := m.Get("plutono-admin")
		assert.Regexp(t, `^admin:\{SHA\}.{28}$`, string(auth.Data[keyAuth].Reveal()))
		assert.Equal(t, 32, auth.Data[keyPassword].Len())
	})
	t.Run("kubeconfigs", func(t *testing.T) {
		for name, user := range map[string]string{"generic-token-kubeconfig": "tokenFile", "bootstrap": "client-key-data"} {
			s, _ := m.Get(name)
			var k struct {
				CurrentContext string `json:"current-context"`
				Clusters       []struct{ Cluster map[string]string }
				Users          []struct{ User map[string]any }
			}
			require.NoError(t, yaml.Unmarshal(s.Data[keyKubeconfig].Reveal(), &k))
			assert.Equal(t, name, k.CurrentContext)
			assert.Equal(t, m.Facts()["ca"].CABundle, k.Clusters[0].Cluster["certificate-authority-data"])
			assert.Contains(t, k.Users[0].User, user)
		}
	})
}

func TestGenerateAgainChangesNothing(t *testing.T) {
	w := newStoreFixture(t)
	configs := parse(t, requests)
	first := w.manager()
	want := w.generate(first, configs...)
	writes := w.store.writes()

	w.clock.Step(24 * time.Hour)
	second := w.manager()
	assert.Equal(t, want, w.generate(second, configs...))
	assert.Equal(t, first.Facts(), second.Facts())
	assert.Equal(t, want, w.generate(second, configs...), "and a third time with the same manager")
	assert.Equal(t, writes, w.store.writes(), "nothing is written")

	deleted, err := second.Cleanup(t.Context())
	require.NoError(t, err)
	assert.Empty(t, deleted)
}

func TestFactsHoldNoSecret(t *testing.T) {
	w := newStoreFixture(t)
	m := w.manager()
	w.generate(m, parse(t, requests)...)
	raw, err := json.Marshal(m.Facts())
	require.NoError(t, err)
	printed := string(raw) + fmt.Sprintf("%v %+v %#v %s", m, m, m, m)
	for _, name := range w.store.names() {
		for key, value := range w.store.secrets[name].Data {
			if isPublicDataKey(key) || key == keyCACert || key == keyBundleCert || key == keyTLSCert || key == keySSHPublicKey || len(value) < minRedactedLength {
				continue
			}
			assert.NotContains(t, printed, string(value), name+"/"+key)
			assert.NotContains(t, printed, base64.StdEncoding.EncodeToString(value), name+"/"+key)
		}
	}
	bundle, err := base64.StdEncoding.DecodeString(m.Facts()["ca"].CABundle)
	require.NoError(t, err)
	assert.NotContains(t, string(bundle), "PRIVATE")
	assert.Contains(t, string(bundle), "BEGIN CERTIFICATE")
	public, err := base64.StdEncoding.DecodeString(m.Facts()["ssh-keypair"].PublicKey)
	require.NoError(t, err)
	assert.Regexp(t, "^ssh-rsa ", string(public))
}

func TestConfigChangeMakesANewSecret(t *testing.T) {
	w := newStoreFixture(t)
	ca := request(t, "ca", `{"kind":"ca","commonName":"kubernetes"}`)
	before := w.generate(w.manager(), ca, request(t, "s", `{"kind":"certificate","commonName":"s","certType":"server","signingCA":"ca","dnsNames":["a"]}`))
	m := w.manager()
	after := w.generate(m, ca, request(t, "s", `{"kind":"certificate","commonName":"s","certType":"server","signingCA":"ca","dnsNames":["a","b"]}`))
	assert.Equal(t, before[0], after[0])
	assert.NotEqual(t, before[1].Secret, after[1].Secret)
	deleted, err := m.Cleanup(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{before[1].Secret}, deleted)
}

func TestSecretMadeByAnotherProcessIsAdopted(t *testing.T) {
	w := newStoreFixture(t)
	ca := request(t, "ca", `{"kind":"ca","commonName":"x"}`)
	slow := w.manager()
	require.NoError(t, slow.loadExisting(t.Context()), "it has seen an empty namespace")
	want := w.generate(w.manager(), ca)
	assert.Equal(t, want, w.generate(slow, ca))

	stranger := New(w.store, "garden", "gardenlet", w.clock, WithKeyBits(testBits))
	_, err := stranger.Generate(t.Context(), ca)
	require.ErrorContains(t, err, "belongs to secrets manager gardener-operator")
}

func TestRestoredSecretIsLabelled(t *testing.T) {
	w := newStoreFixture(t)
	ca := request(t, "ca", `{"kind":"ca","commonName":"kubernetes","persist":true}`)
	w.generate(w.manager(WithStaticCANames()), ca)
	bare := w.store.secrets["ca"]
	bare.Labels, bare.Immutable = map[string]string{"foreign": "stays"}, nil
	w.generate(w.manager(WithStaticCANames()), ca)
	assert.Equal(t, "stays", w.store.secrets["ca"].Labels["foreign"])
	assert.Equal(t, "true", w.store.secrets["ca"].Labels[labelPersist])
	assert.True(t, *w.store.secrets["ca"].Immutable)

	bare.Labels, bare.Data = nil, map[string][]byte{keyCACert: []byte("x")}
	w.store.secrets["ca"] = bare
	_, err := w.manager(WithStaticCANames()).Generate(t.Context(), ca)
	require.ErrorContains(t, err, "data key ca.key is missing")
}

func TestUseDataForName(t *testing.T) {
	w, other := newStoreFixture(t), newStoreFixture(t)
	ca := request(t, "ca", `{"kind":"ca","commonName":"x"}`)
	m := other.manager()
	other.generate(m, ca)
	given, _ := m.Get("ca")

	old := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "my-old-ca", Labels: map[string]string{labelUseDataForName: "ca"}},
		Data: map[string][]byte{keyCACert: given.Data[keyCACert].Reveal(), keyCAKey: given.Data[keyCAKey].Reveal()}}
	_, err := w.store.Create(t.Context(), old)
	require.NoError(t, err)
	m = w.manager()
	w.generate(m, ca)
	assert.True(t, certOf(t, m, "ca", keyCACert).Equal(certOf(t, other.managerWith(ca), "ca", keyCACert)))

	second := old.DeepCopy()
	second.Name = "another"
	_, err = w.store.Create(t.Context(), second)
	require.NoError(t, err)
	w.generate(w.manager(), ca) // an existing Secret needs no data
	w.clock.Step(time.Hour)
	_, err = w.manager(WithRotationTimes(map[string]time.Time{"ca": w.clock.Now()})).Generate(t.Context(), ca)
	require.ErrorContains(t, err, "2 Secrets have label")
}

func (w *storeFixture) managerWith(configs ...Config) *Manager {
	m := w.manager()
	w.generate(m, configs...)
	return m
}

func TestErrorsOfOneRequestStopOnlyItsDependents(t *testing.T) {
	w := newStoreFixture(t)
	configs := parse(t, requests)
	w.store.failCreate["ca-client"] = errors.New("no room")
	m := w.manager()
	_, err := m.GenerateAll(t.Context(), configs)
	require.ErrorContains(t, err, `secret "ca-client" in namespace garden: creating Secret ca-client-58f8e9ac: no room`)
	require.ErrorContains(t, err, `secret "kube-aggregator" waits for "ca-client"`)
	require.ErrorContains(t, err, `secret "bootstrap" waits for "kube-aggregator"`)
	_, ok := m.Get("kube-apiserver")
	assert.True(t, ok)
	_, err = m.Cleanup(t.Context())
	require.ErrorContains(t, err, "nothing is deleted")

	delete(w.store.failCreate, "ca-client")
	w.generate(m, configs...)
	_, err = m.Cleanup(t.Context())
	require.NoError(t, err)
}

func TestErrorsDoNotQuoteValues(t *testing.T) {
	w := newStoreFixture(t)
	leak := &leakyStore{memoryStore: w.store}
	m := New(leak, "garden", "gardener-operator", w.clock, WithKeyBits(testBits))
	_, err := m.Generate(t.Context(), request(t, "x", `{"kind":"basicAuth"}`))
	require.Error(t, err)
	require.NotEmpty(t, leak.quotedValue)
	assert.NotContains(t, err.Error(), leak.quotedValue)
	assert.Contains(t, err.Error(), redactedText)
	assert.ErrorIs(t, err, leak.err)
}

func TestCleanupRefusesWithoutRequests(t *testing.T) {
	w := newStoreFixture(t)
	w.generate(w.manager(), request(t, "x", `{"kind":"basicAuth"}`))
	_, err := w.manager().Cleanup(t.Context())
	require.Error(t, err)
	assert.Len(t, w.store.names(), 1)
}

func TestPersisted(t *testing.T) {
	w := newStoreFixture(t)
	m := w.managerWith(parse(t, requests)...)
	list, err := m.Persisted(t.Context())
	require.NoError(t, err)
	var names []string
	for _, s := range list {
		names = append(names, s.Labels[labelName])
	}
	assert.ElementsMatch(t, []string{"service-account-key", "kube-apiserver-etcd-encryption-key"}, names)
}
