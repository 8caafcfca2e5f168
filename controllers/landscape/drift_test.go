// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/permit"
)

// driftLog collects the drift reports of a converger.
type driftLog struct {
	mu  sync.Mutex
	all []Drift
}

func (h *driftLog) add(d Drift) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, d)
}

// lastOf returns the last report about a Shoot, and their number.
func (h *driftLog) lastOf(shoot string) (last Drift, n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, d := range h.all {
		if d.Object.Name == shoot {
			last, n = d, n+1
		}
	}
	return last, n
}

// newWatchedLandscape is a landscape that was applied and is watched, as the operator does.
func newWatchedLandscape(t *testing.T, name string, shoots ...string) (*folderLandscape, *driftLog) {
	t.Helper()
	files := map[string]string{}
	for _, s := range shoots {
		files[s+".yaml"] = shootFile(s)
	}
	return newWatchedFiles(t, name, files, permit.DefaultGate())
}

func newWatchedFiles(t *testing.T, name string, files map[string]string, gate permit.Gate) (*folderLandscape, *driftLog) {
	t.Helper()
	w, h := newFolderLandscape(t, name, files), &driftLog{}
	w.gate = gate
	w.changeOptions = func(o *Options) {
		o.Connections.Leases, o.Listeners.OnDrift = []*SharedLease{{lease: &heldLease{cluster: Runtime, name: operatorLease}}}, h.add
		o.Timing.CareInterval = time.Minute
	}
	c := w.mustSync()
	ctx, cancel := context.WithCancel(testContext(t))
	done := make(chan struct{})
	go func() {
		defer close(done)
		assert.NoError(t, c.Maintain(ctx))
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return w, h
}

// TestEditsByHandAreReverted checks that edits by people of declared fields are reverted, as the
// description of the object says, and reported with field and manager.
func TestEditsByHandAreReverted(t *testing.T) {
	w, h := newWatchedLandscape(t, "edits", "edited")
	for _, manager := range []string{"kubectl-edit", "kubectl-patch", "kubectl-client-side-apply", "kubectl", "before-first-apply"} {
		_, before := h.lastOf("edited")
		w.clock.Step(time.Second)
		patchShoot(t, "edited", manager, `{"spec":{"purpose":"testing","maintenance":{"autoUpdate":{"machineImageVersion":false}}}}`)
		eventually(t, "it is told: "+manager, func() bool {
			_, n := h.lastOf("edited")
			return n > before
		})
		told, _ := h.lastOf("edited")
		assert.True(t, told.Repaired, "%+v", told)
		assert.Contains(t, told.Description, "spec.purpose (by "+manager+")")
		assert.Contains(t, told.Description, "spec.maintenance.autoUpdate.machineImageVersion (by "+manager+")")
		assert.Empty(t, told.OpenProblems)
		assert.Equal(t, "evaluation", fieldValue(t, liveShoot(t, "edited"), "spec.purpose"))
	}
	assert.Contains(t, liveShoot(t, "edited").GetAnnotations()["resources.gardener.cloud/description"], "Changes made by hand are reverted")
}

// TestFailedRepairStaysReported checks that a field of an unknown controller is not overwritten.
// The conflict is reported once, and stays a problem until someone resolves it. Other objects are
// repaired meanwhile.
func TestFailedRepairStaysReported(t *testing.T) {
	w, h := newWatchedLandscape(t, "stands", "contested", "other")
	patchShoot(t, "contested", "some-controller", `{"spec":{"purpose":"testing"}}`)
	eventually(t, "it is told", func() bool { _, n := h.lastOf("contested"); return n > 0 })
	told, _ := h.lastOf("contested")
	assert.False(t, told.Repaired)
	for _, part := range []string{"contested.yaml:", "Shoot default/contested", "spec.purpose is owned by some-controller",
		"kubectl get shoot -n default contested -o yaml --show-managed-fields", "or force"} {
		assert.Contains(t, strings.Join(told.OpenProblems, "\n"), part)
	}
	require.Len(t, told.OpenProblems, 1)

	patchShoot(t, "other", "kubectl-edit", `{"spec":{"purpose":"testing"}}`)
	eventually(t, "the other is repaired", func() bool { d, _ := h.lastOf("other"); return d.Repaired })
	d, others := h.lastOf("other")
	assert.Equal(t, told.OpenProblems, d.OpenProblems, "the first stands all the same")
	assert.Equal(t, "evaluation", fieldValue(t, liveShoot(t, "other"), "spec.purpose"))

	w.clock.Step(2 * time.Minute) // retried without success
	patchShoot(t, "contested", "some-controller", `{"spec":{"purpose":"evaluation"}}`)
	eventually(t, "it is settled", func() bool {
		w.clock.Step(2 * time.Minute)
		d, _ := h.lastOf("contested")
		return d.Repaired
	})
	d, _ = h.lastOf("contested")
	assert.Empty(t, d.OpenProblems)
	_, n := h.lastOf("other")
	assert.Equal(t, others, n, "it is not told that it is repaired once more")
}

// TestHeldRepairsAreReportedAsFailed checks that a repair whose recreation the gate holds is
// reported as not repaired, with the id to approve it.
func TestHeldRepairsAreReportedAsFailed(t *testing.T) {
	gate := permit.DefaultGate()
	gate.MaxDeletions = permit.Limit(0)
	_, h := newWatchedFiles(t, "frozen", map[string]string{"map.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: frozen, namespace: default}\ndata: {a: b}\n"}, gate)
	_, err := resourceClient(t, configMapResource, "default").Patch(t.Context(), "frozen", types.MergePatchType, []byte(`{"immutable":true,"data":{"a":"c"}}`), metav1.PatchOptions{FieldManager: "kubectl-patch"})
	require.NoError(t, err)
	eventually(t, "it is told", func() bool { _, n := h.lastOf("frozen"); return n > 0 })
	d, _ := h.lastOf("frozen")
	assert.False(t, d.Repaired, "%+v", d)
	assert.Regexp(t, "^held: .*; approve [0-9a-f]{12} to permit it$", d.Error)
	require.Len(t, d.OpenProblems, 1)
}

// TestUnwatchedEditsAreReported checks that the next sync finds and reports edits from before.
func TestUnwatchedEditsAreReported(t *testing.T) {
	h := &driftLog{}
	w := newFolderLandscape(t, "unwatched", map[string]string{"shoot.yaml": shootFile("unwatched")})
	w.changeOptions = func(o *Options) { o.Listeners.OnDrift = h.add }
	w.mustSync()
	patchShoot(t, "unwatched", "kubectl-edit", `{"spec":{"purpose":"testing"}}`)
	w.mustSync()
	told, n := h.lastOf("unwatched")
	assert.Equal(t, 1, n)
	assert.Equal(t, "was changed: spec.purpose (by kubectl-edit)", told.Description)
	assert.True(t, told.Repaired)
	assert.Equal(t, "evaluation", fieldValue(t, liveShoot(t, "unwatched"), "spec.purpose"))
}

// TestEditsThatAreNotReverted checks that an edit that the API forbids to revert stays a problem. A
// field that anybody may change is handed over, and is not a problem.
func TestEditsThatAreNotReverted(t *testing.T) {
	w, h := newWatchedLandscape(t, "unreverted", "raised", "asleep")
	patchShoot(t, "raised", "kubectl-edit", `{"spec":{"kubernetes":{"version":"1.34.0"}}}`)
	eventually(t, "it is told", func() bool { _, n := h.lastOf("raised"); return n > 0 })
	told, _ := h.lastOf("raised")
	assert.False(t, told.Repaired)
	require.Len(t, told.OpenProblems, 1)
	assert.Contains(t, told.OpenProblems[0], "Shoot default/raised")
	assert.Contains(t, told.OpenProblems[0], "spec.kubernetes.version")

	w.clock.Step(time.Second)
	patchShoot(t, "asleep", "kubectl-edit", `{"spec":{"hibernation":{"enabled":true}}}`)
	eventually(t, "it is told", func() bool { _, n := h.lastOf("asleep"); return n > 0 })
	d, _ := h.lastOf("asleep")
	assert.True(t, d.HandedOver, "%+v", d)
	assert.Equal(t, told.OpenProblems, d.OpenProblems)
	assert.Equal(t, true, fieldValue(t, liveShoot(t, "asleep"), "spec.hibernation.enabled"))
}

func TestProblemsByObject(t *testing.T) {
	drifted, other := apply.Ref{Kind: "Shoot", Name: "a"}, apply.Ref{Kind: "Shoot", Name: "b"}
	about := func(ref apply.Ref) *apply.ObjectError {
		return &apply.ObjectError{Object: ref, Reason: apply.ReasonConflict}
	}
	for name, test := range map[string]struct {
		err  error
		want []apply.Ref
	}{
		"none":                  {nil, nil},
		"of the cluster":        {apply.Errors{about(apply.Ref{})}, []apply.Ref{drifted}},
		"of others":             {apply.Errors{about(other)}, []apply.Ref{other}},
		"wrapped and joined":    {fmt.Errorf("owner: %w", errors.Join(apply.Errors{about(other)}, errors.New("more"))), []apply.Ref{drifted, other}},
		"of no object":          {errors.New("rendering failed"), []apply.Ref{drifted}},
		"two of different sets": {errors.Join(apply.Errors{about(other)}, apply.Errors{about(drifted)}), []apply.Ref{drifted, other}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.ElementsMatch(t, test.want, slices.Collect(maps.Keys(problemsByObject(drifted, test.err))))
		})
	}
}
