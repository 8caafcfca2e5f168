// SPDX-License-Identifier: Apache-2.0

package gardenlet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/api/crds"
	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/controllers/conventions"
	"github.com/pergola-dev/pergola/controllers/seedpublication"
	"github.com/pergola-dev/pergola/hack/apiserver"
	"github.com/pergola-dev/pergola/hack/smallcatalogue"
	"github.com/pergola-dev/pergola/landscapes"
)

// servers are a virtual garden and a seed that the tests of this package share. Each test has its
// own Seed.
var servers struct {
	virtual, seed *rest.Config
	count         atomic.Int64
}

func TestMain(m *testing.M) {
	if !apiserver.IsAvailable() {
		os.Exit(m.Run())
	}
	// The seed needs the definition of ManagedResources: care lists them, and an unknown kind
	// triggers a new discovery every few seconds.
	config, end, err := apiserver.Acquire(crds.ByGroup(resourcesv1alpha1.SchemeGroupVersion.Group)...)
	if err != nil {
		fmt.Fprintln(os.Stderr, "starting the API server of the seed:", err)
		os.Exit(1)
	}
	servers.seed = config
	definitions := crds.ByGroup(gardencorev1beta1.SchemeGroupVersion.Group)
	for _, d := range definitions {
		if d.Spec.Names.Kind == kindShoot {
			d.Spec.Versions[0].SelectableFields = []apiextensionsv1.SelectableField{{JSONPath: ".spec.seedName"}}
		}
	}
	code := apiserver.Main(m, func(config *rest.Config) { servers.virtual = config }, definitions...)
	if err := end(); err != nil {
		fmt.Fprintln(os.Stderr, "stopping the API server of the seed:", err)
	}
	os.Exit(code)
}

// catalogueFiles returns a catalogue of three components, each with a ConfigMap.
func catalogueFiles() fstest.MapFS {
	out := smallcatalogue.New()
	component := func(name, condition, namespace, object, data string) string {
		return "package component\n\ncomponent: {\n\tcondition: \"" + condition + "\"\n\tsecrets: ca: {kind: \"ca\", commonName: \"test\"}\n\tbundles: \"" + name + "\": {cluster: \"seed\", direct: true, source: cue: [{\n" +
			"\t\tapiVersion: \"v1\"\n\t\tkind: \"ConfigMap\"\n\t\tmetadata: {name: \"" + object + "\", namespace: " + namespace + "}\n\t\tdata: {" + data + "}\n\t}]}\n}\n"
	}
	out["seed/flow.cue"] = smallcatalogue.Flow("seed", `a: apply: ["a"], b: {apply: ["b"], after: a: "applied"}`, `all: remove: ["a", "b"]`)
	out["shoot/flow.cue"] = smallcatalogue.Flow("shoot", `c: apply: ["c"]`, `c: remove: ["c"]`)
	for name, text := range map[string]string{
		"seed/a/component.cue": component("a", "SeedSystemComponentsHealthy", `"garden"`, `a-\(seed.metadata.name)`, "region: seed.spec.provider.region, overlaid: \"no\""),
		"seed/b/component.cue": component("b", "SeedSystemComponentsHealthy", `"garden"`, `b-\(seed.metadata.name)`, "x: \"1\", seedIsGarden: \"\\(landscape.seedIsGarden)\""),
		"shoot/c/component.cue": component("c", "ControlPlaneHealthy", "owner.controlPlaneNamespace", "c",
			"version: shoot.spec.kubernetes.version, inProject: project.metadata.name, onSeed: seed.metadata.name, uid: owner.uid, seedUID: seed.metadata.uid, fromProfile: cloudProfile.metadata.name"),
	} {
		out[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return out
}

// testSeed is a Seed with a project, and the test's own access to both clusters.
type testSeed struct {
	testing.TB
	ctx            context.Context
	name, project  string
	virtual, seed  dynamic.Interface
	publisher      *seedpublication.Publisher
	virtualCluster *apply.Cluster
	overlays       map[string]string
	// spec is text of landscape.yaml besides the catalogue, approved the given approvals.
	spec                              string
	approvals                         []string
	review                            landscapev1alpha1.ReviewMode
	catalogue                         fs.FS
	virtualConnection, seedConnection *testConnection
	logs                              *logBuffer
	// prepare may change a gardenlet before it runs.
	prepare func(*Gardenlet)
}

func newTestSeed(t testing.TB) *testSeed {
	t.Helper()
	apiserver.SkipIfUnavailable(t)
	n := servers.count.Add(1)
	p := &testSeed{TB: t, name: fmt.Sprintf("s%d-%d", os.Getpid()%1000, n), project: fmt.Sprintf("p%d-%d", os.Getpid()%1000, n), overlays: map[string]string{}, catalogue: catalogueFiles(), logs: &logBuffer{TB: t}}
	var cancel context.CancelFunc
	p.ctx, cancel = context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(p.logs.String())
		}
	})
	var err error
	p.virtual, err = dynamic.NewForConfig(withoutRateLimit(servers.virtual))
	require.NoError(t, err)
	p.seed, err = dynamic.NewForConfig(withoutRateLimit(servers.seed))
	require.NoError(t, err)
	p.virtualCluster, err = conventions.NewCluster("virtual", servers.virtual, apply.ClusterOptions{})
	require.NoError(t, err)
	t.Cleanup(p.virtualCluster.Close)
	p.publisher = &seedpublication.Publisher{Engine: conventions.NewEngine(apply.Options{}), Clock: clock.RealClock{}}
	for _, text := range []string{
		"{apiVersion: v1, kind: Namespace, metadata: {name: garden-PROJECT}}",
		"{apiVersion: core.gardener.cloud/v1beta1, kind: Project, metadata: {name: PROJECT}, spec: {namespace: garden-PROJECT}}",
		profileText, seedText,
	} {
		p.create(text)
	}
	return p
}

func withoutRateLimit(c *rest.Config) *rest.Config {
	out := rest.CopyConfig(c)
	out.QPS, out.WarningHandler = -1, rest.NoWarnings{}
	return out
}

const profileText = `apiVersion: core.gardener.cloud/v1beta1
kind: CloudProfile
metadata: {name: profile}
spec:
  type: local
  kubernetes: {versions: [{version: 1.34.1}, {version: 1.33.5}]}
  machineImages: [{name: local, versions: [{version: 1.0.0, cri: [{name: containerd}], architectures: [amd64]}]}]
  machineTypes: [{name: local, cpu: "1", gpu: "0", memory: 1Gi, architecture: amd64}]
  regions: [{name: local}]
`

const seedText = `apiVersion: core.gardener.cloud/v1beta1
kind: Seed
metadata: {name: SEED}
spec:
  provider: {type: local, region: here}
  networks: {nodes: 172.18.1.0/24, pods: 10.3.0.0/16, services: 10.4.0.0/16}
  ingress: {domain: ingress.example.org, controller: {kind: nginx}}
  dns:
    provider: {type: local, credentialsRef: {apiVersion: v1, kind: Secret, name: dns, namespace: garden}}
    internal: {type: local, domain: internal.example.org, credentialsRef: {apiVersion: v1, kind: Secret, name: dns, namespace: garden}}
`

const shootText = `apiVersion: core.gardener.cloud/v1beta1
kind: Shoot
metadata: {name: NAME, namespace: garden-PROJECT}
spec:
  cloudProfile: {kind: CloudProfile, name: profile}
  region: local
  seedName: SEED
  provider: {type: local}
  kubernetes: {version: 1.34.1}
  networking: {type: calico, nodes: 10.10.0.0/16, pods: 100.96.0.0/11, services: 100.72.0.0/13}
`

func (p *testSeed) createShoot(name string) { p.create(strings.ReplaceAll(shootText, "NAME", name)) }

// parseObject parses YAML, in which SEED and PROJECT represent those of the test.
func (p *testSeed) parseObject(text string) *unstructured.Unstructured {
	p.Helper()
	o := &unstructured.Unstructured{}
	raw, err := yaml.YAMLToJSON([]byte(strings.NewReplacer("SEED", p.name, "PROJECT", p.project).Replace(text)))
	require.NoError(p, err)
	require.NoError(p, o.UnmarshalJSON(raw))
	return o
}

func (p *testSeed) create(text string) {
	p.Helper()
	o := p.parseObject(text)
	_, err := p.resourceClient(o.GetKind(), o.GetNamespace()).Create(p.ctx, o, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		require.NoError(p, err)
	}
}

func (p *testSeed) resourceClient(kind, namespace string) dynamic.ResourceInterface {
	gvr := gardencorev1beta1.SchemeGroupVersion.WithResource(strings.ToLower(kind) + "s")
	switch kind {
	case "Namespace", "ConfigMap", "Secret", "Event":
		gvr = schema.GroupVersionResource{Version: "v1", Resource: gvr.Resource}
	case "Lease":
		gvr = leases()
	}
	if namespace == "" {
		return p.virtual.Resource(gvr)
	}
	return p.virtual.Resource(gvr).Namespace(namespace)
}

func (p *testSeed) patch(kind, namespace, name, body string, subresources ...string) {
	p.Helper()
	_, err := p.resourceClient(kind, namespace).Patch(p.ctx, name, types.MergePatchType, []byte(body), metav1.PatchOptions{FieldManager: "test"}, subresources...)
	require.NoError(p, err)
}

// seedConfigMap returns a ConfigMap of the seed; it is nil if it does not exist.
func (p *testSeed) seedConfigMap(namespace, name string) *unstructured.Unstructured {
	o, err := p.configMaps(namespace).Get(p.ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return o
}

func (p *testSeed) configMaps(namespace string) dynamic.ResourceInterface {
	return p.seed.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(namespace)
}

// configMapValue returns a value of a ConfigMap of the seed; it is empty if it does not exist.
func (p *testSeed) configMapValue(namespace, name, key string) string {
	o := p.seedConfigMap(namespace, name)
	if o == nil {
		return ""
	}
	text, _, _ := unstructured.NestedString(o.Object, "data", key)
	return text
}

func (p *testSeed) controlPlane(shoot string) string { return "shoot--" + p.project + "--" + shoot }

// publish acts as the operator: it publishes a landscape with the overlays of the test.
func (p *testSeed) publish(revision string) seedpublication.PublishResult {
	p.Helper()
	out, err := p.publisher.Apply(p.ctx, p.virtualCluster, p.content(), p.name, revision)
	require.NoError(p, err)
	return out
}

func (p *testSeed) content() *seedpublication.Content {
	p.Helper()
	files := fstest.MapFS{"landscape.yaml": {Data: []byte("apiVersion: landscape.pergola.dev/v1alpha1\nkind: Landscape\nmetadata: {name: demo}\nspec: {catalogue: {version: " + components.Version + "}" + p.spec + "}\n")}}
	for name, text := range p.overlays {
		files[name] = &fstest.MapFile{Data: []byte(strings.ReplaceAll(text, "SEED", p.name))}
	}
	l, violations, err := landscapes.LoadFS(p.ctx, files, ".", landscapes.Options{})
	require.NoError(p, err)
	require.Empty(p, violations)
	c, err := seedpublication.ContentOf(l, seedpublication.ObjectSettings{Approved: p.approvals, Review: p.review})
	require.NoError(p, err)
	return c
}

// overlay sets data of the ConfigMap of component a.
func (p *testSeed) overlay(value string) {
	p.overlays["components/seed/a/kustomization.yaml"] = "patches: [{path: p.yaml}]\n"
	p.overlays["components/seed/a/p.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a-SEED, namespace: garden}\ndata: {overlaid: \"" + value + "\"}\n"
}

// runningGardenlet is a started gardenlet.
type runningGardenlet struct {
	*Gardenlet
	stop func() error
	// hasEnded reports whether it ended by itself.
	hasEnded func() bool
}

func leases() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
}

// runGardenlet starts a gardenlet; change may alter its options.
func (p *testSeed) runGardenlet(change ...func(*Options)) *runningGardenlet {
	p.Helper()
	p.virtualConnection, p.seedConnection = &testConnection{}, &testConnection{}
	o := Options{
		Seed: p.name, Garden: p.virtualConnection.wrap(servers.virtual), Local: p.seedConnection.wrap(servers.seed), Catalogue: p.catalogue, Holder: fmt.Sprintf("holder-%d", servers.count.Add(1)),
		Version: "v0", Timing: Timing{HeartbeatInterval: 100 * time.Millisecond, CareInterval: 300 * time.Millisecond, RetryInterval: 500 * time.Millisecond},
		Log: slog.New(slog.NewTextHandler(p.logs, nil)),
	}
	for _, c := range change {
		c(&o)
	}
	g, err := New(o)
	require.NoError(p, err)
	if p.prepare != nil {
		p.prepare(g)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	var outcome error
	go func() {
		defer close(ended)
		outcome = g.Run(ctx)
	}()
	r := &runningGardenlet{Gardenlet: g, stop: func() error {
		cancel()
		<-ended
		return outcome
	}, hasEnded: func() bool {
		select {
		case <-ended:
			return true
		default:
			return false
		}
	}}
	p.Cleanup(func() { _ = r.stop() })
	return r
}

func (p *testSeed) eventually(what string, ok func() bool) {
	p.Helper()
	require.Eventually(p, ok, 40*time.Second, 20*time.Millisecond, what)
}

// condition returns the status and reason of a condition of the Seed.
func (p *testSeed) condition(name string) string {
	o, err := p.resourceClient("Seed", "").Get(p.ctx, p.name, metav1.GetOptions{})
	if err != nil {
		return err.Error()
	}
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, item := range list {
		if c, ok := item.(map[string]any); ok && c["type"] == name {
			return fmt.Sprint(c["status"], " ", c["reason"])
		}
	}
	return ""
}

func (p *testSeed) lastOperation(kind, namespace, name, field string) string {
	o, err := p.resourceClient(kind, namespace).Get(p.ctx, name, metav1.GetOptions{})
	if err != nil {
		return err.Error()
	}
	text, _, _ := unstructured.NestedString(o.Object, "status", "lastOperation", field)
	return text
}

// testConnection records the requests of a gardenlet, and can be cut.
type testConnection struct {
	mu       sync.Mutex
	cut      bool
	requests []string
}

func (w *testConnection) wrap(c *rest.Config) *rest.Config {
	out := rest.CopyConfig(c)
	out.Wrap(func(next http.RoundTripper) http.RoundTripper { return connectionTransport{w, next} })
	return out
}

func (w *testConnection) setCut(cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = cut
}

// requestsSince returns the requests after the first n.
func (w *testConnection) requestsSince(n int) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.requests[n:]...)
}

func (w *testConnection) isCut() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cut
}

type connectionTransport struct {
	*testConnection
	next http.RoundTripper
}

var errCut = errors.New("the wire is cut")

func (t connectionTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	t.mu.Lock()
	cut := t.cut
	if r.URL.Query().Get("watch") == "" {
		t.requests = append(t.requests, r.Method+" "+r.URL.Path)
	}
	t.mu.Unlock()
	if cut {
		return nil, errCut
	}
	answer, err := t.next.RoundTrip(r)
	if err == nil {
		answer.Body = &cuttableBody{answer.Body, t.testConnection}
	}
	return answer, err
}

// cuttableBody is a response body that fails when the wire is cut.
type cuttableBody struct {
	inner interface {
		Read([]byte) (int, error)
		Close() error
	}
	wire *testConnection
}

func (b *cuttableBody) Read(into []byte) (int, error) {
	n, err := b.inner.Read(into)
	if b.wire.isCut() {
		return 0, errCut
	}
	return n, err
}

func (b *cuttableBody) Close() error { return b.inner.Close() }

// logBuffer captures the logs of a gardenlet.
type logBuffer struct {
	testing.TB
	mu   sync.Mutex
	text strings.Builder
}

func (l *logBuffer) Write(data []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(data)
	return len(data), nil
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// site returns the worker of an owner; it is nil if it has none.
func (g *Gardenlet) site(id string) *ownerWorker {
	at, _ := g.fleet.Owner(id)
	return at
}
