// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/controllers/permit"
	"github.com/pergola-dev/pergola/hack/apiserver"
	"github.com/pergola-dev/pergola/hack/smallcatalogue"
	"github.com/pergola-dev/pergola/health/condition"
	"github.com/pergola-dev/pergola/landscapes"
)

const declaredGarden = `apiVersion: operator.gardener.cloud/v1alpha1
kind: Garden
metadata: {name: lost}
spec:
  dns: {providers: [{name: primary, type: local, secretRef: {name: by-hand}}]}
  runtimeCluster:
    ingress: {domains: [{name: ingress.lost.example, provider: primary}], controller: {kind: nginx}}
    networking: {pods: [10.1.0.0/16], services: [10.2.0.0/16]}
    provider: {zones: ["0"]}
  virtualCluster:
    dns: {domains: [{name: lost.example, provider: primary}]}
    etcd: {main: {backup: {provider: local, secretRef: {name: declared}}}}
    gardener: {clusterIdentity: lost}
    kubernetes: {version: 1.34.1}
    maintenance: {timeWindow: {begin: 220000+0100, end: 230000+0100}}
    networking: {services: [100.64.0.0/13]}
`

const declaredSecret = "{apiVersion: v1, kind: Secret, metadata: {name: declared, namespace: garden}, stringData: {a: from-git}}\n"

// secretRequests are the secrets of the only component: a CA and keys with rotation, and a
// certificate that the CA signs.
const secretRequests = `
	ca: {kind: "ca", commonName: "kubernetes", rotation: "keepOld"}
	server: {kind: "certificate", certType: "server", commonName: "server", dnsNames: ["server"], signingCA: "ca", skipPublishingCACertificate: true, rotation: "inPlace"}
	"service-account-key": {kind: "rsaPrivateKey", bits: 2048, rotation: "keepOld", persist: true}
	"kube-apiserver-etcd-encryption-key": {kind: "etcdEncryptionKey", provider: "aescbc", rotation: "keepOld", persist: true}
`

// catalogue has one component, whose ConfigMap shows the UID and the CA in use.
func catalogue(t *testing.T) fs.FS {
	t.Helper()
	out := smallcatalogue.New()
	out["garden/flow.cue"] = smallcatalogue.Flow("garden", `only: apply: ["only"]`, `only: remove: ["only"]`)
	out["garden/only/component.cue"] = &fstest.MapFile{Data: []byte("package component\n\ncomponent: {\n\tcondition: \"RuntimeComponentsHealthy\"\n\tsecrets: {" + secretRequests +
		"}\n\tbundles: only: {cluster: \"runtime\", direct: true, source: cue: [{apiVersion: \"v1\", kind: \"ConfigMap\", metadata: {name: \"only\", namespace: \"garden\"}, " +
		"data: {uid: owner.uid, ca: facts.secrets.ca.name, bundle: facts.secrets.ca.bundle}}]}\n}\n")}
	return out
}

// site is a runtime cluster with the landscape.
type site struct {
	*testing.T
	config    *rest.Config
	client    kubernetes.Interface
	landscape *landscapes.Landscape
	converger *landscape.Converger
	// seeds are the other clusters of the landscape.
	seeds map[string]*rest.Config
}

func newSite(t *testing.T, config *rest.Config, change ...func(files map[string]string)) *site {
	t.Helper()
	s := &site{T: t, config: config}
	files := map[string]string{
		"landscape.yaml": "apiVersion: landscape.pergola.dev/v1alpha1\nkind: Landscape\nmetadata: {name: lost}\n",
		"garden.yaml":    declaredGarden, "secret.yaml": declaredSecret,
	}
	for _, c := range change {
		c(files)
	}
	dir := t.TempDir()
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	var err error
	s.landscape, _, err = landscapes.Load(t.Context(), dir, landscapes.Options{})
	require.NoError(t, err)
	s.client, err = kubernetes.NewForConfig(config)
	require.NoError(t, err)
	s.connect()
	return s
}

// connect connects like a new process.
func (s *site) connect() {
	s.Helper()
	if s.converger != nil {
		s.converger.Close()
	}
	configs := map[string]*rest.Config{landscape.Runtime: s.config}
	maps.Copy(configs, s.seeds)
	var err error
	s.converger, err = landscape.New(s.landscape, landscape.Options{
		Catalogue: catalogue(s.T), Connections: landscape.Connections{Configs: configs}, Clock: clock.RealClock{}, Permits: landscape.Permits{Gate: permit.DefaultGate()},
		Process: landscape.ProcessIdentity{Holder: fmt.Sprintf("test-%p", s.converger)}, Timing: landscape.Timing{Thresholds: condition.Thresholds{}, StepTimeout: 30 * time.Second},
	})
	require.NoError(s, err)
	s.Cleanup(s.converger.Close)
}

func (s *site) gardens() dynamic.ResourceInterface {
	return s.converger.Cluster(landscape.Runtime).Dynamic().Resource(schema.GroupVersionResource{Group: "operator.gardener.cloud", Version: "v1alpha1", Resource: "gardens"})
}

func (s *site) garden() *unstructured.Unstructured {
	s.Helper()
	garden, err := s.gardens().Get(s.Context(), "lost", metav1.GetOptions{})
	require.NoError(s, err)
	return garden
}

func (s *site) apply() error {
	ctx, cancel := context.WithTimeout(s.Context(), time.Minute)
	defer cancel()
	_, err := s.converger.Apply(ctx)
	return err
}

func (s *site) secret(name string, labels map[string]string, data string) {
	s.Helper()
	_, err := s.client.CoreV1().Secrets("garden").Create(s.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Annotations: map[string]string{lastApplied: data}}, StringData: map[string]string{"a": data},
	}, metav1.CreateOptions{})
	require.NoError(s, err)
}

// generated returns the data of the secrets manager's Secrets by name.
func (s *site) generated() map[string]map[string][]byte {
	s.Helper()
	list, err := s.client.CoreV1().Secrets("garden").List(s.Context(), metav1.ListOptions{LabelSelector: "managed-by=secrets-manager"})
	require.NoError(s, err)
	out := map[string]map[string][]byte{}
	for _, secret := range list.Items {
		out[secret.Name] = secret.Data
	}
	return out
}

// componentData returns the data of the component's ConfigMap.
func (s *site) componentData() map[string]string {
	s.Helper()
	shown, err := s.client.CoreV1().ConfigMaps("garden").Get(s.Context(), "only", metav1.GetOptions{})
	require.NoError(s, err)
	return shown.Data
}

func (s *site) patchGarden(body, subresource string) {
	s.Helper()
	var sub []string
	if subresource != "" {
		sub = append(sub, subresource)
	}
	_, err := s.gardens().Patch(s.Context(), "lost", types.MergePatchType, []byte(body), metav1.PatchOptions{}, sub...)
	require.NoError(s, err)
}

func (s *site) collect() *Archive {
	s.Helper()
	a, err := Collect(s.Context(), Source{
		Landscape: s.landscape, Clusters: siteClusters(s), Clock: clock.RealClock{}, Program: "test", Revision: "abc",
	})
	require.NoError(s, err)
	return a
}

func (s *site) restorer(a *Archive) *Restorer {
	return &Restorer{Archive: a, Converger: s.converger, Landscape: "lost"}
}

// newSiteToLose is a runtime cluster to lose: its Garden rotates its CA, and some objects are not
// in Git.
func newSiteToLose(t *testing.T) *site {
	t.Helper()
	s := newSite(t, apiserver.Start(t))
	// Objects that Git does not create must exist before.
	_, err := s.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "garden"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	s.secret("by-hand", nil, hiddenValue)
	s.secret("wildcard", map[string]string{labelRole: "garden-cert"}, hiddenValue)
	s.secret("somebody-elses", nil, hiddenValue)
	s.createRecords(map[string]string{"op.first": executedRecord, "op.second": executedRecord})
	require.NoError(t, s.apply())
	s.patchGarden(`{"status":{"credentials":{"encryptionAtRest":{"resources":[],"provider":{"type":"aescbc"}}}}}`, "status")
	require.NoError(t, s.apply())
	s.patchGarden(`{"metadata":{"annotations":{"gardener.cloud/operation":"rotate-ca-start"}}}`, "")
	require.NoError(t, s.apply())
	phase, _, _ := unstructured.NestedString(s.garden().Object, "status", "credentials", "rotation", "certificateAuthorities", "phase")
	require.Equal(t, "Prepared", phase)
	return s
}

// executedRecord is the record of an operation.
const executedRecord = `{"digest":"d","object":"Garden lost","operation":"reconcile","state":"done","at":"2026-01-01T00:00:00Z"}`

// recordsName is the inventory with the records.
const recordsName = "pergola-inventory.landscape.lost.operations"

func (s *site) createRecords(data map[string]string) {
	s.Helper()
	_, err := s.client.CoreV1().ConfigMaps("garden").Create(s.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: recordsName, Labels: map[string]string{
		owner.LabelInventory: "landscape.lost", owner.LabelBundle: landscape.OperationsBundle, owner.LabelCluster: landscape.Runtime,
	}}, Data: data}, metav1.CreateOptions{})
	require.NoError(s, err)
}

func siteClusters(s *site) map[string]*apply.Cluster {
	out := map[string]*apply.Cluster{landscape.Runtime: s.converger.Cluster(landscape.Runtime)}
	for name := range s.seeds {
		out[name] = s.converger.Cluster(name)
	}
	return out
}
