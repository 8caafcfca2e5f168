// SPDX-License-Identifier: Apache-2.0

package garbagecollector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/api/crds"
	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
	"github.com/pergola-dev/pergola/hack/apiserver"
	"github.com/pergola-dev/pergola/render"
)

var server struct {
	config *rest.Config
	count  atomic.Int64
}

func TestMain(m *testing.M) {
	os.Exit(apiserver.Main(m, func(config *rest.Config) { server.config = config }, crds.ByGroup(resourcesv1alpha1.SchemeGroupVersion.Group)...))
}

// testEnv is a namespace with garbage and a collector, whose scans the test starts.
type testEnv struct {
	testing.TB
	ctx   context.Context
	ns    string
	api   dynamic.Interface
	clock *clocktesting.FakeClock
	// intercept may answer a request of the collector instead of the API server.
	intercept func(*http.Request) *http.Response
	options   Options
	*collector
}

func newTestEnv(t testing.TB) *testEnv {
	t.Helper()
	apiserver.SkipIfUnavailable(t)
	y := &testEnv{TB: t, ns: fmt.Sprintf("gc%d-%d", os.Getpid(), server.count.Add(1)), clock: clocktesting.NewFakeClock(time.Now().Add(time.Hour))}
	var cancel context.CancelFunc
	y.ctx, cancel = context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	api, err := dynamic.NewForConfig(server.config)
	require.NoError(t, err)
	y.api = api
	y.create("{apiVersion: v1, kind: Namespace, metadata: {name: NS}}")

	target := rest.CopyConfig(server.config)
	target.QPS = -1
	target.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if y.intercept != nil {
				if answer := y.intercept(r); answer != nil {
					answer.Request = r
					return answer, nil
				}
			}
			return next.RoundTrip(r)
		})
	})
	y.options = Options{Target: target, Namespaces: []string{y.ns}, Clock: y.clock, PageSize: 2, Metrics: prometheus.NewRegistry()}
	y.options.setDefaults(nil)
	y.collector, err = newCollector(y.options)
	require.NoError(t, err)
	return y
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func httpResponse(code int, body string) *http.Response {
	return &http.Response{StatusCode: code, Status: http.StatusText(code), Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body))}
}

func (y *testEnv) resource(kind string) dynamic.ResourceInterface {
	gv := corev1.SchemeGroupVersion
	for _, r := range DefaultReferrers() {
		if r.Kind == kind {
			gv = r.GroupVersion()
		}
	}
	resource := y.api.Resource(gv.WithResource(strings.ToLower(kind) + "s"))
	if kind == "Namespace" {
		return resource
	}
	return resource.Namespace(y.ns)
}

func (y *testEnv) create(text string) *unstructured.Unstructured {
	y.Helper()
	o := &unstructured.Unstructured{}
	raw, err := yaml.YAMLToJSON([]byte(strings.ReplaceAll(text, "NS", y.ns)))
	require.NoError(y, err)
	require.NoError(y, o.UnmarshalJSON(raw))
	created, err := y.resource(o.GetKind()).Create(y.ctx, o, metav1.CreateOptions{})
	require.NoError(y, err)
	return created
}

func (y *testEnv) createGarbage(kind, name string) {
	y.Helper()
	y.create("{apiVersion: v1, kind: " + kind + ", metadata: {name: " + name + ", namespace: NS, labels: {resources.gardener.cloud/garbage-collectable-reference: 'true'}}, immutable: true}")
}

func (y *testEnv) patch(kind, name, patch string) {
	y.Helper()
	raw, err := yaml.YAMLToJSON([]byte(patch))
	require.NoError(y, err)
	_, err = y.resource(kind).Patch(y.ctx, name, types.MergePatchType, raw, metav1.PatchOptions{})
	require.NoError(y, err)
}

func (y *testEnv) remove(kind, name string) {
	y.Helper()
	require.NoError(y, y.resource(kind).Delete(y.ctx, name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}))
}

// exists reports whether an object exists and is not being deleted.
func (y *testEnv) exists(kind, name string) bool {
	y.Helper()
	o, err := y.resource(kind).Get(y.ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false
	}
	require.NoError(y, err)
	return o.GetDeletionTimestamp() == nil
}

// runScan runs a scan and returns the time until the next one.
func (y *testEnv) runScan() time.Duration {
	y.Helper()
	result, err := y.Reconcile(y.ctx, reconcile.Request{})
	require.NoError(y, err)
	return result.RequeueAfter
}

// collectGarbage lets all unreferenced garbage be deleted.
func (y *testEnv) collectGarbage() {
	y.Helper()
	y.runScan()
	y.clock.Step(DefaultGrace)
	y.runScan()
}

const pod = "spec: {containers: [{name: c, image: c}]}"

// referrer returns an object of a kind with a reference to a Secret.
func referrer(kind, secret string) string {
	key, value := render.ReferenceAnnotation("Secret", secret)
	metadata := "metadata: {name: user, namespace: NS, annotations: {" + key + ": " + value + "}}"
	template := "template: {metadata: {labels: {a: b}}, " + pod + "}"
	job := "template: {spec: {restartPolicy: Never, containers: [{name: c, image: c}]}}"
	for _, r := range DefaultReferrers() {
		if r.Kind != kind {
			continue
		}
		spec := "spec: {selector: {matchLabels: {a: b}}, " + template + "}"
		switch kind {
		case "StatefulSet":
			spec = "spec: {serviceName: s, selector: {matchLabels: {a: b}}, " + template + "}"
		case "Job":
			spec = "spec: {" + job + "}"
		case "CronJob":
			spec = "spec: {schedule: '0 0 1 1 *', jobTemplate: {spec: {" + job + "}}}"
		case "Pod":
			spec = "spec: {serviceAccountName: default, automountServiceAccountToken: false, containers: [{name: c, image: c}]}"
		case "ManagedResource":
			spec = "spec: {secretRefs: [{name: other}]}"
		}
		return "{apiVersion: " + r.GroupVersion().String() + ", kind: " + kind + ", " + metadata + ", " + spec + "}"
	}
	return ""
}

// serviceAccount creates the account that pods need, as kube-controller-manager would.
func (y *testEnv) serviceAccount() {
	y.create("{apiVersion: v1, kind: ServiceAccount, metadata: {name: default, namespace: NS}}")
}

// TestReferrers: every kind protects its references until it is deleted. Prometheus is not served
// here.
func TestReferrers(t *testing.T) {
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob", "Pod", "ManagedResource"} {
		t.Run(kind, func(t *testing.T) {
			y := newTestEnv(t)
			y.serviceAccount()
			y.createGarbage("Secret", "used")
			// has the name of the used Secret, but is not the referenced object
			y.createGarbage("ConfigMap", "used")
			y.createGarbage("Secret", "unused")
			y.create("{apiVersion: v1, kind: Secret, metadata: {name: foreign, namespace: NS}}")
			y.create(referrer(kind, "used"))
			y.collectGarbage()
			assert.True(t, y.exists("Secret", "used"))
			assert.False(t, y.exists("Secret", "unused"))
			assert.False(t, y.exists("ConfigMap", "used"))
			assert.True(t, y.exists("Secret", "foreign"))

			y.patch(kind, "user", "metadata: {annotations: null}")
			y.collectGarbage()
			assert.False(t, y.exists("Secret", "used"))
			assert.True(t, y.exists("Secret", "foreign"))
			assert.EqualValues(t, 2, testutil.ToFloat64(y.metrics.deleted.WithLabelValues("secret")))
			assert.EqualValues(t, 1, testutil.ToFloat64(y.metrics.deleted.WithLabelValues("configmap")))
			assert.EqualValues(t, y.clock.Now().Unix(), int64(testutil.ToFloat64(y.metrics.lastSuccess)))
		})
	}
}

// TestMinimumAgeAndGrace: young and recently unreferenced objects stay, and the next scan is when
// one may be due.
func TestMinimumAgeAndGrace(t *testing.T) {
	y := newTestEnv(t)
	y.createGarbage("Secret", "one")
	y.clock.SetTime(time.Now())
	next := y.runScan()
	assert.InDelta(t, DefaultMinimumAge.Seconds(), next.Seconds(), 5)
	y.clock.Step(DefaultMinimumAge - 20*time.Second)
	y.runScan()
	assert.True(t, y.exists("Secret", "one"), "it is too young")
	y.create(referrer("ManagedResource", "one"))
	y.clock.Step(time.Hour)
	assert.Equal(t, DefaultInterval, y.runScan())
	y.clock.Step(time.Hour)
	y.remove("ManagedResource", "user")
	assert.Equal(t, DefaultGrace, y.runScan())
	assert.True(t, y.exists("Secret", "one"), "it lost its referrer only now, as far as anybody knows")
	y.clock.Step(DefaultGrace - time.Second)
	assert.Equal(t, time.Second, y.runScan())
	assert.True(t, y.exists("Secret", "one"))

	// A temporary reference restarts the time.
	y.create(referrer("ManagedResource", "one"))
	y.runScan()
	y.remove("ManagedResource", "user")
	y.clock.Step(time.Minute)
	assert.Equal(t, DefaultGrace, y.runScan())
	assert.True(t, y.exists("Secret", "one"))

	// A new object of the same name is another object.
	y.remove("Secret", "one")
	y.createGarbage("Secret", "one")
	y.clock.Step(DefaultGrace)
	y.runScan()
	assert.True(t, y.exists("Secret", "one"))
	y.clock.Step(DefaultGrace)
	y.runScan()
	assert.False(t, y.exists("Secret", "one"))
}

// TestReferenceWithoutAnnotation: an object that a spec names is in use, even without an
// annotation.
func TestReferenceWithoutAnnotation(t *testing.T) {
	for name, text := range map[string]string{
		"volume":        "{apiVersion: v1, kind: Pod, metadata: {name: user, namespace: NS}, spec: {automountServiceAccountToken: false, containers: [{name: c, image: c}], volumes: [{name: v, secret: {secretName: one}}]}}",
		"projection":    "{apiVersion: v1, kind: Pod, metadata: {name: user, namespace: NS}, spec: {automountServiceAccountToken: false, containers: [{name: c, image: c}], volumes: [{name: v, projected: {sources: [{secret: {name: one}}]}}]}}",
		"env":           "{apiVersion: v1, kind: Pod, metadata: {name: user, namespace: NS}, spec: {automountServiceAccountToken: false, containers: [{name: c, image: c, env: [{name: E, valueFrom: {secretKeyRef: {name: one, key: k}}}]}]}}",
		"init":          "{apiVersion: v1, kind: Pod, metadata: {name: user, namespace: NS}, spec: {automountServiceAccountToken: false, containers: [{name: c, image: c}], initContainers: [{name: d, image: d, envFrom: [{secretRef: {name: one}}]}]}}",
		"pull secret":   "{apiVersion: v1, kind: Pod, metadata: {name: user, namespace: NS}, spec: {automountServiceAccountToken: false, imagePullSecrets: [{name: one}], containers: [{name: c, image: c}]}}",
		"data Secret":   "{apiVersion: resources.gardener.cloud/v1alpha1, kind: ManagedResource, metadata: {name: user, namespace: NS}, spec: {secretRefs: [{name: one}]}}",
		"not scheduled": "{apiVersion: apps/v1, kind: Deployment, metadata: {name: user, namespace: NS}, spec: {replicas: 0, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: c}], volumes: [{name: v, secret: {secretName: one}}]}}}}",
	} {
		t.Run(name, func(t *testing.T) {
			y := newTestEnv(t)
			y.serviceAccount()
			y.createGarbage("Secret", "one")
			y.createGarbage("Secret", "two")
			user := y.create(text)
			y.collectGarbage()
			assert.True(t, y.exists("Secret", "one"))
			assert.False(t, y.exists("Secret", "two"))
			y.remove(user.GetKind(), "user")
			y.runScan()
			assert.False(t, y.exists("Secret", "one"))
		})
	}
}

// TestUnreadableReferrers: nothing is deleted while a possible referrer cannot be read reliably.
func TestUnreadableReferrers(t *testing.T) {
	status := func(code int, reason string) *http.Response {
		return httpResponse(code, fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d}`, reason, code))
	}
	suffix := func(path string, answer func() *http.Response) func(*http.Request) *http.Response {
		return func(r *http.Request) *http.Response {
			if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, path) {
				return answer()
			}
			return nil
		}
	}
	for name, disturb := range map[string]func(*http.Request) *http.Response{
		"forbidden":            suffix("/statefulsets", func() *http.Response { return status(403, "Forbidden") }),
		"unavailable":          suffix("/managedresources", func() *http.Response { return status(503, "ServiceUnavailable") }),
		"not found by a proxy": suffix("/managedresources", func() *http.Response { return httpResponse(404, "no route") }),
		"not found":            suffix("/managedresources", func() *http.Response { return status(404, "NotFound") }),
		"a kind unknown":       suffix("/apis/apps/v1", func() *http.Response { return status(404, "NotFound") }),
		"groups unknown":       suffix("/apis", func() *http.Response { return status(404, "NotFound") }),
		"groups not JSON":      suffix("/apis", func() *http.Response { return httpResponse(200, "<html>") }),
		"partial": suffix("/managedresources", func() *http.Response {
			return httpResponse(200, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"remainingItemCount":3},"items":[]}`)
		}),
		"second page": func(r *http.Request) *http.Response {
			if strings.HasSuffix(r.URL.Path, "/managedresources") && r.URL.Query().Get("continue") != "" {
				return status(500, "InternalError")
			}
			return nil
		},
		"always expired": func(r *http.Request) *http.Response {
			if r.URL.Query().Get("continue") != "" {
				return status(410, "Expired")
			}
			return nil
		},
		"right before deleting": func(r *http.Request) *http.Response {
			if strings.HasSuffix(r.URL.Path, "/pods") && !strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadata") {
				return status(500, "InternalError")
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			y := newTestEnv(t)
			y.createGarbage("Secret", "one")
			for i := range 3 {
				y.create(fmt.Sprintf("{apiVersion: resources.gardener.cloud/v1alpha1, kind: ManagedResource, metadata: {name: user-%d, namespace: NS}, spec: {secretRefs: [{name: other}]}}", i))
			}
			y.runScan()
			y.clock.Step(DefaultGrace)
			y.intercept = disturb
			_, err := y.Reconcile(y.ctx, reconcile.Request{})
			require.Error(t, err)
			assert.True(t, y.exists("Secret", "one"))
			assert.EqualValues(t, 1, testutil.ToFloat64(y.metrics.failures))
			y.intercept = nil
			y.runScan()
			assert.False(t, y.exists("Secret", "one"))
		})
	}
}

// TestKindNoLongerServed: the time restarts when a kind is no longer served, since the API server
// may only not have read its definition yet.
func TestKindNoLongerServed(t *testing.T) {
	y := newTestEnv(t)
	y.createGarbage("Secret", "one")
	y.runScan()
	y.clock.Step(DefaultGrace)
	all := y.Referrers
	y.Referrers = all[1:]
	assert.Equal(t, DefaultGrace, y.runScan())
	assert.True(t, y.exists("Secret", "one"))
	y.clock.Step(DefaultGrace)
	y.runScan()
	assert.False(t, y.exists("Secret", "one"))
}

// TestExpiredContinueToken: a list whose continue token expired is restarted, and every page
// counts.
func TestExpiredContinueToken(t *testing.T) {
	y := newTestEnv(t)
	for i := range 5 {
		y.createGarbage("ConfigMap", fmt.Sprintf("unused-%d", i))
		y.createGarbage("Secret", fmt.Sprintf("used-%d", i))
		y.create(strings.ReplaceAll(referrer("ManagedResource", fmt.Sprintf("used-%d", i)), "name: user,", fmt.Sprintf("name: user-%d,", i)))
	}
	var once sync.Once
	y.intercept = func(r *http.Request) (out *http.Response) {
		if r.URL.Query().Get("continue") != "" {
			once.Do(func() {
				out = httpResponse(410, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}`)
			})
		}
		return out
	}
	y.collectGarbage()
	for i := range 5 {
		assert.False(t, y.exists("ConfigMap", fmt.Sprintf("unused-%d", i)))
		assert.True(t, y.exists("Secret", fmt.Sprintf("used-%d", i)))
	}
}

// TestChangesBeforeDeletion: a new referrer between scan and deletion, or a change of the object,
// protects it.
func TestChangesBeforeDeletion(t *testing.T) {
	for name, meanwhile := range map[string]func(*testEnv){
		"referrer":       func(y *testEnv) { y.create(referrer("ManagedResource", "one")) },
		"changed":        func(y *testEnv) { y.patch("Secret", "one", "metadata: {labels: {a: b}}") },
		"label is gone":  func(y *testEnv) { y.patch("Secret", "one", "metadata: {labels: null}") },
		"another object": func(y *testEnv) { y.remove("Secret", "one"); y.createGarbage("Secret", "one") },
	} {
		t.Run(name, func(t *testing.T) {
			y := newTestEnv(t)
			y.createGarbage("Secret", "one")
			y.runScan()
			y.clock.Step(DefaultGrace)
			var once sync.Once
			y.intercept = func(r *http.Request) *http.Response {
				if strings.HasSuffix(r.URL.Path, "/deployments") && !strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadata") {
					once.Do(func() { meanwhile(y) })
				}
				return nil
			}
			y.runScan()
			assert.True(t, y.exists("Secret", "one"))
			assert.Zero(t, testutil.ToFloat64(y.metrics.deleted.WithLabelValues("secret")))
		})
	}
}

// TestFailedDeletion: a failed deletion is reported and does not affect other objects.
func TestFailedDeletion(t *testing.T) {
	y := newTestEnv(t)
	for _, name := range []string{"one", "two", "three"} {
		y.createGarbage("Secret", name)
	}
	y.runScan()
	y.clock.Step(DefaultGrace)
	y.intercept = func(r *http.Request) *http.Response {
		if r.Method == http.MethodDelete && strings.HasSuffix(r.URL.Path, "/two") {
			return httpResponse(500, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"hook says no","reason":"InternalError","code":500}`)
		}
		return nil
	}
	_, err := y.Reconcile(y.ctx, reconcile.Request{})
	require.ErrorContains(t, err, "deleting the secret "+y.ns+"/two: hook says no")
	assert.False(t, y.exists("Secret", "one"))
	assert.True(t, y.exists("Secret", "two"))
	assert.False(t, y.exists("Secret", "three"))
	y.intercept = nil
	y.runScan()
	assert.False(t, y.exists("Secret", "two"))
}

// TestScanIntervals: the collector scans when it starts, and then according to the clock.
func TestScanIntervals(t *testing.T) {
	y := newTestEnv(t)
	y.createGarbage("ConfigMap", "one")
	mgr, err := manager.New(server.config, manager.Options{
		Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0", Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	require.NoError(t, err)
	require.NoError(t, Add(mgr, Options{Namespaces: []string{y.ns}, Clock: y.clock, Metrics: y.options.Metrics}))
	ctx, cancel := context.WithCancel(y.ctx)
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	require.Eventually(t, func() bool { return testutil.ToFloat64(y.metrics.lastSuccess) > 0 }, 20*time.Second, 20*time.Millisecond)
	assert.True(t, y.exists("ConfigMap", "one"))
	require.Eventually(t, func() bool {
		y.clock.Step(DefaultGrace / 4)
		return !y.exists("ConfigMap", "one")
	}, 20*time.Second, 50*time.Millisecond)
	cancel()
	if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
		require.NoError(t, err)
	}
}
