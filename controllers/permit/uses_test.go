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

// ledger is a seed with Uses.
type ledger struct {
	*testing.T
	cluster *apply.Cluster
	api     kubernetes.Interface
	at      apply.Ref
}

func newLedger(t *testing.T, name string) *ledger {
	t.Helper()
	apiserver.Needed(t)
	cluster, err := apply.NewCluster("seed", server.config, apply.ClusterOptions{Selector: "a=b"})
	require.NoError(t, err)
	t.Cleanup(cluster.Close)
	api, err := kubernetes.NewForConfig(server.config)
	require.NoError(t, err)
	return &ledger{T: t, cluster: cluster, api: api, at: apply.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: name}}
}

// process returns the Uses of a new process on the seed.
func (l *ledger) process() *Uses {
	l.Helper()
	u := NewUses(l.cluster, l.at, "gardenlet")
	require.NoError(l, u.Read(l.Context()))
	return u
}

// configMap creates a ConfigMap, and returns its reference and UID.
func (l *ledger) configMap(name string) (change.Ref, types.UID) {
	l.Helper()
	o, err := l.api.CoreV1().ConfigMaps("default").Create(l.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	require.NoError(l, err)
	return change.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: name}, o.UID
}

func (l *ledger) delete(name string) {
	l.Helper()
	require.NoError(l, l.api.CoreV1().ConfigMaps("default").Delete(l.Context(), name, metav1.DeleteOptions{}))
}

// TestUses checks that an approval counts once, in whichever process, and that its objects may be
// deleted until they no longer exist.
func TestUses(t *testing.T) {
	l := newLedger(t, "uses")
	ref, uid := l.configMap("goes")
	id := ApprovalID("seed", ref)
	approved := []string{id}
	open := func(u *Uses) func() (string, bool) {
		return func() (string, bool) {
			return Approvals{Given: approved, Used: u.IDs()}.Counts(id)
		}
	}
	_, _, err := NewUses(l.cluster, l.at, "gardenlet").Take(t.Context(), "one", id, []change.Ref{ref}, open(NewUses(l.cluster, l.at, "gardenlet")))
	require.ErrorIs(t, err, ErrNotRead)
	takes := func(u *Uses, refs ...change.Ref) (bool, string) {
		passes, spent, err := u.Take(t.Context(), "one", ApprovalID("seed", refs...), refs, open(u))
		require.NoError(t, err)
		return passes, spent
	}

	first := l.process()
	assert.Empty(t, first.Passing(), "it was not used yet")
	passes, spent := takes(first, ref)
	assert.True(t, passes)
	assert.Equal(t, id, spent)
	assert.Equal(t, []Passing{{Object: ref, UID: uid}}, first.Passing())

	second := l.process()
	assert.Equal(t, []string{id}, second.IDs())
	spent, err = second.Spend(t.Context(), "one", []change.Ref{ref}, open(second))
	require.NoError(t, err)
	assert.Empty(t, spent, "it counts once")
	passes, spent = takes(second, ref)
	assert.True(t, passes, "the object may go still")
	assert.Empty(t, spent)
	other := ref
	other.Name = "another"
	passes, _ = takes(second, ref, other)
	assert.False(t, passes, "not with another one")

	passes, _, err = second.Take(t.Context(), "one", ApprovalID("shoot", ref), []change.Ref{ref}, func() (string, bool) { return "", false })
	require.NoError(t, err)
	assert.False(t, passes, "not one of that name on another cluster")

	l.delete("goes")
	_, _ = l.configMap("goes")
	passes, _ = takes(second, ref)
	assert.False(t, passes, "another one of the name may not")

	require.NoError(t, second.Settle(t.Context(), "other", func(change.Ref) bool { return false }))
	assert.Len(t, second.Passing(), 1, "that is for its owner to say")
	require.NoError(t, second.Settle(t.Context(), "one", func(change.Ref) bool { return false }))
	assert.Empty(t, second.Passing())
	assert.Empty(t, l.process().Passing())
	assert.Equal(t, []string{id}, l.process().IDs(), "it stays used")

	require.NoError(t, second.Forget(t.Context(), func(is string) bool { return is == id }))
	assert.Equal(t, []string{id}, second.IDs())
	require.NoError(t, second.Forget(t.Context(), func(string) bool { return false }))
	assert.Empty(t, second.IDs())
	assert.Empty(t, l.process().IDs())
}

// TestWantedAgain checks that an object that is declared again needs another approval.
func TestWantedAgain(t *testing.T) {
	l := newLedger(t, "wanted")
	ref, _ := l.configMap("stays")
	u := l.process()
	_, err := u.Spend(t.Context(), "one", []change.Ref{ref}, func() (string, bool) { return "a", true })
	require.NoError(t, err)
	require.NoError(t, u.Settle(t.Context(), "one", func(of change.Ref) bool { return of == ref }))
	assert.Empty(t, u.Passing())
}

// TestPassingTogether checks that any of the objects that were approved together may be deleted
// while one of them exists.
func TestPassingTogether(t *testing.T) {
	l := newLedger(t, "together")
	a, _ := l.configMap("together-a")
	b, _ := l.configMap("together-b")
	u := l.process()
	used := 0
	once := func() (string, bool) { used++; return "a", used == 1 }
	for _, refs := range [][]change.Ref{{a, b}, {a, b}, {a}} {
		passes, _, err := u.Take(t.Context(), "one", ApprovalID("seed", refs...), refs, once)
		require.NoError(t, err)
		assert.True(t, passes, refs)
	}
	l.delete("together-a")
	passes, _, err := u.Take(t.Context(), "one", ApprovalID("seed", a, b), []change.Ref{a, b}, once)
	require.NoError(t, err)
	assert.True(t, passes, "the one that is left")
	assert.Equal(t, 1, used)
	l.delete("together-b")
	passes, _, err = u.Take(t.Context(), "one", ApprovalID("seed", a, b), []change.Ref{a, b}, once)
	require.NoError(t, err)
	assert.False(t, passes)
}

// TestNotes checks that values that allow less count although their write fails, and that others do
// not.
func TestNotes(t *testing.T) {
	l := newLedger(t, "notes")
	n := NewNotes[int](l.cluster, l.at, "gardenlet")
	require.NoError(t, n.Change(t.Context(), "a", func(int, bool) (int, bool) { return 1, false }))
	assert.Empty(t, n.All(), "nothing is written before it was read")
	require.NoError(t, n.Read(t.Context()))
	for _, value := range []int{1, 2} {
		require.NoError(t, n.Change(t.Context(), "a", func(now int, known bool) (int, bool) {
			assert.Equal(t, value > 1, known)
			assert.Equal(t, value-1, now)
			return value, false
		}))
	}
	again := NewNotes[int](l.cluster, l.at, "gardenlet")
	require.NoError(t, again.Read(t.Context()))
	assert.Equal(t, map[string]int{"a": 2}, again.All())

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.Error(t, n.Change(ended, "a", func(int, bool) (int, bool) { return 3, false }))
	value, _ := n.Get("a")
	assert.Equal(t, 2, value)
	require.Error(t, n.Change(ended, "a", func(int, bool) (int, bool) { return 0, true }))
	value, _ = n.Get("a")
	assert.Zero(t, value)
}
