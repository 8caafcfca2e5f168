// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/conventions"
	"github.com/pergola-dev/pergola/render"
)

// severedConnection is the connection of a killed process: only the first writes get to the server.
type severedConnection struct {
	next            http.RoundTripper
	remainingWrites atomic.Int64
	writes          atomic.Int64
}

func (l *severedConnection) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodGet {
		if l.remainingWrites.Add(-1) < 0 {
			if req.Body != nil {
				_ = req.Body.Close()
			}
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
		}
		l.writes.Add(1)
	}
	return l.next.RoundTrip(req)
}

// requestTest is a control plane with extension objects, and consecutive processes that request
// their reconciliation.
type requestTest struct {
	*testSite
	clock *clocktesting.FakeClock
	// spec, secret and shoot are the declarations for the processes.
	spec, secret, shoot string
	requested           *RequestedOperation
}

func newRequestTest(t *testing.T) *requestTest {
	a := &requestTest{testSite: newSite(t), clock: clocktesting.NewFakeClock(time.Now().Truncate(time.Second)), spec: "eu-1", secret: "YQ==", shoot: "spec: {hibernation: {enabled: false}}"}
	t.Cleanup(func() {
		for _, kind := range []string{"infrastructures", "networks"} {
			_ = a.extension(kind).Delete(a.ctx, "shoot", metav1.DeleteOptions{})
		}
	})
	return a
}

func (a *requestTest) extension(plural string) dynamic.ResourceInterface {
	return a.api.Resource(schema.GroupVersionResource{Group: "extensions.gardener.cloud", Version: "v1alpha1", Resource: plural}).Namespace(a.ns)
}

// runProcess applies once, and is killed after a number of writes. It returns the number of writes.
func (a *requestTest) runProcess(writes int) (made int64, err error) {
	a.Helper()
	line := &severedConnection{}
	line.remainingWrites.Store(int64(writes))
	config := rest.CopyConfig(server.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { line.next = next; return line })
	cluster, err := conventions.NewCluster("local", config, apply.ClusterOptions{Cooldown: time.Millisecond})
	require.NoError(a, err)
	defer cluster.Close()
	a.run.owner.Local, a.run.owner.ObjectCluster = cluster, cluster
	work := &run{owner: a.run.owner, report: &Report{RequestedOperation: a.requested}, startTime: a.clock.Now(), reconciler: &Reconciler{
		Engine: conventions.NewEngine(apply.Options{}), Clock: a.clock, Gate: a.run.reconciler.Gate}}
	first := a.bundle(true, a.object("{apiVersion: v1, kind: Secret, metadata: {name: cloudprovider, namespace: NS}, data: {key: "+a.secret+"}}"),
		a.object("{apiVersion: extensions.gardener.cloud/v1alpha1, kind: Cluster, metadata: {name: NS}, spec: {cloudProfile: {spec: {}}, seed: {spec: {}, status: {phase: x}}, shoot: {"+a.shoot+"}}}"))
	second := a.bundle(true, a.object("{apiVersion: extensions.gardener.cloud/v1alpha1, kind: Infrastructure, metadata: {name: shoot, namespace: NS}, spec: {type: local, region: "+a.spec+", secretRef: {name: cloudprovider, namespace: NS}}}"),
		a.object("{apiVersion: extensions.gardener.cloud/v1alpha1, kind: Network, metadata: {name: shoot, namespace: NS}, spec: {type: local, podCIDR: 10.0.0.0/16, serviceCIDR: 10.1.0.0/16}}"))
	second.Name = "extensions"
	a.run.owner.state.bundles = []render.Bundle{first, second}
	for _, b := range a.run.owner.state.bundles {
		if _, err := work.applyBundle(a.ctx, b); err != nil {
			return line.writes.Load(), err
		}
	}
	return line.writes.Load(), nil
}

// answerRequests returns the resources with a pending request, and answers them with answer.
func (a *requestTest) answerRequests(answer func(live *unstructured.Unstructured) string) (out []string) {
	a.Helper()
	for _, plural := range []string{"infrastructures", "networks"} {
		live, err := a.extension(plural).Get(a.ctx, "shoot", metav1.GetOptions{})
		require.NoError(a, err)
		if live.GetAnnotations()[annotationOperation] == "" {
			continue
		}
		assert.NotEmpty(a, live.GetAnnotations()[annotationTimestamp])
		out = append(out, plural)
		if answer == nil {
			continue
		}
		_, err = a.extension(plural).Patch(a.ctx, "shoot", types.MergePatchType, []byte(`{"metadata":{"annotations":{"gardener.cloud/operation":null}}}`), metav1.PatchOptions{FieldManager: "extension"})
		require.NoError(a, err)
		if status := answer(live); status != "" {
			_, err = a.extension(plural).Patch(a.ctx, "shoot", types.MergePatchType, []byte(status), metav1.PatchOptions{FieldManager: "extension"}, "status")
			require.NoError(a, err)
		}
	}
	return out
}

func (a *requestTest) statusAnswer(state string, behind int64) func(*unstructured.Unstructured) string {
	return func(live *unstructured.Unstructured) string {
		return fmt.Sprintf(`{"status":{"observedGeneration":%d,"lastError":null,"lastOperation":{"type":"Reconcile","state":%q,"progress":50,"description":"played","lastUpdateTime":%q}}}`,
			live.GetGeneration()-behind, state, a.clock.Now().UTC().Format(time.RFC3339))
	}
}

func (a *requestTest) apply() {
	a.Helper()
	_, err := a.runProcess(1000)
	require.NoError(a, err)
}

// TestRequestsSurviveTheirProcess kills a process after each of its writes, for each reason to
// request. The next process makes the missing requests.
func TestRequestsSurviveTheirProcess(t *testing.T) {
	both := []string{"infrastructures", "networks"}
	for name, c := range map[string]struct {
		change func(*requestTest)
		want   []string
	}{
		"made":                    {nil, both},
		"specification":           {func(a *requestTest) { a.spec = "eu-2" }, []string{"infrastructures"}},
		"credentials":             {func(a *requestTest) { a.secret = "Yg==" }, []string{"infrastructures"}},
		"hibernation":             {func(a *requestTest) { a.shoot = "spec: {hibernation: {enabled: true}}" }, both},
		"version of Kubernetes":   {func(a *requestTest) { a.shoot = "spec: {hibernation: {enabled: false}, kubernetes: {version: 1.36.1}}" }, both},
		"annotation of the Shoot": {func(a *requestTest) { a.shoot += ", metadata: {annotations: {a.example/b: c}}" }, both},
		"label of the Shoot":      {func(a *requestTest) { a.shoot += ", metadata: {labels: {a: b}}" }, both},
		"rotation of credentials": {func(a *requestTest) {
			a.shoot += ", status: {credentials: {rotation: {sshKeypair: {lastInitiationTime: x}}}}"
		}, both},
		"both at once":              {func(a *requestTest) { a.spec = "eu-2"; a.shoot = "spec: {}" }, both},
		"a status that tells only":  {func(a *requestTest) { a.shoot += ", status: {observedGeneration: 7, conditions: [{type: a}]}" }, nil},
		"an operation of the Shoot": {func(a *requestTest) { a.shoot += ", metadata: {annotations: {gardener.cloud/operation: reconcile}}" }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for n := 0; ; n++ {
				a := newRequestTest(t)
				if c.change != nil {
					a.apply()
					require.Equal(t, both, a.answerRequests(a.statusAnswer("Succeeded", 0)))
					a.clock.Step(time.Minute)
					c.change(a)
				}
				made, err := a.runProcess(n)
				a.clock.Step(time.Minute)
				a.apply()
				assert.Equal(t, c.want, a.answerRequests(a.statusAnswer("Succeeded", 0)), "killed after %d writes", n)
				again, aerr := a.runProcess(1000)
				require.NoError(t, aerr)
				assert.Zero(t, again, "what was answered is not asked for again, killed after %d writes", n)
				if err == nil {
					assert.Less(t, made, int64(n+1))
					return
				}
				require.Less(t, n, 40, "it never gets through: %v", err)
			}
		})
	}
}

// TestRequestsAreRepeated checks that requests are repeated until the extension answers the
// timestamp.
func TestRequestsAreRepeated(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(*requestTest) func(*unstructured.Unstructured) string
		later  time.Duration
		want   bool
	}{
		"answered":            {func(a *requestTest) func(*unstructured.Unstructured) string { return a.statusAnswer("Succeeded", 0) }, time.Minute, false},
		"answered, a day ago": {func(a *requestTest) func(*unstructured.Unstructured) string { return a.statusAnswer("Succeeded", 0) }, 25 * time.Hour, true},
		"taken up, and nothing said": {func(*requestTest) func(*unstructured.Unstructured) string {
			return func(*unstructured.Unstructured) string { return "" }
		}, time.Minute, true},
		"answered for an older generation": {func(a *requestTest) func(*unstructured.Unstructured) string { return a.statusAnswer("Succeeded", 1) }, time.Minute, true},
		"answered with an error":           {func(a *requestTest) func(*unstructured.Unstructured) string { return a.statusAnswer("Error", 0) }, time.Minute, true},
		"at work":                          {func(a *requestTest) func(*unstructured.Unstructured) string { return a.statusAnswer("Processing", 0) }, time.Minute, false},
		"at work for ever":                 {func(a *requestTest) func(*unstructured.Unstructured) string { return a.statusAnswer("Processing", 0) }, time.Hour, true},
		"not taken up":                     {nil, time.Minute, true},
		"answered before the request": {func(a *requestTest) func(*unstructured.Unstructured) string {
			return func(live *unstructured.Unstructured) string {
				return strings.Replace(a.statusAnswer("Succeeded", 0)(live), a.clock.Now().UTC().Format(time.RFC3339), "2020-01-01T00:00:00Z", 1)
			}
		}, time.Minute, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newRequestTest(t)
			a.apply()
			var answer func(*unstructured.Unstructured) string
			if c.answer != nil {
				answer = c.answer(a)
			}
			require.Len(t, a.answerRequests(answer), 2)
			a.clock.Step(c.later)
			a.apply()
			assert.Equal(t, c.want, len(a.answerRequests(nil)) > 0)
		})
	}
}

// TestRequestsForAnOwner checks that a request for the owner requests all extensions once per
// reconciliation, and overwrites no other operation.
func TestRequestsForAnOwner(t *testing.T) {
	a := newRequestTest(t)
	a.apply()
	require.Len(t, a.answerRequests(a.statusAnswer("Succeeded", 0)), 2)
	a.clock.Step(time.Minute)
	a.requested = &RequestedOperation{Operation: "reconcile"}
	a.apply()
	require.Len(t, a.answerRequests(a.statusAnswer("Succeeded", 0)), 2)

	_, err := a.extension("networks").Patch(a.ctx, "shoot", types.MergePatchType, []byte(`{"metadata":{"annotations":{"gardener.cloud/operation":"wait-for-state"}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	a.clock.Step(time.Minute)
	a.shoot = "spec: {hibernation: {enabled: true}}"
	a.apply()
	live, err := a.extension("networks").Get(a.ctx, "shoot", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, "wait-for-state", live.GetAnnotations()[annotationOperation])
}

// TestRequestsAreRepeatedWhileAStepWaits checks that a waiting step repeats lost requests, but not
// those of failed extensions, which retry.
func TestRequestsAreRepeatedWhileAStepWaits(t *testing.T) {
	for state, want := range map[string]bool{"": true, "Succeeded": true, "Error": false, "Processing": false} {
		t.Run("state "+state, func(t *testing.T) {
			a := newRequestTest(t)
			a.apply()
			a.answerRequests(func(live *unstructured.Unstructured) string {
				if state == "" {
					return ""
				}
				return a.statusAnswer(state, 1)(live)
			})
			cluster, err := conventions.NewCluster("local", server.config, apply.ClusterOptions{})
			require.NoError(t, err)
			defer cluster.Close()
			ref := apply.Ref{APIVersion: "extensions.gardener.cloud/v1alpha1", Kind: "Network", Namespace: a.ns, Name: "shoot"}
			work := &run{owner: a.run.owner, report: &Report{}, reconciler: &Reconciler{Clock: a.clock}}
			waits := []waiter{{cluster: cluster, refs: []apply.Ref{ref}, requestTimestamps: map[apply.Ref]string{}}}
			require.NoError(t, work.repeatRequests(a.ctx, waits))
			assert.Empty(t, a.answerRequests(nil), "not at once")
			a.clock.Step(repeatInterval)
			require.NoError(t, work.repeatRequests(a.ctx, waits))
			assert.Equal(t, want, len(a.answerRequests(nil)) == 1)
			assert.Equal(t, want, waits[0].requestTimestamps[ref] != "")
		})
	}
}
