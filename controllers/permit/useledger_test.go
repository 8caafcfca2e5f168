// SPDX-License-Identifier: Apache-2.0

package permit

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/hack/apiserver"
)

var server struct{ config *rest.Config }

func TestMain(m *testing.M) {
	os.Exit(apiserver.Main(m, func(config *rest.Config) { server.config = config }))
}

// testSeed is a seed with Uses.
type testSeed struct {
	*testing.T
	cluster      *apply.Cluster
	api          kubernetes.Interface
	configMapRef apply.Ref
}

func newTestSeed(t *testing.T, name string) *testSeed {
	t.Helper()
	apiserver.SkipIfUnavailable(t)
	cluster, err := apply.NewCluster("seed", server.config, apply.ClusterOptions{Selector: "a=b"})
	require.NoError(t, err)
	t.Cleanup(cluster.Close)
	api, err := kubernetes.NewForConfig(server.config)
	require.NoError(t, err)
	return &testSeed{T: t, cluster: cluster, api: api, configMapRef: apply.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: name}}
}

// newProcess returns the Uses of a new process on the seed.
func (l *testSeed) newProcess() *UseLedger {
	l.Helper()
	u := NewUseLedger(l.cluster, l.configMapRef, "gardenlet")
	require.NoError(l, u.Read(l.Context()))
	return u
}

// createConfigMap creates a ConfigMap, and returns its reference and UID.
func (l *testSeed) createConfigMap(name string) (change.Ref, types.UID) {
	l.Helper()
	o, err := l.api.CoreV1().ConfigMaps("default").Create(l.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	require.NoError(l, err)
	return change.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: name}, o.UID
}

func (l *testSeed) delete(name string) {
	l.Helper()
	require.NoError(l, l.api.CoreV1().ConfigMaps("default").Delete(l.Context(), name, metav1.DeleteOptions{}))
}

// TestUseLedger checks that an approval counts once, in whichever process, and that its objects may
// be deleted until they no longer exist.
func TestUseLedger(t *testing.T) {
	l := newTestSeed(t, "uses")
	ref, uid := l.createConfigMap("goes")
	id := ApprovalID("seed", ref)
	approved := []string{id}
	open := func(u *UseLedger) func() (string, bool) {
		return func() (string, bool) {
			return Approvals{Given: approved, Used: u.IDs()}.IsApproved(id)
		}
	}
	_, _, err := NewUseLedger(l.cluster, l.configMapRef, "gardenlet").Permit(t.Context(), "one", id, []change.Ref{ref}, open(NewUseLedger(l.cluster, l.configMapRef, "gardenlet")))
	require.ErrorIs(t, err, ErrUsesNotRead)
	takes := func(u *UseLedger, refs ...change.Ref) (bool, string) {
		passes, spent, err := u.Permit(t.Context(), "one", ApprovalID("seed", refs...), refs, open(u))
		require.NoError(t, err)
		return passes, spent
	}

	first := l.newProcess()
	assert.Empty(t, first.DeletableObjects(), "it was not used yet")
	passes, spent := takes(first, ref)
	assert.True(t, passes)
	assert.Equal(t, id, spent)
	assert.Equal(t, []DeletableObject{{Object: ref, UID: uid}}, first.DeletableObjects())

	second := l.newProcess()
	assert.Equal(t, []string{id}, second.IDs())
	spent, err = second.RecordUse(t.Context(), "one", []change.Ref{ref}, open(second))
	require.NoError(t, err)
	assert.Empty(t, spent, "it counts once")
	passes, spent = takes(second, ref)
	assert.True(t, passes, "the object may go still")
	assert.Empty(t, spent)
	other := ref
	other.Name = "another"
	passes, _ = takes(second, ref, other)
	assert.False(t, passes, "not with another one")

	passes, _, err = second.Permit(t.Context(), "one", ApprovalID("shoot", ref), []change.Ref{ref}, func() (string, bool) { return "", false })
	require.NoError(t, err)
	assert.False(t, passes, "not one of that name on another cluster")

	l.delete("goes")
	_, _ = l.createConfigMap("goes")
	passes, _ = takes(second, ref)
	assert.False(t, passes, "another one of the name may not")

	require.NoError(t, second.PruneDeletable(t.Context(), "other", func(change.Ref) bool { return false }))
	assert.Len(t, second.DeletableObjects(), 1, "that is for its owner to say")
	require.NoError(t, second.PruneDeletable(t.Context(), "one", func(change.Ref) bool { return false }))
	assert.Empty(t, second.DeletableObjects())
	assert.Empty(t, l.newProcess().DeletableObjects())
	assert.Equal(t, []string{id}, l.newProcess().IDs(), "it stays used")

	require.NoError(t, second.DropWithdrawn(t.Context(), func(is string) bool { return is == id }))
	assert.Equal(t, []string{id}, second.IDs())
	require.NoError(t, second.DropWithdrawn(t.Context(), func(string) bool { return false }))
	assert.Empty(t, second.IDs())
	assert.Empty(t, l.newProcess().IDs())
}

// TestRedeclaredObjectNeedsApproval checks that an object that is declared again needs another
// approval.
func TestRedeclaredObjectNeedsApproval(t *testing.T) {
	l := newTestSeed(t, "wanted")
	ref, _ := l.createConfigMap("stays")
	u := l.newProcess()
	_, err := u.RecordUse(t.Context(), "one", []change.Ref{ref}, func() (string, bool) { return "a", true })
	require.NoError(t, err)
	require.NoError(t, u.PruneDeletable(t.Context(), "one", func(of change.Ref) bool { return of == ref }))
	assert.Empty(t, u.DeletableObjects())
}

// TestJointlyApprovedObjects checks that any of the objects that were approved together may be
// deleted while one of them exists.
func TestJointlyApprovedObjects(t *testing.T) {
	l := newTestSeed(t, "together")
	a, _ := l.createConfigMap("together-a")
	b, _ := l.createConfigMap("together-b")
	u := l.newProcess()
	used := 0
	once := func() (string, bool) { used++; return "a", used == 1 }
	for _, refs := range [][]change.Ref{{a, b}, {a, b}, {a}} {
		passes, _, err := u.Permit(t.Context(), "one", ApprovalID("seed", refs...), refs, once)
		require.NoError(t, err)
		assert.True(t, passes, refs)
	}
	l.delete("together-a")
	passes, _, err := u.Permit(t.Context(), "one", ApprovalID("seed", a, b), []change.Ref{a, b}, once)
	require.NoError(t, err)
	assert.True(t, passes, "the one that is left")
	assert.Equal(t, 1, used)
	l.delete("together-b")
	passes, _, err = u.Permit(t.Context(), "one", ApprovalID("seed", a, b), []change.Ref{a, b}, once)
	require.NoError(t, err)
	assert.False(t, passes)
}

// TestConfigMapStore checks that values that allow less count although their write fails, and that
// others do not.
func TestConfigMapStore(t *testing.T) {
	l := newTestSeed(t, "notes")
	n := NewConfigMapStore[int](l.cluster, l.configMapRef, "gardenlet")
	require.NoError(t, n.Change(t.Context(), "a", func(int, bool) (int, bool) { return 1, false }))
	assert.Empty(t, n.Values(), "nothing is written before it was read")
	require.NoError(t, n.Read(t.Context()))
	for _, value := range []int{1, 2} {
		require.NoError(t, n.Change(t.Context(), "a", func(now int, known bool) (int, bool) {
			assert.Equal(t, value > 1, known)
			assert.Equal(t, value-1, now)
			return value, false
		}))
	}
	again := NewConfigMapStore[int](l.cluster, l.configMapRef, "gardenlet")
	require.NoError(t, again.Read(t.Context()))
	assert.Equal(t, map[string]int{"a": 2}, again.Values())

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.Error(t, n.Change(ended, "a", func(int, bool) (int, bool) { return 3, false }))
	value, _ := n.Get("a")
	assert.Equal(t, 2, value)
	require.Error(t, n.Change(ended, "a", func(int, bool) (int, bool) { return 0, true }))
	value, _ = n.Get("a")
	assert.Zero(t, value)
}
