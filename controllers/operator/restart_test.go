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

// TestEndsWhileItFetches: a terminating operator does not wait for a hanging server, and the next
// one continues.
func TestEndsWhileItFetches(t *testing.T) {
	w := newWorld(t)
	s := w.served("fetching")
	server := gittest.ServeHTTP(t, s.bare.Root)
	waiting, release := hang(t, server, http.MethodPost)
	stop := w.start()
	w.follow(s, repositoryURL(server.URL), func(spec *landscapev1alpha1.LandscapeSpec) {
		spec.Source.Timeout = &metav1.Duration{Duration: 10 * time.Minute}
	})
	w.eventually("it fetches", func() bool { return waiting.Load() > 0 })
	began := time.Now()
	stop()
	assert.Less(t, time.Since(began), 20*time.Second)
	release()
	w.start()
	w.applied(s, "", "1")
}

// TestKilledWhileItApplies: an operator that dies between two requests, without a status write or a
// lease release, leaves a sync that the next one completes.
func TestKilledWhileItApplies(t *testing.T) {
	const count = 200
	w := newWorld(t)
	s := w.served("killed")
	server := gittest.ServeHTTP(t, s.bare.Root)
	files := map[string]string{}
	for i := range count {
		name := fmt.Sprintf("many-%d", i)
		files[name+".yaml"] = s.configMap(name, "x")
	}
	next := s.push("many", files)
	p := newProxy(t)
	writes := 0
	p.deadly = func(r request) bool {
		if r.method == http.MethodPatch && strings.Contains(r.uri, "/configmaps/many") {
			writes++
		}
		return writes > count/2
	}
	w.dies = true
	stop := w.start(func(r *Role) { r.Config = p.config() })
	w.follow(s, repositoryURL(server.URL))
	select {
	case <-p.dead:
	case <-time.After(time.Minute):
		require.Fail(t, "it does not come so far")
	}
	stop()
	l := w.get(s.name)
	assert.Empty(t, l.Status.LastAppliedRevision)
	require.Len(t, l.Status.History, 1)
	assert.Nil(t, l.Status.History[0].EndTime, "nobody could write that it ended")
	there := w.many()
	assert.Positive(t, there)
	assert.Less(t, there, count)

	w.unlock()
	w.start()
	l = w.applied(s, next, "1")
	assert.Equal(t, count, w.many())
	require.GreaterOrEqual(t, len(l.Status.History), 2)
	assert.Equal(t, landscapev1alpha1.SyncInterrupted, l.Status.History[1].Result)
	// The next operator owns the earlier objects.
	s.push("another", map[string]string{"many-0.yaml": s.configMap("many-0", "y")})
	w.eventually("the object is changed", func() bool { return w.value("many-0") == "y" })
}

// many counts the many objects.
func (w *world) many() int {
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

// hooked adds a receiver to a Landscape.
func (w *world) hooked(spec *landscapev1alpha1.LandscapeSpec) {
	spec.Source.Interval = &metav1.Duration{Duration: time.Hour}
	spec.Receivers = []landscapev1alpha1.Receiver{{Name: "push", Type: landscapev1alpha1.ReceiverHMAC, SecretRef: landscapev1alpha1.LocalSecretReference{Name: "hook"}}}
}

func (w *world) asks() *receiver.Client {
	return &receiver.Client{URL: w.receivers, Token: []byte("hook-token"), HTTP: &http.Client{}, Clock: clock.RealClock{}}
}

// TestFlood: a thousand authentic requests at once are one sync and a handful of requests to the
// source.
func TestFlood(t *testing.T) {
	w := newWorld(t)
	s := w.served("flood")
	server := gittest.ServeHTTP(t, s.bare.Root)
	w.secret("hook", map[string]string{"token": "hook-token"})
	w.start()
	w.follow(s, repositoryURL(server.URL), w.hooked)
	w.applied(s, "", "1")
	server.Reset()
	next := s.set("2")
	ask := w.asks()
	done := make(chan int, 8)
	for worker := range 8 {
		go func() {
			taken := 0
			for i := range 125 {
				push := receiver.Push{Ref: "refs/heads/main", Commit: next, By: fmt.Sprintf("ada %d %d", worker, i)}
				if _, _, err := ask.Ask(context.Background(), w.namespace+"/"+s.name+"/push", push, nil); err == nil {
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
	l := w.applied(s, next, "2")
	assert.Len(t, l.Status.History, 2)
	requests, _ := server.Reset()
	assert.LessOrEqual(t, len(requests), 20, requests)
}

// TestFollow: a push gets its final result: applied, invalid or held.
func TestFollow(t *testing.T) {
	w := newWorld(t)
	s := w.served("follow")
	server := gittest.ServeHTTP(t, s.bare.Root)
	w.secret("hook", map[string]string{"token": "hook-token"})
	files := map[string]string{}
	for i := range 6 {
		name := fmt.Sprintf("f%d", i)
		files[name+".yaml"] = s.configMap(name, "x")
	}
	s.push("more", files)
	w.start()
	w.follow(s, repositoryURL(server.URL), w.hooked, func(spec *landscapev1alpha1.LandscapeSpec) {
		most := int32(2)
		spec.DeletionGate = &landscapev1alpha1.DeletionGate{MaxDeletions: &most}
	})
	w.applied(s, "", "1")
	ask := func(commit string) receiver.Progress {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		last, followed, err := w.asks().Ask(ctx, w.namespace+"/"+s.name+"/push", receiver.Push{Ref: "refs/heads/main", Commit: commit, By: fmt.Sprint(time.Now().UnixNano())}, func(receiver.Progress) {})
		require.NoError(t, err)
		assert.True(t, followed)
		assert.True(t, last.Done)
		return last
	}
	good := s.set("2")
	last := ask(good)
	assert.Equal(t, []string{receiver.PhaseApplied, ""}, []string{last.Phase, last.Err}, last.Message)
	assert.Equal(t, "2", w.value(s.name))
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
	assert.Equal(t, "x", w.value("f1"))
}

// TestTwoOwners: the first Landscape keeps an object, the other one reports the conflict, and
// nobody writes.
func TestTwoOwners(t *testing.T) {
	w := newWorld(t)
	first, second := w.served("first"), w.served("second")
	clusters := server.config
	server, other := gittest.ServeHTTP(t, first.bare.Root), gittest.ServeHTTP(t, second.bare.Root)
	often := func(spec *landscapev1alpha1.LandscapeSpec) { spec.Interval = &metav1.Duration{Duration: time.Second} }
	w.start()
	first.push("shared", map[string]string{"shared.yaml": first.configMap("shared", "first")})
	w.follow(first, repositoryURL(server.URL), often)
	w.applied(first, "", "1")
	second.push("shared", map[string]string{"shared.yaml": second.configMap("shared", "second")})
	w.follow(second, repositoryURL(other.URL), often)
	l := w.ready(second.name, "False ApplyFailed")
	assert.Contains(t, readiness(l), "landscape "+first.name+" declares this object as well")
	version := func() string {
		cm := &corev1.ConfigMap{}
		require.NoError(t, w.client.Get(context.Background(), client.ObjectKey{Namespace: w.namespace, Name: "shared"}, cm))
		return cm.ResourceVersion
	}
	before := version()
	require.Never(t, func() bool { return version() != before }, 5*time.Second, 100*time.Millisecond, "somebody writes")
	assert.Equal(t, "first", w.value("shared"))
	w.applied(first, "", "1")
	assert.True(t, strings.HasPrefix(readiness(w.get(second.name)), "False ApplyFailed"))

	tree, err := Tree(t.Context(), clusters, time.Now())
	require.NoError(t, err)
	owned := map[string]string{}
	for _, o := range tree {
		for _, b := range o.Bundles {
			for _, object := range b.Objects {
				if object.Object == "ConfigMap "+w.namespace+"/shared" {
					owned[o.Owner] = object.OwnedBy
					assert.Empty(t, object.AlsoOf, o.Owner)
				}
			}
		}
	}
	assert.Equal(t, map[string]string{"landscape." + first.name: "", "landscape." + second.name: "landscape." + first.name}, owned, "the inventory of the second one lists it, too")
}
