// SPDX-License-Identifier: Apache-2.0

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

// TestPendingDeletionNeedsNoSecondApproval checks an approved deletion of a namespace that waits
// for its content. It happens later by the same approval or review, although both count for one
// sync. After the deletion request, they no longer count.
func TestPendingDeletionNeedsNoSecondApproval(t *testing.T) {
	for _, name := range []string{"approved", "reviewed"} {
		t.Run(name, func(t *testing.T) {
			namespace := "slow-" + name
			file := "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: " + namespace + "}\n" +
				"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: slow, namespace: " + namespace + ", finalizers: [test.example.com/slow]}\n"
			w := newFolderLandscape(t, namespace, map[string]string{"slow.yaml": file, "other.yaml": mapFile("slow-stays")})
			w.mustSync()
			w.write("slow.yaml", "")
			ref := apply.Ref{APIVersion: "v1", Kind: "Namespace", Name: namespace}
			content := apply.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: namespace, Name: "slow"}
			id := permit.ApprovalID(Virtual, ref)
			passing, convergers := &permit.RunMemory{}, 0
			w.changeOptions = func(o *Options) {
				o.Shared.PermitMemory = passing
				convergers++
				switch {
				case name == "approved":
					o.Permits.Gate.Approved = map[string]bool{id: true}
					o.Permits.Gate.Ledger = func(string, []change.Ref) bool { return convergers == 1 }
				case convergers == 1:
					o.Permits.Gate.Protected = nil
					o.Permits.Reviewed = permit.NewReview("first", change.Plan{Items: []change.Item{{Action: change.Delete, Cluster: Virtual, Object: ref}, {Action: change.Delete, Cluster: Virtual, Object: content}}})
				default:
					o.Permits.Gate.Protected = nil
					o.Permits.Reviewed = permit.NewReview("next", change.Plan{})
				}
			}
			maps := resourceClient(t, configMapResource, namespace)
			release := func() {
				_, err := maps.Patch(testContext(t), "slow", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
				require.True(t, err == nil || apierrors.IsNotFound(err), err)
			}
			t.Cleanup(release)
			run := func() []apply.HeldObject {
				c := w.newConverger()
				stop := advanceClock(w)
				defer stop()
				c.runs.BeginRun()
				err := c.applyDeclarations(testContext(t), Virtual, splitByCluster(c.landscape)[Virtual])
				c.runs.EndRun(err == nil)
				require.NoError(t, err)
				var held []apply.HeldObject
				for _, h := range c.currentRun.report.Held {
					held = append(held, h.Objects...)
				}
				return held
			}
			terminating := func() bool {
				live, err := resourceClient(t, schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, "").Get(testContext(t), namespace, metav1.GetOptions{})
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
		})
	}
}

// advanceClock advances the clock of a landscape until it is stopped.
func advanceClock(w *folderLandscape) (stop func()) {
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

// TestOnlyASyncDeletes checks that a repair does not delete objects that a failed sync has left,
// because repairs may run outside of sync windows.
func TestOnlyASyncDeletes(t *testing.T) {
	w := newFolderLandscape(t, "leftover", map[string]string{"a.yaml": mapFile("left-goes", "left-stays")})
	w.mustSync()
	w.write("a.yaml", mapFile("left-stays", "Left-refused")) // an invalid name
	_, err := w.sync()
	require.ErrorContains(t, err, "Left-refused")
	require.NotEmpty(t, uidOf(t, "left-goes"))
	w.write("a.yaml", mapFile("left-stays"))
	c := w.newConverger()
	run := func() error {
		return c.applyDeclarations(testContext(t), Virtual, splitByCluster(c.landscape)[Virtual])
	}
	c.runs.SetMaintaining(true)
	require.NoError(t, run())
	assert.NotEmpty(t, uidOf(t, "left-goes"))
	assert.Empty(t, c.currentRun.report.Held, "it waits for the next sync, and for nobody's approval")
	c.runs.SetMaintaining(false)
	require.NoError(t, run())
	assert.Empty(t, uidOf(t, "left-goes"))
}
