// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
)

// TestInvalidObjects: the answers of a real server to invalid objects.
func TestInvalidObjects(t *testing.T) {
	f := newFixture(t)
	for name, c := range map[string]struct {
		object, message string
		fields          []string
	}{
		"wrong type": {`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: NS}, spec: {replicas: "x"}}`,
			"spec.replicas: expected numeric (int or float), got string", []string{"spec.replicas"}},
		"value of a wrong type": {`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: NS}, data: {a: 1}}`,
			"data.a: expected string, got 1", []string{"data.a"}},
		"two at once": {`{apiVersion: v1, kind: Service, metadata: {name: a, namespace: NS}, spec: {type: 1, ports: {a: b}}}`,
			"spec.type: expected string, got 1", []string{"spec.ports", "spec.type"}},
		"unknown field": {`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: NS}, spec: {replicaz: 1}}`,
			"spec.replicaz: field not declared in schema", []string{"spec.replicaz"}},
		"twice the same key": {`{apiVersion: v1, kind: Service, metadata: {name: a, namespace: NS}, spec: {ports: [{port: 1}, {port: 1}]}}`,
			"duplicate entries for key", []string{"spec.ports"}},
		"missing": {`{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: NS}, spec: {containers: [{image: x}]}}`,
			"Required value", []string{"spec.containers[0].name"}},
		"form": {`{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: NS}, spec: {containers: [{name: a, image: x, resources: {requests: {cpu: abc}}}]}}`,
			"quantities must match", nil},
		"labels": {`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: NS, labels: {a: 1}}}`,
			"metadata.labels are not a map of strings", nil},
		"Secret": {`{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: NS}, data: {key: {hunter2: hunter2}}}`,
			"data.key: expected string", []string{"data.key"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := f.object(c.object)
			set := f.set(o)
			set.Sources = map[Ref]string{RefOf(o): "components/a.yaml:12"}
			for _, err := range []error{
				func() error { _, err := f.apply(set); return err }(),
				func() error { _, err := f.e.Plan(f.ctx, f.c, set, f.inv, ApplyOptions{}); return err }(),
			} {
				var e *ObjectError
				require.ErrorAs(t, err, &e)
				assert.Equal(t, ReasonInvalid, e.Reason, err)
				assert.Contains(t, e.Message, c.message)
				assert.ElementsMatch(t, c.fields, e.Fields)
				assert.Contains(t, e.Hint, "correct")
				assert.True(t, strings.HasPrefix(err.Error(), "components/a.yaml:12: cluster test: "+RefOf(o).String()+": "), err.Error())
				assert.NotContains(t, err.Error(), "hunter2")
				assert.NotContains(t, err.Error(), "valueUnstructured")
			}
		})
	}
}

// TestAdmissionDenies: a webhook and a policy deny an object, each with a message for people.
func TestAdmissionDenies(t *testing.T) {
	f := newFixture(t)
	hook := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var review struct{ Request struct{ UID, Name string } }
		assert.NoError(t, json.NewDecoder(req.Body).Decode(&review))
		denied := strings.HasPrefix(review.Request.Name, "denied")
		answer := map[string]any{"uid": review.Request.UID, "allowed": !denied}
		if denied {
			answer["status"] = map[string]any{"message": "no Service of this name here, please", "code": 403}
		}
		assert.NoError(t, json.NewEncoder(w).Encode(map[string]any{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": answer}))
	}))
	defer hook.Close()
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hook.Certificate().Raw}))
	config := f.object(fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: NS-guard}
webhooks:
- name: guard.example.com
  sideEffects: None
  admissionReviewVersions: [v1]
  clientConfig: {url: "%s/"}
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NS}}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [services]}]
`, hook.URL))
	webhooks := nested(config, "webhooks").([]any)
	webhooks[0].(map[string]any)["clientConfig"].(map[string]any)["caBundle"] = ca
	policy := f.object(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: NS-policy}
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NS}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [endpoints]}]
  validations: [{expression: "!object.metadata.name.startsWith('denied')", message: "no Endpoints of this name here, please"}]
`)
	binding := f.object(`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: NS-binding}, spec: {policyName: NS-policy, validationActions: [Deny]}}`)
	for _, o := range []*unstructured.Unstructured{config, policy, binding} {
		f.create(o)
		defer func() { _ = f.resource(o).Delete(f.ctx, o.GetName(), deleteNow) }()
	}
	for _, c := range []struct{ kind, body, by, message string }{
		{"Service", "spec: {ports: [{port: 1}]}", "guard.example.com", "no Service of this name here, please"},
		{"Endpoints", "subsets: []", f.ns + "-policy", "no Endpoints of this name here, please"},
	} {
		t.Run(c.kind, func(t *testing.T) {
			object := func(name string) *unstructured.Unstructured {
				return f.object(fmt.Sprintf("{apiVersion: v1, kind: %s, metadata: {name: %s, namespace: NS}, %s}", c.kind, name, c.body))
			}
			f.eventually("the rule is in use", func() bool {
				_, err := f.e.Plan(f.ctx, f.c, f.set(object("denied")), NewMemoryInventory(), ApplyOptions{})
				return err != nil
			})
			r, err := f.apply(f.set(object("denied"), object("welcome"), f.configMap("c", "x")))
			var e *ObjectError
			require.ErrorAs(t, err, &e)
			assert.Equal(t, ReasonWebhookDenied, e.Reason)
			assert.Equal(t, c.by, e.Webhook)
			assert.Contains(t, err.Error(), "cluster test: "+c.kind+" "+f.ns+"/denied: apply")
			assert.Contains(t, err.Error(), c.message)
			assert.Contains(t, e.Hint, c.by)
			assert.Equal(t, 1, r.Count(Failed), "the others go on")
			assert.Equal(t, Created, actions(r)[c.kind+"/welcome"])
		})
	}
}

func TestMissingDefinition(t *testing.T) {
	f := newFixture(t)
	o := f.object(`{apiVersion: nope.example.com/v1, kind: Nope, metadata: {name: x, namespace: NS}}`)
	r, err := f.apply(f.set(o, f.configMap("c", "x")))
	var e *ObjectError
	require.ErrorAs(t, err, &e)
	assert.Equal(t, ReasonKindNotServed, e.Reason)
	assert.Contains(t, err.Error(), "cluster test: Nope "+f.ns+"/x: apply: NoKind: the API server does not know nope.example.com/v1 Nope")
	assert.Contains(t, e.Hint, "CustomResourceDefinition")
	assert.Equal(t, map[string]Action{"Nope/x": Failed, "ConfigMap/c": Created}, actions(r))
}

// certificate is self-signed, for 127.0.0.1, and valid until a given time.
func certificate(t *testing.T, until time.Time) (tls.Certificate, []byte, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "operator"}, NotBefore: until.Add(-time.Hour),
		NotAfter: until, IsCA: true, BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	raw, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: raw})
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	require.NoError(t, err)
	return pair, certPEM, keyPEM
}

func TestExpiredCertificates(t *testing.T) {
	past := time.Now().Add(-24 * time.Hour)
	pair, cert, _ := certificate(t, past)
	old := httptest.NewUnstartedServer(http.NotFoundHandler())
	old.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	old.Config.ErrorLog = log.New(io.Discard, "", 0) // the test is about the refused handshake
	old.StartTLS()
	defer old.Close()
	t.Run("of the server", func(t *testing.T) {
		c, err := newCluster("seed-1", &rest.Config{Host: old.URL, TLSClientConfig: rest.TLSClientConfig{CAData: cert}}, ClusterOptions{})
		require.NoError(t, err)
		defer c.Close()
		_, err = newEngine(Options{}).Apply(t.Context(), c, Set{Name: "x/set", FieldManager: "pergola",
			Objects: []*unstructured.Unstructured{parse(t, "x", "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: NS}}")}}, NewMemoryInventory(), ApplyOptions{})
		var e *ObjectError
		require.ErrorAs(t, err, &e)
		assert.Equal(t, ReasonCertificateExpired, e.Reason, err)
		assert.Contains(t, err.Error(), "cluster seed-1")
		assert.Contains(t, e.Hint, "renew")
	})
	t.Run("of the client", func(t *testing.T) {
		f := newFixture(t)
		_, cert, key := certificate(t, past)
		cfg := rest.AnonymousClientConfig(server.config)
		cfg.CertData, cfg.KeyData = cert, key
		c, err := newCluster("seed-1", cfg, ClusterOptions{})
		require.NoError(t, err)
		defer c.Close()
		_, err = f.e.Apply(f.ctx, c, f.set(f.configMap("c", "x")), NewMemoryInventory(), ApplyOptions{})
		var e *ObjectError
		require.ErrorAs(t, err, &e)
		assert.Equal(t, ReasonCertificateExpired, e.Reason, err)
		assert.Contains(t, err.Error(), "cluster seed-1")
		assert.Contains(t, e.Hint, `client certificate of "operator" expired on `+past.UTC().Format(time.DateOnly))
	})
}

func TestTimeoutSaysWhereAndWhatToDo(t *testing.T) {
	c, err := newCluster("seed-1", &rest.Config{Host: "https://x.example.com"}, ClusterOptions{Clock: clocktesting.NewFakeClock(time.Now())})
	require.NoError(t, err)
	defer c.Close()
	e := c.objectErrorFor(refFor("v1", "ConfigMap", "n", "c"), "apply", fmt.Errorf("patch: %w", context.DeadlineExceeded))
	assert.Equal(t, ReasonTimeout, e.Reason)
	assert.Contains(t, e.Error(), "cluster seed-1: ConfigMap n/c: apply: Timeout")
	assert.Contains(t, e.Hint, "allow more time")
}

func TestCredentialsOfAProxyAreInNoError(t *testing.T) {
	c, err := newCluster("seed-1", &rest.Config{Host: "https://x.example.com"}, ClusterOptions{})
	require.NoError(t, err)
	defer c.Close()
	for _, cause := range []error{
		errors.New("proxyconnect tcp: dial http://bot:hunter2@proxy.example.com: refused"),
		&UnreachableError{Host: "x", Cause: errors.New("http://bot:hunter2@proxy.example.com: refused")},
		&url.Error{Op: "Get", URL: "https://bot:hunter2@x.example.com", Err: errors.New("refused")},
	} {
		e := c.objectErrorFor(refFor("v1", "ConfigMap", "n", "c"), "apply", cause)
		assert.NotContains(t, e.Error(), "hunter2")
		assert.Contains(t, e.Error(), "example.com")
	}
}

func TestCommandsReachTheCluster(t *testing.T) {
	const hint = "kubectl get x; kubectl delete x, as kubectl.kubernetes.io/y says"
	assert.Equal(t, hint, (&Cluster{}).RewriteKubectl(hint))
	assert.Equal(t, hint, (*Cluster)(nil).RewriteKubectl(hint))
	c := &Cluster{kubectl: "kubectl --context a"}
	assert.Equal(t, "kubectl --context a get x; kubectl --context a delete x, as kubectl.kubernetes.io/y says", c.RewriteKubectl(hint))
}

// TestCommandsNameTheCluster: without known kubectl flags, commands name the cluster.
func TestCommandsNameTheCluster(t *testing.T) {
	const hint = "to withdraw it: kubectl annotate x y-"
	assert.Equal(t, "to withdraw it, on cluster virtual: kubectl annotate x y-", (&Cluster{name: "virtual", kubectl: "kubectl"}).RewriteKubectlOrNameCluster(hint))
	assert.Equal(t, "to withdraw it: kubectl --context a annotate x y-", (&Cluster{name: "virtual", kubectl: "kubectl --context a"}).RewriteKubectlOrNameCluster(hint))
	assert.Equal(t, hint, (*Cluster)(nil).RewriteKubectlOrNameCluster(hint))
}
