// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pergola-dev/pergola/api/crds"
	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/hack/apiserver"
	"github.com/pergola-dev/pergola/health/condition"
	"github.com/pergola-dev/pergola/landscapes/evaluation"
)

// testServer is the API server that the tests share, both the runtime cluster and the virtual
// garden.
var testServer struct {
	config *rest.Config
	count  atomic.Int64
}

func TestMain(m *testing.M) {
	minInterval = testInterval
	os.Exit(apiserver.Main(m, func(config *rest.Config) { testServer.config = config }, crds.All()...))
}

// testInterval is the default interval of polls and retries in tests.
const testInterval = 200 * time.Millisecond

// testEnv is one operator with its own namespace.
type testEnv struct {
	*testing.T
	client    client.Client
	namespace string
	cacheDir  string
	role      *Role
	// receiverAddress and metrics are the addresses of the operator.
	receiverAddress, metricsAddress string
	log                             *syncBuffer
	// mayFail means that the operator may end with an error.
	mayFail bool
}

// syncBuffer is a log that may be read while it is written.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func newTestEnv(t *testing.T) *testEnv {
	t.Helper()
	apiserver.SkipIfUnavailable(t)
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	require.NoError(t, landscapev1alpha1.AddToScheme(scheme))
	c, err := client.New(testServer.config, client.Options{Scheme: scheme})
	require.NoError(t, err)
	w := &testEnv{T: t, client: c, namespace: fmt.Sprintf("op%d", testServer.count.Add(1)), cacheDir: t.TempDir(), log: &syncBuffer{}}
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}})
	t.Cleanup(w.cleanUp)
	w.createSecret("virtual", map[string]string{"kubeconfig": kubeconfig(t)})
	return w
}

// kubeconfig returns a kubeconfig of the server.
func kubeconfig(t *testing.T) string {
	t.Helper()
	c := testServer.config
	data, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:  map[string]*clientcmdapi.Cluster{"c": {Server: c.Host, CertificateAuthorityData: c.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"u": {ClientCertificateData: c.CertData, ClientKeyData: c.KeyData}},
		Contexts:  map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}}, CurrentContext: "x",
	})
	require.NoError(t, err)
	return string(data)
}

// startOperator runs an operator until stop is called or the test ends.
func (w *testEnv) startOperator(change ...func(*Role)) (stop func()) {
	w.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	listening, ended := make(chan [2]string, 1), make(chan error, 1)
	w.role = &Role{
		Config: testServer.config, Namespace: w.namespace, Catalogue: components.FS, Evaluator: evaluation.InProcess{}, CacheDir: w.cacheDir, FileSources: true, Serving: Serving{HealthPort: -1, MetricsPort: 0, ReceiverPort: 0, OnListen: func(_, metrics, receivers string) { listening <- [2]string{metrics, receivers} }},
		Holder: fmt.Sprintf("test-%d", testServer.count.Add(1)), Version: "test", Clock: clock.RealClock{}, Log: slog.New(slog.NewTextHandler(io.MultiWriter(w.log, w.Output()), nil)),
	}
	for _, c := range change {
		c(w.role)
	}
	go func() { ended <- w.role.Run(ctx) }()
	addresses := <-listening
	w.metricsAddress, w.receiverAddress = "http://127.0.0.1"+addresses[0][strings.LastIndex(addresses[0], ":"):]+"/metrics", "http://127.0.0.1"+addresses[1][strings.LastIndex(addresses[1], ":"):]
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; !w.mayFail {
			require.NoError(w, err)
		}
	})
	w.Cleanup(stop)
	return stop
}

// cleanUp deletes the world's objects and inventories from the server, so that tests stay
// independent. Other Landscapes would read the inventories before they delete an object.
func (w *testEnv) cleanUp() {
	ctx := context.Background()
	landscapes := &landscapev1alpha1.LandscapeList{}
	require.NoError(w, w.client.List(ctx, landscapes, client.InNamespace(w.namespace)))
	for _, l := range landscapes.Items {
		require.NoError(w, w.client.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace(owner.InventoryNamespace), client.MatchingLabels{owner.LabelInventory: "landscape." + l.Name}))
	}
	for _, kind := range []client.Object{&landscapev1alpha1.Landscape{}, &corev1.ConfigMap{}, &corev1.Secret{}} {
		require.NoError(w, w.client.DeleteAllOf(ctx, kind, client.InNamespace(w.namespace)))
	}
	w.deleteLease()
}

func (w *testEnv) create(o client.Object) {
	w.Helper()
	require.NoError(w, w.client.Create(context.Background(), o))
}

func (w *testEnv) createSecret(name string, data map[string]string) {
	w.Helper()
	w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}, StringData: data})
}

// createLandscape creates a Landscape that follows a repository.
func (w *testEnv) createLandscape(name string, r *testRepository, change ...func(*landscapev1alpha1.LandscapeSpec)) {
	w.Helper()
	l := &landscapev1alpha1.Landscape{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
	l.Spec.Source = &landscapev1alpha1.Source{URL: "file://" + r.dir, Interval: &metav1.Duration{Duration: testInterval}}
	l.Spec.RetryInterval = &metav1.Duration{Duration: testInterval}
	l.Spec.Clusters = &landscapev1alpha1.Clusters{Virtual: &landscapev1alpha1.ClusterAccess{SecretRef: &landscapev1alpha1.SecretKeyReference{Name: "virtual"}}}
	for _, c := range change {
		c(&l.Spec)
	}
	w.create(l)
}

func (w *testEnv) getLandscape(name string) *landscapev1alpha1.Landscape {
	w.Helper()
	l := &landscapev1alpha1.Landscape{}
	require.NoError(w, w.client.Get(context.Background(), client.ObjectKey{Namespace: w.namespace, Name: name}, l))
	return l
}

// changeLandscape changes a Landscape.
func (w *testEnv) changeLandscape(name string, change func(*landscapev1alpha1.Landscape)) {
	w.Helper()
	l := w.getLandscape(name)
	before := l.DeepCopy()
	change(l)
	require.NoError(w, w.client.Patch(context.Background(), l, client.MergeFrom(before)))
}

// awaitReady waits for a prefix of the Ready condition: status, reason and message.
func (w *testEnv) awaitReady(name, want string) *landscapev1alpha1.Landscape {
	w.Helper()
	return w.awaitLandscape(name, func(l *landscapev1alpha1.Landscape) bool { return strings.HasPrefix(readyText(l), want) })
}

func (w *testEnv) awaitLandscape(name string, ok func(*landscapev1alpha1.Landscape) bool) *landscapev1alpha1.Landscape {
	w.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		l := w.getLandscape(name)
		if ok(l) {
			return l
		}
		if time.Now().After(deadline) {
			require.Fail(w, "the Landscape does not get there", "it is %s\nhistory %+v", readyText(l), l.Status.History)
		}
		select {
		case <-w.Context().Done():
			require.Fail(w, "the test ended")
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func readyText(l *landscapev1alpha1.Landscape) string {
	c := condition.Get(l.Status.Conditions, landscapev1alpha1.LandscapeReady)
	if c == nil {
		return "without a condition"
	}
	return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
}

// configMapValue reads an applied ConfigMap; "" if it does not exist.
func (w *testEnv) configMapValue(name string) string {
	w.Helper()
	cm := &corev1.ConfigMap{}
	err := w.client.Get(context.Background(), client.ObjectKey{Namespace: w.namespace, Name: name}, cm)
	require.NoError(w, client.IgnoreNotFound(err))
	return cm.Data["value"]
}

// testRepository is a Git repository in a folder.
type testRepository struct {
	*testing.T
	dir string
	namespace,
	name string
}

// newRepository creates one with a landscape in it.
func (w *testEnv) newRepository(name string) *testRepository {
	w.Helper()
	r := &testRepository{T: w.T, dir: w.TempDir(), namespace: w.namespace, name: name}
	r.git("init", "-q", "-b", "main")
	r.commit("begin", map[string]string{"landscape.yaml": r.landscapeFile(""), "a.yaml": r.configMap("a", "1")})
	return r
}

// landscapeFile returns a landscape.yaml.
func (r *testRepository) landscapeFile(spec string) string {
	return "apiVersion: landscape.pergola.dev/v1alpha1\nkind: Landscape\nmetadata: {name: " + r.name + "}\nspec:\n  catalogue: {version: " + components.Version + "}\n" + spec
}

// configMap returns a ConfigMap for the runtime cluster.
func (r *testRepository) configMap(name, value string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\n  namespace: %s\n  annotations: {landscape.pergola.dev/cluster: runtime}\ndata: {value: %q}\n", name, r.namespace, value)
}

// commit writes files, deletes empty ones, and returns the commit.
func (r *testRepository) commit(message string, files map[string]string) string {
	r.Helper()
	for name, content := range maps.All(files) {
		path := filepath.Join(r.dir, name)
		if content == "" {
			require.NoError(r, os.Remove(path))
			continue
		}
		require.NoError(r, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(r, os.WriteFile(path, []byte(content), 0o600))
	}
	r.git("add", "-A")
	r.git("commit", "-q", "-m", message)
	return strings.TrimSpace(r.git("rev-parse", "HEAD"))
}

func (r *testRepository) git(args ...string) string {
	r.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=An Author", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=c", "GIT_COMMITTER_EMAIL=c@example.com",
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	out, err := cmd.CombinedOutput()
	require.NoError(r, err, "git %s: %s", strings.Join(args, " "), out)
	return string(out)
}
