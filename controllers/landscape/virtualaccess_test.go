// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/apply/flow"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/access"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/controllers/permit"
	"github.com/pergola-dev/pergola/hack/apiserver"
	"github.com/pergola-dev/pergola/hack/smallcatalogue"
	"github.com/pergola-dev/pergola/health/condition"
	"github.com/pergola-dev/pergola/landscapes"
)

// derivedGarden is a Garden whose virtual garden answers only at the address of its Secret.
const derivedGarden = `apiVersion: operator.gardener.cloud/v1alpha1
kind: Garden
metadata: {name: derived}
spec:
  runtimeCluster:
    ingress: {domains: [{name: ingress.derived.example}], controller: {kind: nginx}}
    networking: {pods: [10.1.0.0/16], services: [10.2.0.0/16]}
    provider: {zones: ["0"]}
  virtualCluster:
    dns: {domains: [{name: derived.example}]}
    gardener: {clusterIdentity: derived}
    kubernetes: {version: 1.34.1}
    maintenance: {timeWindow: {begin: 220000+0100, end: 230000+0100}}
    networking: {services: [100.64.0.0/13]}
`

// caRequest is a request of the secrets manager.
const caRequest = `ca: {kind: "ca", commonName: "test"}`

// derivedCatalogue creates an object of the Garden in each cluster, the second one when the virtual
// garden answers.
func derivedCatalogue(t *testing.T, requests string) fs.FS {
	t.Helper()
	out := smallcatalogue.New()
	component := func(name, cluster, condition, secrets string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("package component\n\ncomponent: {\n\tcondition: \"" + condition + "\"\n\tsecrets: {" + secrets + "}\n\tbundles: \"" + name + "\": {cluster: \"" + cluster +
			"\", direct: true, source: cue: [{apiVersion: \"v1\", kind: \"ConfigMap\", metadata: {name: \"" + name + "\", namespace: \"default\"}, data: {x: \"y\"}}]}\n}\n")}
	}
	out["garden/flow.cue"] = smallcatalogue.Flow("garden", `
first: apply: ["first"]
"init-virtual": {await: "virtual-garden-answers", after: first: "applied"}
inside: {apply: ["inside"], after: "init-virtual": "healthy"}
`, `
unused: await: "unused"
inside: {remove: ["inside"], after: unused: "healthy"}
first: {remove: ["first"], after: inside: "healthy"}
secrets: {task: "remove-secrets", after: first: "healthy"}
"namespace-labels": {task: "yield-namespace", after: secrets: "healthy"}
"reference-finalizers": {task: "release-references", after: "namespace-labels": "healthy"}
"extension-finalizers": {task: "release-extensions", after: "reference-finalizers": "healthy"}
`)
	out["garden/first/component.cue"] = component("first", "runtime", "RuntimeComponentsHealthy", requests)
	out["garden/inside/component.cue"] = component("inside", "virtual", "VirtualComponentsHealthy", "")
	return out
}

// derivedLandscape is a landscape with its own server as runtime cluster. Its virtual garden is the
// shared server, as soon as the access exists.
type derivedLandscape struct {
	*testing.T
	runtime   *rest.Config
	client    kubernetes.Interface
	converger *Converger
	waiting   chan struct{}
	// onEvent receives the steps; tests set it before they begin.
	onEvent func(owner.Event)
}

func newDerivedLandscape(t *testing.T, files map[string]string, requests string) *derivedLandscape {
	t.Helper()
	return newDerivedWithCatalogue(t, files, derivedCatalogue(t, requests))
}

func newDerivedWithCatalogue(t *testing.T, files map[string]string, catalogue fs.FS) *derivedLandscape {
	t.Helper()
	d := &derivedLandscape{T: t, runtime: apiserver.Start(t), waiting: make(chan struct{})}
	dir := t.TempDir()
	files["landscape.yaml"] = "apiVersion: landscape.pergola.dev/v1alpha1\nkind: Landscape\nmetadata: {name: derived}\n"
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	l, _, err := landscapes.Load(t.Context(), dir, landscapes.Options{})
	require.NoError(t, err)
	virtual, err := VirtualGardenConfig(l, d.runtime, clock.RealClock{})
	require.NoError(t, err)
	if d.client, err = kubernetes.NewForConfig(d.runtime); err != nil {
		t.Fatal(err)
	}
	options := Options{
		Catalogue:   catalogue,
		Connections: Connections{Configs: map[string]*rest.Config{Runtime: d.runtime, Virtual: virtual}},
		Clock:       clock.RealClock{},
		Permits:     Permits{Gate: permit.DefaultGate()},
		Process:     ProcessIdentity{Holder: "test"}, Timing: Timing{Thresholds: condition.Thresholds{}, StepTimeout: 30 * time.Second},
	}
	once := sync.OnceFunc(func() { close(d.waiting) })
	options.Listeners.OnEvent = func(e owner.Event) {
		if e.Node == "init-virtual" && e.State == flow.Running {
			once()
		}
		if d.onEvent != nil {
			d.onEvent(e)
		}
	}
	d.converger, err = New(l, options)
	require.NoError(t, err)
	t.Cleanup(d.converger.Close)
	return d
}

// createAccess writes access to the virtual garden as another writer.
func (d *derivedLandscape) createAccess() {
	d.Helper()
	d.createAccessAt(server.config.Host)
}

// createAccessAt is serve for another address of the virtual garden.
func (d *derivedLandscape) createAccessAt(address string) {
	d.Helper()
	c := server.config
	raw, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:  map[string]*clientcmdapi.Cluster{"c": {Server: address, CertificateAuthorityData: c.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"u": {ClientCertificateData: c.CertData, ClientKeyData: c.KeyData}},
		Contexts:  map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}}, CurrentContext: "x",
	})
	require.NoError(d, err)
	_, err = d.client.CoreV1().Secrets(access.GardenNamespace).Create(testContext(d.T), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: access.SecretName}, Data: map[string][]byte{access.KubeconfigKey: raw},
	}, metav1.CreateOptions{})
	require.NoError(d, err)
}

func (d *derivedLandscape) deleteObjectsAtEnd(names ...string) {
	d.Cleanup(func() {
		for _, name := range names {
			_ = resourceClient(d.T, configMapResource, "default").Delete(context.Background(), name, metav1.DeleteOptions{})
		}
	})
}

// TestFirstBootstrap checks that one converger creates the Garden and the objects of the virtual
// garden on an empty runtime cluster. Read-only calls report the state before.
func TestFirstBootstrap(t *testing.T) {
	needsServer(t)
	d := newDerivedLandscape(t, map[string]string{
		"garden.yaml": derivedGarden, "map.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: declared-inside, namespace: default}, data: {a: b}}\n",
	}, caRequest)
	d.deleteObjectsAtEnd("inside", "declared-inside")
	ctx := testContext(t)

	p, err := d.converger.Plan(ctx)
	require.NoError(t, err)
	assert.Equal(t, []string{noteVirtualPending}, p.Notes)
	for _, item := range p.Items {
		assert.Equal(t, change.Create, item.Action, item.Object)
	}
	creates := func(cluster, kind, name string) bool {
		return slices.ContainsFunc(p.Items, func(i change.Item) bool {
			return i.Cluster == cluster && i.Object.Kind == kind && i.Object.Name == name
		})
	}
	for _, o := range [][3]string{{Runtime, "Garden", "derived"}, {Runtime, "ConfigMap", "first"}, {Virtual, "ConfigMap", "inside"}, {Virtual, "ConfigMap", "declared-inside"}} {
		assert.True(t, creates(o[0], o[1], o[2]), "%v", o)
	}

	for _, live := range []bool{false, true} {
		status := d.converger.Status(ctx, StatusOptions{Live: live, Components: live})
		assert.False(t, status.Ready)
		require.Len(t, status.Owners, 1)
		assert.Equal(t, "it does not exist on cluster runtime, because its declaration was not applied there yet (run pergola apply)", status.Owners[0].Error)
	}

	ended := make(chan error, 1)
	go func() {
		_, err := d.converger.Apply(ctx)
		ended <- err
	}()
	select {
	case <-d.waiting:
	case err := <-ended:
		t.Fatal("it has ended before it waits for the virtual garden: ", err)
	}
	status := d.converger.Status(ctx, StatusOptions{Live: true})
	require.Len(t, status.Owners, 1)
	for _, c := range status.Owners[0].Conditions {
		if c.Type == "VirtualGardenAPIServerAvailable" {
			assert.Contains(t, c.Message, "access to the virtual garden does not exist yet: Secret garden/gardener-internal is created with the Garden")
		}
	}
	d.createAccess()
	require.NoError(t, <-ended)
	for _, name := range []string{"inside", "declared-inside"} {
		_, err := resourceClient(t, configMapResource, "default").Get(ctx, name, metav1.GetOptions{})
		require.NoError(t, err)
	}
	status = d.converger.Status(ctx, StatusOptions{Live: true, Components: true})
	assert.True(t, status.Ready, "%+v", status.Owners)
	p, err = d.converger.Plan(ctx)
	require.NoError(t, err)
	assert.Empty(t, p.Items)
	assert.Empty(t, p.Notes)
}

// TestVirtualGardenWithoutAccess checks that a virtual garden without access fails the Garden with
// the reason, and that its objects follow.
func TestVirtualGardenWithoutAccess(t *testing.T) {
	needsServer(t)
	d := newDerivedLandscape(t, map[string]string{"garden.yaml": derivedGarden}, caRequest)
	d.converger.members.reconciler.StepTimeout = 500 * time.Millisecond
	_, err := d.converger.Apply(testContext(t))
	require.Error(t, err)
	problems := strings.Join(apply.Problems(err), "\n")
	assert.Contains(t, problems, "access to the virtual garden does not exist yet: Secret garden/gardener-internal is created with the Garden")
}

// TestRuntimeClusterAlone checks that a landscape without a Garden or objects for a virtual garden
// needs none.
func TestRuntimeClusterAlone(t *testing.T) {
	needsServer(t)
	d := newDerivedLandscape(t, map[string]string{
		"map.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: alone, namespace: default, annotations: {" + AnnotationCluster + ": runtime}}, data: {a: b}}\n",
	}, caRequest)
	_, err := d.converger.Apply(testContext(t))
	require.NoError(t, err)
	p, err := d.converger.Plan(testContext(t))
	require.NoError(t, err)
	assert.Empty(t, p.Items)
}

// TestGardenWritesItsAccess checks that the Garden writes and renews its access under the fixed
// name, and ignores a Secret of another writer.
func TestGardenWritesItsAccess(t *testing.T) {
	needsServer(t)
	const requests = `
		ca: {kind: "ca", commonName: "kubernetes", rotation: "keepOld"}
		"ca-client": {kind: "ca", commonName: "kubernetes-client", rotation: "keepOld"}
		"gardener-internal-client": {kind: "certificate", certType: "client", commonName: "gardener.cloud:pergola", organization: ["system:masters"], signingCA: "ca-client", skipPublishingCACertificate: true}
		"gardener-internal": {kind: "kubeconfig", contextName: "garden", server: "https://virtual-garden-kube-apiserver.garden.svc.cluster.local", ca: "ca", clientCertificate: "gardener-internal-client"}
	`
	d := newDerivedLandscape(t, map[string]string{"garden.yaml": derivedGarden}, requests)
	d.deleteObjectsAtEnd("inside")
	d.converger.members.reconciler.StepTimeout = 300 * time.Millisecond
	ctx := testContext(t)
	secrets := d.client.CoreV1().Secrets(access.GardenNamespace)
	apply := func() *corev1.Secret {
		t.Helper()
		_, err := d.converger.Apply(ctx)
		require.ErrorContains(t, err, "the virtual garden does not answer", "its address is nowhere")
		assert.NotContains(t, err.Error(), "PRIVATE KEY")
		s, err := secrets.Get(ctx, access.SecretName, metav1.GetOptions{})
		require.NoError(t, err)
		return s
	}
	first := apply()
	config, err := access.ParseKubeconfig(first.Data[access.KubeconfigKey])
	require.NoError(t, err)
	assert.Equal(t, access.VirtualGardenURL, config.Host)
	assert.NotEmpty(t, config.KeyData)
	assert.NotEmpty(t, config.CAData)
	exempt := slices.ContainsFunc(UninventoriedKinds(), func(e UninventoriedKind) bool {
		return access.IsPublished(first.Name, first.Labels) && strings.Contains(e.Objects, access.SecretName)
	})
	assert.True(t, exempt)
	assert.Equal(t, first.ResourceVersion, apply().ResourceVersion, "what did not change is not written")

	// A new certificate, as after an expiry.
	generated, err := secrets.List(ctx, metav1.ListOptions{LabelSelector: "name=gardener-internal-client"})
	require.NoError(t, err)
	require.Len(t, generated.Items, 1)
	require.NoError(t, secrets.Delete(ctx, generated.Items[0].Name, metav1.DeleteOptions{}))
	renewed := apply()
	assert.NotEqual(t, first.Data, renewed.Data)

	require.NoError(t, secrets.Delete(ctx, access.SecretName, metav1.DeleteOptions{}))
	d.createAccess()
	others, err := secrets.Get(ctx, access.SecretName, metav1.GetOptions{})
	require.NoError(t, err)
	d.converger.members.reconciler.StepTimeout = 2 * time.Minute
	_, err = d.converger.Apply(ctx)
	require.NoError(t, err)
	now, err := secrets.Get(ctx, access.SecretName, metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, others.ResourceVersion, now.ResourceVersion)
}

func TestIsDerived(t *testing.T) {
	of := func(virtual *landscapev1alpha1.ClusterAccess) *landscapes.Landscape {
		l := &landscapes.Landscape{Config: &landscapev1alpha1.Landscape{}}
		l.Config.Spec.Clusters = &landscapev1alpha1.Clusters{Virtual: virtual}
		return l
	}
	for name, c := range map[string]struct {
		access  Access
		virtual *landscapev1alpha1.ClusterAccess
		cluster string
		want    bool
	}{
		"unset":               {Access{}, nil, Virtual, true},
		"empty":               {Access{}, &landscapev1alpha1.ClusterAccess{}, Virtual, true},
		"a context":           {Access{}, &landscapev1alpha1.ClusterAccess{Context: "c"}, Virtual, false},
		"a file":              {Access{}, &landscapev1alpha1.ClusterAccess{Kubeconfig: "k"}, Virtual, false},
		"a Secret":            {Access{}, &landscapev1alpha1.ClusterAccess{SecretRef: &landscapev1alpha1.SecretKeyReference{Name: "s"}}, Virtual, false},
		"at the command line": {Access{KubeconfigByCluster: map[string]string{Virtual: "k"}}, nil, Virtual, false},
		"for another one":     {Access{KubeconfigByCluster: map[string]string{Runtime: "k"}}, nil, Virtual, true},
		"the runtime cluster": {Access{}, nil, Runtime, false},
		"a seed":              {Access{}, nil, "seed", false},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, c.access.IsDerived(of(c.virtual), c.cluster)) })
	}
}
