// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
)

// follower reads a followed list through a connection that counts requests and may answer watches
// itself.
type follower struct {
	*fixture
	c              *Cluster
	clock          *clocktesting.FakeClock
	lists, watches atomic.Int64
	answer         atomic.Pointer[string] // Status for watches; nil lets the server answer
}

type watchRoundTripper func(*http.Request) (*http.Response, error)

func (f watchRoundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func newFollower(t *testing.T) *follower {
	f := &follower{fixture: newFixture(t), clock: clocktesting.NewFakeClock(time.Now())}
	config := rest.CopyConfig(server.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return watchRoundTripper(func(r *http.Request) (*http.Response, error) {
			if !strings.HasSuffix(r.URL.Path, "/configmaps") {
				return next.RoundTrip(r)
			}
			if verbOf(r) != "watch" {
				f.lists.Add(1)
				return next.RoundTrip(r)
			}
			f.watches.Add(1)
			answer := f.answer.Load()
			if answer == nil {
				return next.RoundTrip(r)
			}
			code, body := http.StatusForbidden, *answer
			if strings.Contains(body, "Expired") {
				f.answer.Store(nil) // only once: the watch after the new list reaches the server
				code = http.StatusGone
			}
			w := &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Request: r, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
			w.Body = readCloser{strings.NewReader(body)}
			return w, nil
		})
	})
	var err error
	f.c, err = newCluster("followed", config, ClusterOptions{Clock: f.clock})
	require.NoError(t, err)
	t.Cleanup(f.c.Close)
	return f
}

type readCloser struct{ *strings.Reader }

func (readCloser) Close() error { return nil }

func (f *follower) read(keep string) map[string]*unstructured.Unstructured {
	f.Helper()
	found, err := f.c.Follow(f.ctx, FollowedList{Resource: corev1.SchemeGroupVersion.WithResource("configmaps"), Namespace: f.ns, Selector: "mine!=no", Fields: keep})
	require.NoError(f, err)
	out := map[string]*unstructured.Unstructured{}
	for _, o := range found {
		out[o.GetName()] = o
	}
	return out
}

const watchForbidden = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"no"}`

// TestFollow: a second read makes no request, has all changes since, and only the requested fields.
// A list without readers ends.
func TestFollow(t *testing.T) {
	f := newFollower(t)
	f.create(f.configMap("a", "x"))
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() { assert.Contains(t, f.read("data"), "a") })
	}
	group.Wait()
	assert.Empty(t, f.read("data")["a"].GetManagedFields())
	assert.Equal(t, map[string]any{"key": "x"}, f.read("data")["a"].Object["data"])
	f.eventually("the watch is on", func() bool { return f.watches.Load() == 1 })

	f.create(f.configMap("b", "x"))
	f.eventually("an object that comes", func() bool { return f.read("data")["b"] != nil })
	_, err := f.resource(f.configMap("a", "")).Patch(f.ctx, "a", types.MergePatchType, []byte(`{"metadata":{"labels":{"mine":"no"}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	f.eventually("an object that the selector leaves out from now on", func() bool { return f.read("data")["a"] == nil })
	require.NoError(t, f.resource(f.configMap("b", "")).Delete(f.ctx, "b", metav1.DeleteOptions{}))
	f.eventually("an object that goes", func() bool { return f.read("data")["b"] == nil })
	f.clock.Step(idleTimeout - time.Second)
	f.read("data")
	assert.EqualValues(t, 1, f.lists.Load())
	assert.EqualValues(t, 1, f.watches.Load())

	f.create(f.configMap("c", "x"))
	small := f.read("immutable")["c"]
	require.NotNil(t, small)
	assert.NotContains(t, small.Object, "data")
	f.eventually("lists that nobody reads end", func() bool {
		f.clock.Step(idleTimeout)
		f.c.mu.Lock()
		defer f.c.mu.Unlock()
		return len(f.c.followedLists) == 0
	})
	f.read("data")
	assert.EqualValues(t, 3, f.lists.Load(), "it begins again")
}

// TestFollowRelistsExpiredVersion: a watch whose version has expired leads to a new list and
// another watch.
func TestFollowRelistsExpiredVersion(t *testing.T) {
	f := newFollower(t)
	expired := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410,"message":"too old"}`
	f.answer.Store(&expired)
	f.read("")
	f.eventually("it is listed again", func() bool { f.clock.Step(time.Second); return f.lists.Load() == 2 })
	f.create(f.configMap("a", "x"))
	f.eventually("and watched", func() bool { return f.read("")["a"] != nil })
	assert.EqualValues(t, 2, f.lists.Load())
}

// TestFollowWithoutWatch: a reader that may list but not watch lists at most every five seconds,
// and watches as soon as it is allowed.
func TestFollowWithoutWatch(t *testing.T) {
	f := newFollower(t)
	forbidden := watchForbidden
	f.answer.Store(&forbidden)
	f.read("")
	f.eventually("the watch was refused", func() bool { return f.refused() })
	f.create(f.configMap("a", "x"))
	f.read("")
	assert.EqualValues(t, 1, f.lists.Load(), "what was listed a moment ago is good enough")
	f.clock.Step(unwatchedListMaxAge + time.Second)
	assert.Contains(t, f.read(""), "a")
	assert.EqualValues(t, 2, f.lists.Load())
	f.eventually("the watch was refused again", func() bool { return f.watches.Load() == 2 })
	f.answer.Store(nil)
	f.clock.Step(unwatchedListMaxAge + time.Second)
	f.read("")
	f.eventually("the watch is allowed", func() bool { return f.watches.Load() == 3 && !f.refused() })
	f.create(f.configMap("b", "x"))
	f.eventually("and tells", func() bool { return f.read("")["b"] != nil })
	assert.EqualValues(t, 3, f.lists.Load())
}

func (f *follower) refused() bool {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	for _, w := range f.c.followedLists {
		w.stateMu.Lock()
		refused := w.watchRefused
		w.stateMu.Unlock()
		if refused {
			return true
		}
	}
	return false
}

// TestFollowMissingKind: a kind that is not served is an error for its readers.
func TestFollowMissingKind(t *testing.T) {
	f := newFollower(t)
	_, err := f.c.Follow(f.ctx, FollowedList{Resource: corev1.SchemeGroupVersion.WithResource("nothings"), Namespace: f.ns})
	require.ErrorContains(t, err, "listing nothings")
}
