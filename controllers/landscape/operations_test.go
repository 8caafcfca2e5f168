// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/landscapes"
)

func operationFile(object, operation string) string {
	return fmt.Sprintf("apiVersion: landscape.pergola.dev/v1alpha1\nkind: Operation\nspec:\n  object: %s\n  operation: %s\n", object, operation)
}

// takeOperation imitates the controller of a Shoot.
func takeOperation(t *testing.T, name string) string {
	t.Helper()
	operation := liveShoot(t, name).GetAnnotations()[annotationOperation]
	patchShoot(t, name, "gardenlet", `{"metadata":{"annotations":{"gardener.cloud/operation":null}}}`)
	return operation
}

func TestOperationsAreExecutedOnce(t *testing.T) {
	w := newFolderLandscape(t, "ops", map[string]string{"shoot.yaml": shootFile("ops"), "operations/first.yaml": operationFile("Shoot default/ops", "reconcile")})
	c := w.mustSync()
	require.NoError(t, c.runOperations(testContext(t), Virtual))
	assert.Equal(t, "reconcile", takeOperation(t, "ops"))
	require.Len(t, c.currentRun.report.Operations, 1)
	assert.Equal(t, "first", c.currentRun.report.Operations[0].ID)
	assert.Equal(t, "Shoot default/ops", c.currentRun.report.Operations[0].Object)

	for range 2 {
		w.mustSync()
		require.NoError(t, w.newConverger().runOperations(testContext(t), Virtual))
		assert.Empty(t, takeOperation(t, "ops"), "not again")
	}

	w.write("operations/first.yaml", operationFile("Shoot default/ops", "retry"))
	err := w.newConverger().runOperations(testContext(t), Virtual)
	require.ErrorContains(t, err, "operations/first.yaml:5: operation first, retry on Shoot default/ops")
	require.ErrorContains(t, err, "an id counts once")
	assert.Empty(t, takeOperation(t, "ops"))

	w.remove("operations/first.yaml")
	require.NoError(t, w.newConverger().runOperations(testContext(t), Virtual))
	w.write("operations/first.yaml", operationFile("Shoot default/ops", "reconcile"))
	require.NoError(t, w.newConverger().runOperations(testContext(t), Virtual))
	assert.Empty(t, takeOperation(t, "ops"), "it was executed already")

	w.write("operations/second.yaml", operationFile("Shoot default/ops", "retry"))
	patchShoot(t, "ops", "somebody", `{"metadata":{"annotations":{"gardener.cloud/operation":"maintain"}}}`)
	c = w.newConverger()
	require.NoError(t, c.runOperations(testContext(t), Virtual), "it is in nobody's way")
	require.Len(t, c.currentRun.report.PendingOperations, 1)
	assert.Equal(t, `operation second, retry on Shoot default/ops: the operation "maintain" of Shoot default/ops has not started yet `+
		`and blocks others until its controller starts it; to withdraw it, on cluster virtual: kubectl annotate shoot -n default ops gardener.cloud/operation-`, c.currentRun.report.PendingOperations[0].String())
	assert.Equal(t, "maintain", takeOperation(t, "ops"))
	c = w.newConverger()
	require.NoError(t, c.runOperations(testContext(t), Virtual))
	assert.Empty(t, c.currentRun.report.PendingOperations, "it was asked for a moment ago")
	c = w.mustSync()
	w.clock.Step(operationStartTime - 2*time.Second) // the sync took a second
	require.NoError(t, c.runOperations(testContext(t), Virtual))
	assert.Empty(t, c.currentRun.report.PendingOperations, "a gardenlet may be busy")
	w.clock.Step(time.Second)
	require.NoError(t, c.runOperations(testContext(t), Virtual))
	require.Len(t, c.currentRun.report.PendingOperations, 1)
	assert.Contains(t, c.currentRun.report.PendingOperations[0].String(), "operation second, retry on Shoot default/ops: it was requested 20")
	assert.Contains(t, c.currentRun.report.PendingOperations[0].String(), `the operation "retry" of Shoot default/ops has not started yet`)
	assert.Equal(t, "retry", takeOperation(t, "ops"))
	assert.Len(t, c.currentRun.report.Operations, 2)
	c = w.mustSync()
	eventually(t, "the cache knows", func() bool {
		live := c.connections.clusters[Virtual].Cached(c.operationTargetOf(c.landscape.Operations[1]))
		return live != nil && live.GetAnnotations()[annotationOperation] == ""
	})
	require.NoError(t, c.runOperations(testContext(t), Virtual))
	assert.Empty(t, c.currentRun.report.PendingOperations)

	w.write("operations/nobody.yaml", operationFile("Shoot default/ops", "rotate-ssh-keypair"))
	c = w.newConverger()
	require.NoError(t, c.runOperations(testContext(t), Virtual))
	require.Len(t, c.currentRun.report.PendingOperations, 1, "nobody does it: that is known at once")
	assert.Contains(t, c.currentRun.report.PendingOperations[0].String(), "operation nobody, rotate-ssh-keypair on Shoot default/ops: it was requested 20")
	assert.Contains(t, c.currentRun.report.PendingOperations[0].Reason, `no part of Pergola implements it in this version: the operation "rotate-ssh-keypair" of Shoot default/ops has not started yet`)
	assert.Contains(t, c.currentRun.report.PendingOperations[0].Reason, "kubectl annotate shoot -n default ops gardener.cloud/operation-")
	assert.Equal(t, "rotate-ssh-keypair", takeOperation(t, "ops"))
	w.remove("operations/nobody.yaml")

	w.write("operations/late.yaml", operationFile("Shoot default/ops", "reconcile")+"  notAfter: 2001-01-01T00:00:00Z\n")
	c = w.newConverger()
	require.NoError(t, c.runOperations(testContext(t), Virtual))
	assert.Empty(t, takeOperation(t, "ops"))
	assert.Len(t, c.currentRun.report.Operations, 3)
	require.Len(t, c.currentRun.report.PendingOperations, 1)
	assert.Contains(t, c.currentRun.report.PendingOperations[0].Reason, "it expired (notAfter 2001-01-01T00:00:00Z)")
	assert.True(t, c.currentRun.report.PendingOperations[0].Expired)

	w.remove("operations/late.yaml")
	w.write("operations/wrong.yaml", operationFile("Shoot default/ops", "rotate-ca-complete"))
	patchShoot(t, "ops", "gardenlet", `{"metadata":{"annotations":{"gardener.cloud/operation":null}}}`)
	c = w.newConverger()
	err = c.runOperations(testContext(t), Virtual)
	require.ErrorContains(t, err, "operations/wrong.yaml:5: operation wrong, rotate-ca-complete on Shoot default/ops", "what it cannot do is an error")
	assert.Empty(t, c.currentRun.report.PendingOperations)
}

// TestOperationsOnOneObjectFollowEachOther checks that the second operation of a commit on one
// object waits for the first. A hint to withdraw the first appears only if no one handles it.
func TestOperationsOnOneObjectFollowEachOther(t *testing.T) {
	w := newFolderLandscape(t, "queue", map[string]string{"shoot.yaml": shootFile("queue"),
		"operations/a.yaml": operationFile("Shoot default/queue", "reconcile"), "operations/b.yaml": operationFile("Shoot default/queue", "rotate-ssh-keypair"),
		"operations/c.yaml": operationFile("Shoot default/queue", "retry")})
	w.mustSync()
	waiting := func() []string {
		t.Helper()
		c := w.newConverger()
		require.NoError(t, c.runOperations(testContext(t), Virtual))
		var out []string
		for _, o := range c.currentRun.report.PendingOperations {
			out = append(out, o.String())
		}
		return out
	}
	got := waiting()
	require.Len(t, got, 2, got)
	for i, id := range []string{"b, rotate-ssh-keypair", "c, retry"} {
		assert.Regexp(t, "^operation "+id+" on Shoot default/queue: operation a, reconcile, on the same object was requested 20[-0-9:TZ]+; the first sync after its start requests this one$", got[i])
	}
	w.clock.Step(operationStartTime + time.Second)
	got = waiting()
	require.Len(t, got, 2, got)
	assert.Contains(t, got[0], "the first sync after its start requests this one: the operation \"reconcile\" of Shoot default/queue has not started yet and blocks others until its controller starts it; to withdraw it, on cluster virtual: kubectl ")

	assert.Equal(t, "reconcile", takeOperation(t, "queue"))
	got = waiting()
	require.Len(t, got, 2, got)
	assert.Contains(t, got[1], "operation c, retry on Shoot default/queue: operation b, rotate-ssh-keypair, on the same object was requested 20")
	assert.Contains(t, got[1], ", but no part of Pergola implements that one in this version: the operation \"rotate-ssh-keypair\" of Shoot default/queue has not started yet")
	assert.Contains(t, got[1], "kubectl annotate shoot -n default queue gardener.cloud/operation-")

	// The mark of the last operation from Git stays; it must not be mistaken for this one.
	patchShoot(t, "queue", "somebody", `{"metadata":{"annotations":{"gardener.cloud/operation":"maintain"}}}`)
	got = waiting()
	require.Len(t, got, 1, got)
	assert.Contains(t, got[0], "operation c, retry on Shoot default/queue: the operation \"maintain\" of Shoot default/queue has not started yet")
	assert.Equal(t, "maintain", takeOperation(t, "queue"))
	assert.Empty(t, waiting())
	assert.Equal(t, "retry", takeOperation(t, "queue"))
}

// TestOperationsSurviveACrash checks that a crash at any point neither loses an operation nor
// repeats it.
func TestOperationsSurviveACrash(t *testing.T) {
	w := newFolderLandscape(t, "crash", map[string]string{"shoot.yaml": shootFile("crash"), "operations/one.yaml": operationFile("Shoot default/crash", "reconcile")})
	w.mustSync()
	c := w.newConverger()
	o := c.landscape.Operations[0]
	intend := func(id string) *operationLedger {
		records, err := c.operationRecords(testContext(t))
		require.NoError(t, err)
		require.NoError(t, records.write(testContext(t), id, operationRecord{Digest: o.Digest, Object: o.Object(), Operation: o.Operation,
			State: operationIntended, UID: liveShoot(t, "crash").GetUID(), At: time.Now()}))
		return records
	}
	t.Run("after the intent", func(t *testing.T) {
		intend("one")
		require.NoError(t, w.newConverger().runOperations(testContext(t), Virtual))
		assert.Equal(t, "reconcile", takeOperation(t, "crash"))
		require.NoError(t, w.newConverger().runOperations(testContext(t), Virtual))
		assert.Empty(t, takeOperation(t, "crash"))
	})
	t.Run("after the annotation", func(t *testing.T) {
		intend("one") // as if the completion was not recorded
		require.NoError(t, w.newConverger().runOperations(testContext(t), Virtual))
		assert.Empty(t, takeOperation(t, "crash"))
	})
	t.Run("of an object that was made anew since", func(t *testing.T) {
		intend("one")
		patchShoot(t, "crash", "somebody", `{"metadata":{"annotations":{"landscape.pergola.dev/operation-id":null}}}`)
		require.NoError(t, resourceClient(t, shootResource, "default").Delete(testContext(t), "crash", metav1.DeleteOptions{}))
		w.syncEventually()
		require.NoError(t, w.newConverger().runOperations(testContext(t), Virtual))
		assert.Empty(t, takeOperation(t, "crash"))
	})
	t.Run("two at a time", func(t *testing.T) {
		w.write("operations/two.yaml", operationFile("Shoot default/crash", "retry"))
		a, b := w.newConverger(), w.newConverger()
		stale, err := a.operationRecords(testContext(t))
		require.NoError(t, err)
		require.NoError(t, b.runOperations(testContext(t), Virtual))
		assert.Equal(t, "retry", takeOperation(t, "crash"))
		err = a.runOperation(testContext(t), stale, a.landscape.Operations[1])
		require.Error(t, err, "its records are old")
		assert.Empty(t, takeOperation(t, "crash"))
	})
}

func (w *folderLandscape) syncEventually() {
	w.Helper()
	require.Eventually(w, func() bool {
		_, err := w.sync()
		return err == nil
	}, 20*time.Second, 20*time.Millisecond)
}

func TestOperate(t *testing.T) {
	w := newFolderLandscape(t, "operate", map[string]string{"shoot.yaml": shootFile("operate")})
	c := w.mustSync()
	operate := func(operation string) error {
		return c.Operate(testContext(t), Operation{Object: "Shoot default/operate", Operation: operation})
	}
	for operation, want := range map[string]string{
		"reconcil":                             `did you mean "reconcile"?`,
		"renew-kubeconfig":                     `there is no operation "renew-kubeconfig" on a Shoot`,
		"rotate-ca-complete":                   "",
		"maintain;retry":                       "combined",
		"rotate-etcd-encryption-key-start":     "",
		"reconcile;" + "confirm-deletion":      "cannot be combined with other operations",
		"rollout-workers=a":                    "",
		"rotate-credentials-complete;maintain": "combined",
	} {
		err := operate(operation)
		if want == "" {
			if err == nil {
				takeOperation(t, "operate")
			}
			continue
		}
		require.ErrorContains(t, err, want, operation)
		assert.Empty(t, takeOperation(t, "operate"), operation)
	}
	require.NoError(t, operate("reconcile"))
	require.ErrorContains(t, operate("retry"), `the operation "reconcile" of Shoot default/operate has not started yet`)
	assert.Equal(t, "reconcile", takeOperation(t, "operate"))
	require.ErrorContains(t, c.Operate(testContext(t), Operation{Object: "Shoot operate", Operation: "reconcile"}), "lacks the namespace")
	require.ErrorContains(t, c.Operate(testContext(t), Operation{Object: "Shoot default/nothing", Operation: "reconcile"}), "not found")

	for operation, told := range map[string]string{"reconcile": "", "retry": "", "maintain": "no part of Pergola implements it in this version"} {
		said := ""
		require.NoError(t, c.Operate(testContext(t), Operation{Object: "Shoot default/operate", Operation: operation, OnProgress: func(s string) { said += s }}))
		assert.Contains(t, said, told, operation)
		assert.Equal(t, told == "", said == "", operation)
		takeOperation(t, "operate")
	}
	require.NoError(t, operate("confirm-deletion"))
	assert.Equal(t, "true", liveShoot(t, "operate").GetAnnotations()["confirmation.gardener.cloud/deletion"])
}

func TestOperateWaits(t *testing.T) {
	for state, fails := range map[string]bool{"Succeeded": false, "Failed": true} {
		t.Run(state, func(t *testing.T) {
			name := "waits-" + strings.ToLower(state)
			w := newFolderLandscape(t, name, map[string]string{"shoot.yaml": shootFile(name)})
			c := w.mustSync()
			var said []string
			ended := make(chan error, 1)
			go func() {
				ended <- c.Operate(testContext(t), Operation{Object: "Shoot default/" + name, Operation: "reconcile", Wait: true, OnProgress: func(s string) { said = append(said, s) }})
			}()
			eventually(t, "it was asked for", func() bool { return liveShoot(t, name).GetAnnotations()[annotationOperation] == "reconcile" })
			eventually(t, "the wait began", w.clock.HasWaiters)
			takeOperation(t, name)
			status := func(state string) {
				live := liveShoot(t, name)
				require.NoError(t, unstructured.SetNestedMap(live.Object, map[string]any{"type": "Reconcile", "state": state, "progress": int64(50),
					"description": "things happen", "lastUpdateTime": w.clock.Now().UTC().Format(time.RFC3339)}, "status", "lastOperation"))
				require.NoError(t, unstructured.SetNestedField(live.Object, "x", "status", "uid"))
				for field, v := range map[string]any{"gardener": map[string]any{"id": "a", "name": "a", "version": "1"}, "hibernated": false, "technicalID": "x"} {
					require.NoError(t, unstructured.SetNestedField(live.Object, v, "status", field))
				}
				_, err := resourceClient(t, shootResource, "default").UpdateStatus(testContext(t), live, metav1.UpdateOptions{FieldManager: "gardenlet"})
				require.NoError(t, err)
			}
			status("Processing")
			w.clock.Step(operationPollInterval)
			status(state)
			eventually(t, "it ends", func() bool {
				w.clock.Step(operationPollInterval)
				return len(ended) > 0
			})
			err := <-ended
			if fails {
				require.ErrorContains(t, err, "Shoot default/"+name+": Reconcile Failed (50%): things happen")
			} else {
				require.NoError(t, err)
			}
			assert.Contains(t, said, "Reconcile "+state+" (50%): things happen")
		})
	}
	t.Run("not for ever", func(t *testing.T) {
		w := newFolderLandscape(t, "waits-long", map[string]string{"shoot.yaml": shootFile("waits-long")})
		c := w.mustSync()
		ctx, cancel := context.WithCancel(testContext(t))
		ended, began := make(chan error, 1), w.clock.Now()
		type word struct {
			text string
			at   time.Duration
		}
		said := make(chan word, 100)
		go func() {
			ended <- c.Operate(ctx, Operation{Object: "Shoot default/waits-long", Operation: "reconcile", Wait: true, OnProgress: func(text string) {
				said <- word{text, w.clock.Since(began)}
			}})
		}()
		eventually(t, "it is said that nobody does it", func() bool {
			if w.clock.HasWaiters() {
				w.clock.Step(operationPollInterval)
			}
			return len(said) > 0
		})
		first := <-said
		assert.Contains(t, first.text, "it has not started yet")
		assert.GreaterOrEqual(t, first.at, operationStartTime, "that is no alarm while somebody may be about to")
		cancel()
		err := <-ended
		require.ErrorContains(t, err, "reconcile on Shoot default/waits-long was requested, but did not start before the interruption: the request stays")
		assert.NotContains(t, err.Error(), "kubectl", "that was said before")
	})
}

// TestOperateStopsWithoutHandler checks that Operate stops waiting if no one handles the operation:
// at once if no gardenlet of the seed runs, else after operationStartTime.
func TestOperateStopsWithoutHandler(t *testing.T) {
	w := newFolderLandscape(t, "alone", map[string]string{"shoot.yaml": shootFile("alone")})
	c := w.mustSync()
	follow := func(object, operation string) chan error {
		ended := make(chan error, 1)
		go func() {
			ended <- c.Operate(testContext(t), Operation{Object: object, Operation: operation, Wait: true})
		}()
		return ended
	}
	ended, began := follow("Shoot default/alone", "maintain"), w.clock.Now()
	eventually(t, "it ends", func() bool {
		if w.clock.HasWaiters() {
			w.clock.Step(operationPollInterval)
		}
		return len(ended) > 0
	})
	err := <-ended
	require.ErrorAs(t, err, new(*NoHandlerError))
	require.ErrorContains(t, err, "maintain on Shoot default/alone was requested, but did not start within 20s; no part of Pergola implements it in this version. The request stays")
	require.ErrorContains(t, err, "; to withdraw it, on cluster virtual: kubectl annotate shoot -n default alone gardener.cloud/operation-")
	assert.GreaterOrEqual(t, w.clock.Since(began), operationStartTime)
	assert.Equal(t, "maintain", takeOperation(t, "alone"))

	live := liveShoot(t, "alone")
	require.NoError(t, unstructured.SetNestedField(live.Object, "far", "spec", "seedName"))
	look := handlerCheck{cluster: c.connections.clusters[Virtual], operation: "reconcile"}
	err = look.checkHandler(testContext(t), live, w.clock.Now(), w.clock.Now())
	require.ErrorContains(t, err, "reconcile on Shoot default/alone was requested, but cannot start: no gardenlet of seed far runs: its lease gardener-system-seed-lease/far never had a holder. The request stays, and starts when one runs; to withdraw it, on cluster virtual: kubectl ")
	require.NoError(t, look.checkHandler(testContext(t), live, w.clock.Now(), w.clock.Now()), "it was looked a moment ago")
}

func TestGardenOperationsUseRuntimeCluster(t *testing.T) {
	assert.Equal(t, Runtime, operationCluster("Garden"))
	assert.Equal(t, Virtual, operationCluster("Shoot"))
	kind, namespace, name, problem := landscapes.ParseOperationTarget("Garden local")
	assert.Equal(t, []string{"Garden", "", "local", ""}, []string{kind, namespace, name, problem})
}
