package landscape

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/permit"
)

// TestWhatWaitsNeedsNoSecondApproval: a namespace that was let pass, and was not told to go because something in it takes its time, goes afterwards: by the
// approval of before, or the review, although both counted for one sync. Once it was told, nothing counts any more.
func TestWhatWaitsNeedsNoSecondApproval(t *testing.T) {
	for _, name := range []string{"approved", "reviewed"} {
		t.Run(name, func(t *testing.T) {
			namespace := "slow-" + name
			file := "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: " + namespace + "}\n" +
				"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: slow, namespace: " + namespace + ", finalizers: [test.example.com/slow]}\n"
			w := newWritten(t, namespace, map[string]string{"slow.yaml": file, "other.yaml": mapFile("slow-stays")})
			w.mustSync()
			w.write("slow.yaml", "")
			ref := apply.Ref{APIVersion: "v1", Kind: "Namespace", Name: namespace}
			content := apply.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: namespace, Name: "slow"}
			id := permit.ApprovalID(Virtual, ref)
			passing, convergers := &Passing{}, 0
			w.changes = func(o *Options) {
				o.Passing = passing
				convergers++
				switch {
				case name == "approved":
					o.Gate.Approved = map[string]bool{id: true}
					o.Gate.Take = func(string, []change.Ref) bool { return convergers == 1 }
				case convergers == 1:
					o.Gate.Protected = nil
					o.Reviewed = ReviewedOf("first", change.Plan{Items: []change.Item{{Action: change.Delete, Cluster: Virtual, Object: ref}, {Action: change.Delete, Cluster: Virtual, Object: content}}})
				default:
					o.Gate.Protected = nil
					o.Reviewed = ReviewedOf("next", change.Plan{})
				}
			}
			maps := resource(t, testMaps, namespace)
			release := func() {
				_, err := maps.Patch(testContext(t), "slow", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
				require.True(t, err == nil || apierrors.IsNotFound(err), err)
			}
			t.Cleanup(release)
			run := func() []apply.Held {
				c := w.converger()
				stop := hurry(w)
				defer stop()
				c.once.begins()
				err := c.applyDeclarations(testContext(t), Virtual, split(c.landscape)[Virtual])
				c.once.ended(err == nil)
				require.NoError(t, err)
				var held []apply.Held
				for _, h := range c.report.Held {
					held = append(held, h.Objects...)
				}
				return held
			}
			terminating := func() bool {
				live, err := resource(t, schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, "").Get(testContext(t), namespace, metav1.GetOptions{})
				require.NoError(t, err)
				return live.GetDeletionTimestamp() != nil
			}
			require.Empty(t, run(), "it is let pass")
			require.False(t, terminating(), "what is in it goes first")
			require.Empty(t, run(), "a new converger knows that it was let pass")
			require.False(t, terminating())
			release()
			require.Empty(t, run())
			require.True(t, terminating())
			assert.Empty(t, passing.waits)
		})
	}
}

// hurry lets the time of a landscape pass quickly until it is stopped.
func hurry(w *written) (stop func()) {
	done, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				w.clock.Step(500 * time.Millisecond)
			}
		}
	}()
	return func() {
		close(done)
		<-over
	}
}

// TestOneReviewOneRecreation: what has happened by a review does not happen by it again, although another converger is at it, because the sync failed
// or the operator looked at it anew, and although the object that was told to go takes its time. Another review counts.
func TestOneReviewOneRecreation(t *testing.T) {
	ref := apply.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "a", Name: "b"}
	for name, test := range map[string]struct {
		result apply.ObjectResult
		held   int
	}{
		"recreated":                             {apply.ObjectResult{Action: apply.Recreated}, 1},
		"deleted":                               {apply.ObjectResult{Action: apply.Deleted}, 1},
		"told to go, and the time was up":       {apply.ObjectResult{Action: apply.Failed, Told: true}, 1},
		"told to go, and on its way":            {apply.ObjectResult{Action: apply.Deleting, Told: true}, 1},
		"it was not told":                       {apply.ObjectResult{Action: apply.Failed}, 0},
		"it waits until another object is gone": {apply.ObjectResult{Action: apply.Deleting, Waits: true}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			passing := &Passing{}
			next := func(of string) (permit.Gate, *once) {
				gate, o := Options{Gate: permit.Gate{}, Passing: passing, Reviewed: ReviewedOf(of, change.Plan{Items: []change.Item{{Action: change.Recreate, Cluster: "c", Object: ref}}})}.gate()
				o.begins()
				return gate, o
			}
			held := func(g permit.Gate) int { return len(g.Judge("c", []change.Ref{ref}, 100).Held) }
			gate, o := next("a..b")
			require.Zero(t, held(gate))
			o.ended(false)
			gate, o = next("a..b")
			require.Zero(t, held(gate), "nothing has happened yet")
			test.result.Ref, test.result.Cluster = ref, "c"
			o.note(test.result)
			o.ended(false)
			gate, o = next("a..b")
			assert.Equal(t, test.held, held(gate))
			o.ended(true)
			gate, _ = next("b..c")
			assert.Zero(t, held(gate))
		})
	}
}

// TestPassingForgets: what is declared again, or has gone, has to be let pass anew; what could not be looked at has not.
func TestPassingForgets(t *testing.T) {
	ref := apply.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "a", Name: "b"}
	id := permit.ApprovalID("c", ref)
	for action, waits := range map[apply.Action]bool{apply.HeldBack: true, apply.Failed: true, apply.Skipped: true, apply.Deleting: false, apply.Deleted: false,
		apply.Unchanged: false, apply.Configured: false, apply.Gone: false, apply.HandedOver: false} {
		for _, told := range []bool{false, true} {
			p := &Passing{}
			_, o := Options{Passing: p}.gate()
			o.note(apply.ObjectResult{Ref: ref, Cluster: "c", Action: apply.Deleting, Waits: true})
			require.True(t, p.isWaiting(id))
			o.note(apply.ObjectResult{Ref: ref, Cluster: "c", Action: action, Told: told})
			assert.Equal(t, waits && !told, p.isWaiting(id), "%s %v", action, told)
		}
	}
}

// TestOnlyASyncDeletes: what a sync that failed has left over is not deleted by the repair of something else, which may come outside of every window.
func TestOnlyASyncDeletes(t *testing.T) {
	w := newWritten(t, "leftover", map[string]string{"a.yaml": mapFile("left-goes", "left-stays")})
	w.mustSync()
	w.write("a.yaml", mapFile("left-stays", "Left-refused")) // a name that no server takes
	_, err := w.sync()
	require.ErrorContains(t, err, "Left-refused")
	require.NotEmpty(t, uidOf(t, "left-goes"))
	w.write("a.yaml", mapFile("left-stays"))
	c := w.converger()
	run := func() error { return c.applyDeclarations(testContext(t), Virtual, split(c.landscape)[Virtual]) }
	c.once.keep(true)
	require.NoError(t, run())
	assert.NotEmpty(t, uidOf(t, "left-goes"))
	assert.Empty(t, c.report.Held, "it waits for the next sync, and for nobody's approval")
	c.once.keep(false)
	require.NoError(t, run())
	assert.Empty(t, uidOf(t, "left-goes"))
}
