// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/source/gittest"
	"github.com/pergola-dev/pergola/source/receiver"
)

// TestStopDuringFetch: a terminating operator does not wait for a hanging server, and the next
// one continues.
func TestStopDuringFetch(t *testing.T) {
	w := newTestEnv(t)
	s := w.newServedRepository("fetching")
	server := gittest.ServeHTTP(t, s.server.Root)
	waiting, release := hangServer(t, server, http.MethodPost)
	stop := w.startOperator()
	w.followServed(s, repositoryURL(server.URL), func(spec *landscapev1alpha1.LandscapeSpec) {
		spec.Source.Timeout = &metav1.Duration{Duration: 10 * time.Minute}
	})
	w.eventually("it fetches", func() bool { return waiting.Load() > 0 })
	began := time.Now()
	stop()
	assert.Less(t, time.Since(began), 20*time.Second)
	release()
	w.startOperator()
	w.awaitApplied(s, "", "1")
}

// TestCrashDuringApply: an operator that dies between two requests, without a status write or a
// lease release, leaves a sync that the next one completes.
func TestCrashDuringApply(t *testing.T) {
	const count = 200
	w := newTestEnv(t)
	s := w.newServedRepository("killed")
	server := gittest.ServeHTTP(t, s.server.Root)
	files := map[string]string{}
	for i := range count {
		name := fmt.Sprintf("many-%d", i)
		files[name+".yaml"] = s.configMap(name, "x")
	}
	next := s.push("many", files)
	p := newProxy(t)
	writes := 0
	p.isLastRequest = func(r recordedRequest) bool {
		if r.method == http.MethodPatch && strings.Contains(r.uri, "/configmaps/many") {
			writes++
		}
		return writes > count/2
	}
	w.mayFail = true
	stop := w.startOperator(func(r *Role) { r.Config = p.clientConfig() })
	w.followServed(s, repositoryURL(server.URL))
	select {
	case <-p.killed:
	case <-time.After(time.Minute):
		require.Fail(t, "it does not come so far")
	}
	stop()
	l := w.getLandscape(s.name)
	assert.Empty(t, l.Status.LastAppliedRevision)
	require.Len(t, l.Status.History, 1)
	assert.Nil(t, l.Status.History[0].EndTime, "nobody could write that it ended")
	there := w.countManyObjects()
	assert.Positive(t, there)
	assert.Less(t, there, count)

	w.deleteLease()
	w.startOperator()
	l = w.awaitApplied(s, next, "1")
	assert.Equal(t, count, w.countManyObjects())
	require.GreaterOrEqual(t, len(l.Status.History), 2)
	assert.Equal(t, landscapev1alpha1.SyncInterrupted, l.Status.History[1].Result)
	// The next operator owns the earlier objects.
	s.push("another", map[string]string{"many-0.yaml": s.configMap("many-0", "y")})
	w.eventually("the object is changed", func() bool { return w.configMapValue("many-0") == "y" })
}

// countManyObjects counts the many objects.
func (w *testEnv) countManyObjects() int {
	w.Helper()
	list := &corev1.ConfigMapList{}
	require.NoError(w, w.client.List(context.Background(), list, client.InNamespace(w.namespace)))
	n := 0
	for _, o := range list.Items {
		if strings.HasPrefix(o.Name, "many-") {
			n++
		}
	}
	return n
}

// addReceiver adds a receiver to a Landscape.
func (w *testEnv) addReceiver(spec *landscapev1alpha1.LandscapeSpec) {
	spec.Source.Interval = &metav1.Duration{Duration: time.Hour}
	spec.Receivers = []landscapev1alpha1.Receiver{{Name: "push", Type: landscapev1alpha1.ReceiverHMAC, SecretRef: landscapev1alpha1.LocalSecretReference{Name: "hook"}}}
}

func (w *testEnv) receiverClient() *receiver.Client {
	return &receiver.Client{URL: w.receiverAddress, Token: []byte("hook-token"), HTTP: &http.Client{}, Clock: clock.RealClock{}}
}

// TestRequestFloodIsOneSync: a thousand authentic requests at once are one sync and a handful of
// requests to the source.
func TestRequestFloodIsOneSync(t *testing.T) {
	w := newTestEnv(t)
	s := w.newServedRepository("flood")
	server := gittest.ServeHTTP(t, s.server.Root)
	w.createSecret("hook", map[string]string{"token": "hook-token"})
	w.startOperator()
	w.followServed(s, repositoryURL(server.URL), w.addReceiver)
	w.awaitApplied(s, "", "1")
	server.ResetCounters()
	next := s.pushValue("2")
	ask := w.receiverClient()
	done := make(chan int, 8)
	for worker := range 8 {
		go func() {
			taken := 0
			for i := range 125 {
				push := receiver.Push{Ref: "refs/heads/main", Commit: next, Pusher: fmt.Sprintf("ada %d %d", worker, i)}
				if _, _, err := ask.RequestSync(context.Background(), w.namespace+"/"+s.name+"/push", push, nil); err == nil {
					taken++
				}
			}
			done <- taken
		}()
	}
	taken := 0
	for range 8 {
		taken += <-done
	}
	assert.Positive(t, taken)
	l := w.awaitApplied(s, next, "2")
	assert.Len(t, l.Status.History, 2)
	requests, _ := server.ResetCounters()
	assert.LessOrEqual(t, len(requests), 20, requests)
}

// TestFollowPush: a push gets its final result: applied, invalid or held.
func TestFollowPush(t *testing.T) {
	w := newTestEnv(t)
	s := w.newServedRepository("follow")
	server := gittest.ServeHTTP(t, s.server.Root)
	w.createSecret("hook", map[string]string{"token": "hook-token"})
	files := map[string]string{}
	for i := range 6 {
		name := fmt.Sprintf("f%d", i)
		files[name+".yaml"] = s.configMap(name, "x")
	}
	s.push("more", files)
	w.startOperator()
	w.followServed(s, repositoryURL(server.URL), w.addReceiver, func(spec *landscapev1alpha1.LandscapeSpec) {
		most := int32(2)
		spec.DeletionGate = &landscapev1alpha1.DeletionGate{MaxDeletions: &most}
	})
	w.awaitApplied(s, "", "1")
	ask := func(commit string) receiver.Progress {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		last, followed, err := w.receiverClient().RequestSync(ctx, w.namespace+"/"+s.name+"/push", receiver.Push{Ref: "refs/heads/main", Commit: commit, Pusher: fmt.Sprint(time.Now().UnixNano())}, func(receiver.Progress) {})
		require.NoError(t, err)
		assert.True(t, followed)
		assert.True(t, last.Done)
		return last
	}
	good := s.pushValue("2")
	last := ask(good)
	assert.Equal(t, []string{receiver.PhaseApplied, ""}, []string{last.Phase, last.Err}, last.Message)
	assert.Equal(t, "2", w.configMapValue(s.name))
	assert.Equal(t, receiver.PhaseApplied, ask(good).Phase, "once more: it is there already")

	last = ask(s.push("break", map[string]string{"a.yaml": "a: b: c\n"}))
	assert.Equal(t, receiver.PhaseFailed, last.Phase)
	assert.Contains(t, last.Err, "a.yaml")

	for name := range files {
		files[name] = ""
	}
	files["a.yaml"] = s.configMap(s.name, "3")
	last = ask(s.push("fewer", files))
	assert.Equal(t, receiver.PhaseHeld, last.Phase)
	assert.Contains(t, last.Message, "6 deletions and recreations wait for an approval")
	assert.Equal(t, "x", w.configMapValue("f1"))
}

// TestTwoLandscapesDeclareOneObject: the first Landscape keeps an object, the other one reports the
// conflict, and no one writes.
func TestTwoLandscapesDeclareOneObject(t *testing.T) {
	w := newTestEnv(t)
	first, second := w.newServedRepository("first"), w.newServedRepository("second")
	clusters := testServer.config
	server, other := gittest.ServeHTTP(t, first.server.Root), gittest.ServeHTTP(t, second.server.Root)
	often := func(spec *landscapev1alpha1.LandscapeSpec) { spec.Interval = &metav1.Duration{Duration: time.Second} }
	w.startOperator()
	first.push("shared", map[string]string{"shared.yaml": first.configMap("shared", "first")})
	w.followServed(first, repositoryURL(server.URL), often)
	w.awaitApplied(first, "", "1")
	second.push("shared", map[string]string{"shared.yaml": second.configMap("shared", "second")})
	w.followServed(second, repositoryURL(other.URL), often)
	l := w.awaitReady(second.name, "False ApplyFailed")
	assert.Contains(t, readyText(l), "landscape "+first.name+" declares this object as well")
	version := func() string {
		cm := &corev1.ConfigMap{}
		require.NoError(t, w.client.Get(context.Background(), client.ObjectKey{Namespace: w.namespace, Name: "shared"}, cm))
		return cm.ResourceVersion
	}
	before := version()
	require.Never(t, func() bool { return version() != before }, 5*time.Second, 100*time.Millisecond, "somebody writes")
	assert.Equal(t, "first", w.configMapValue("shared"))
	w.awaitApplied(first, "", "1")
	assert.True(t, strings.HasPrefix(readyText(w.getLandscape(second.name)), "False ApplyFailed"))

	tree, err := Tree(t.Context(), clusters, time.Now())
	require.NoError(t, err)
	owned := map[string]string{}
	for _, o := range tree {
		for _, b := range o.Bundles {
			for _, object := range b.Objects {
				if object.Object == "ConfigMap "+w.namespace+"/shared" {
					owned[o.Owner] = object.OwnedBy
					assert.Empty(t, object.OtherOwners, o.Owner)
				}
			}
		}
	}
	assert.Equal(t, map[string]string{"landscape." + first.name: "", "landscape." + second.name: "landscape." + first.name}, owned, "the inventory of the second one lists it, too")
}
