// SPDX-License-Identifier: Apache-2.0

package adoption

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/permit"
	"github.com/pergola-dev/pergola/hack/apiserver"
	"github.com/pergola-dev/pergola/hack/smallcatalogue"
	"github.com/pergola-dev/pergola/landscapes"
)

const smallGarden = `apiVersion: operator.gardener.cloud/v1alpha1
kind: Garden
metadata: {name: local}
spec:
  runtimeCluster:
    ingress: {domains: [{name: ingress.example.org}], controller: {kind: nginx}}
    networking: {pods: [10.1.0.0/16], services: [10.2.0.0/16]}
    provider: {zones: ["0"]}
  virtualCluster:
    dns: {domains: [{name: example.org}]}
    gardener: {clusterIdentity: local}
    kubernetes: {version: 1.34.1}
    maintenance: {timeWindow: {begin: 220000+0100, end: 230000+0100}}
    networking: {services: [100.64.0.0/13]}
`

// renderedDeployment returns a rendered Deployment.
func renderedDeployment(name, image string) string {
	return fmt.Sprintf(`{apiVersion: "apps/v1", kind: "Deployment", metadata: {name: %[1]q, namespace: "garden", labels: webhook: "asks"}, spec: {replicas: 1, selector: matchLabels: app: %[1]q, template: {metadata: labels: app: %[1]q, spec: {containers: [{name: "a", image: %[2]q}]}}}}`, name, image)
}

// smallCatalogue has a resource manager that differs from upstream's, and another Deployment.
func smallCatalogue(t *testing.T) fs.FS {
	t.Helper()
	out := smallcatalogue.New()
	out["garden/flow.cue"] = smallcatalogue.Flow("garden", `pods: apply: ["pods"]`, `pods: remove: ["pods"]`)
	out["garden/pods/component.cue"] = &fstest.MapFile{Data: []byte("package component\n\ncomponent: {\n\tcondition: \"RuntimeComponentsHealthy\"\n\tbundles: pods: {cluster: \"runtime\", direct: true, source: cue: [\n\t\t" +
		renderedDeployment(resourceManager, "registry.example.org/pergola:1") + ",\n\t\t" + renderedDeployment("web", "registry.example.org/web:1") + ",\n\t]}\n}\n")}
	return out
}

// serveWebhook answers as Service garden/gardener-resource-manager and adds a toleration to all
// pods.
func serveWebhook(t *testing.T) (port int, authority []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{resourceManager + ".garden.svc"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	answers := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		patch := []byte(`[{"op": "add", "path": "/spec/template/spec/tolerations", "value": [{"key": "a", "operator": "Exists"}]}]`)
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true, Patch: patch, PatchType: new(admissionv1.PatchTypeJSONPatch)}
		_ = json.NewEncoder(w).Encode(review)
	}))
	answers.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{raw}, PrivateKey: key}}, MinVersion: tls.VersionTLS12}
	answers.StartTLS()
	t.Cleanup(answers.Close)
	return answers.Listener.Addr().(*net.TCPAddr).Port, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
}

// TestPodsChangedByWebhook: the webhook of a stopped resource manager added fields to
// pods. The check reports that the first apply after the stop removes them and replaces the pods.
func TestPodsChangedByWebhook(t *testing.T) {
	config := apiserver.Start(t)
	config.WarningHandler = rest.NoWarnings{}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	api, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	port, authority := serveWebhook(t)
	catalogue, dir := smallCatalogue(t), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "garden.yaml"), []byte(smallGarden), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "landscape.yaml"), []byte("apiVersion: landscape.pergola.dev/v1alpha1\nkind: Landscape\nmetadata: {name: local}\n"), 0o600))
	l, _, err := landscapes.Load(ctx, dir, landscapes.Options{})
	require.NoError(t, err)
	converger := func() *landscape.Converger {
		c, err := landscape.New(l, landscape.Options{Catalogue: catalogue, Connections: landscape.Connections{Configs: map[string]*rest.Config{landscape.Runtime: config}}, Clock: clock.RealClock{}, Permits: landscape.Permits{Gate: permit.DefaultGate()}, Process: landscape.ProcessIdentity{Holder: "test"}})
		require.NoError(t, err)
		t.Cleanup(c.Close)
		return c
	}
	first := converger()
	create := func(text string, options metav1.CreateOptions) (*unstructured.Unstructured, error) {
		o := object(t, text)
		mapping, err := first.Cluster(landscape.Runtime).Mapping(ctx, o.GroupVersionKind())
		require.NoError(t, err)
		return api.Resource(mapping.Resource).Namespace(o.GetNamespace()).Create(ctx, o, options)
	}
	upstreams := metav1.CreateOptions{FieldManager: resourceManager}
	for _, text := range []string{
		"{apiVersion: v1, kind: Namespace, metadata: {name: garden}}",
		fmt.Sprintf("{apiVersion: v1, kind: Service, metadata: {name: %s, namespace: garden}, spec: {type: ExternalName, externalName: localhost, ports: [{port: %d}]}}", resourceManager, port),
		liveDeployment(resourceManager, "upstream/gardener-resource-manager:1", ""),
		liveDeployment("web", "registry.example.org/web:1", "terminationGracePeriodSeconds: 30, tolerations: [{key: a, operator: Exists}], "),
		fmt.Sprintf(`{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {name: gardener-resource-manager}, webhooks: [{
			name: pods.example.org, admissionReviewVersions: [v1], sideEffects: None, objectSelector: {matchLabels: {webhook: asks}},
			clientConfig: {service: {namespace: garden, name: %s, port: %d}, caBundle: %s},
			rules: [{apiGroups: [apps], apiVersions: ["*"], operations: [CREATE, UPDATE], resources: [deployments]}]}]}`, resourceManager, port, base64.StdEncoding.EncodeToString(authority)),
	} {
		_, err := create(text, upstreams)
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool {
		probe, err := create(liveDeployment("probe", "x", ""), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			return false
		}
		_, there, _ := unstructured.NestedSlice(probe.Object, "spec", "template", "spec", "tolerations")
		return there
	}, 30*time.Second, 50*time.Millisecond, "the server does not ask the webhook")

	check := func() []Finding {
		a := &Adopter{Converger: converger(), Landscape: "local", Catalogue: catalogue, Clock: clock.RealClock{}}
		report, err := a.Check(ctx)
		require.NoError(t, err)
		var out []Finding
		for _, f := range report.ByLevel(LevelRestarts) {
			if f.Area == AreaObjects && f.Objects[0] == "Deployment garden/web" {
				out = append(out, f)
			}
		}
		return out
	}
	asked := check()
	require.Len(t, asked, 1, "the webhook is taken away with the resource manager")
	paths := []string{}
	for _, f := range asked[0].Fields {
		paths = append(paths, f.Path)
	}
	assert.Equal(t, []string{"spec.template.spec.tolerations"}, paths)

	// If the program keeps running, its webhook adds the fields again, and nothing restarts.
	deployments := api.Resource(deployments).Namespace("garden")
	_, err = deployments.Patch(ctx, resourceManager, "application/strategic-merge-patch+json", []byte(`{"spec": {"template": {"spec": {"containers": [{"name": "a", "image": "registry.example.org/pergola:0"}]}}}}`), metav1.PatchOptions{FieldManager: resourceManager})
	require.NoError(t, err)
	assert.Empty(t, check())
}

// liveDeployment returns a live Deployment that the webhook handles.
func liveDeployment(name, image, more string) string {
	return fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: %[1]s, namespace: garden, labels: {webhook: asks}}, spec: {replicas: 1, selector: {matchLabels: {app: %[1]s}},
		template: {metadata: {labels: {app: %[1]s}}, spec: {%[3]scontainers: [{name: a, image: "%[2]s"}]}}}}`, name, image, more)
}
