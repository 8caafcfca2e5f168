// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/hack/apiserver"
	"github.com/pergola-dev/pergola/hack/testselection"
)

// The objects of the ManagedResource that the tests of killed processes deploy, change, hand over
// and delete.
const (
	definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.NS.faults.example}
spec:
  group: NS.faults.example
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`
	widget     = `{apiVersion: NS.faults.example/v1, kind: Widget, metadata: {name: w, namespace: NS-t}, spec: {size: 3}}`
	namespace  = `{apiVersion: v1, kind: Namespace, metadata: {name: NS-t}}`
	deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: app, namespace: NS-t}
spec:
  replicas: 1
  selector: {matchLabels: {app: app}}
  template:
    metadata: {labels: {app: app}}
    spec: {containers: [{name: app, image: "registry.k8s.io/pause:3.10"}]}
`
	credentials     = `{apiVersion: v1, kind: Secret, metadata: {name: credentials, namespace: NS-t}, data: {password: c2VjcmV0}}`
	settings        = `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: NS}, data: {a: "%d"}}`
	immutableObject = `{apiVersion: v1, kind: ConfigMap, metadata: {name: fixed, namespace: NS, annotations: {resources.gardener.cloud/delete-on-invalid-update: "true"}}, immutable: true, data: {a: "%d"}}`
	removedObject   = `{apiVersion: v1, kind: ConfigMap, metadata: {name: old, namespace: NS-t}, data: {a: b}}`
	addedObject     = `{apiVersion: v1, kind: ConfigMap, metadata: {name: added, namespace: NS-t}, data: {a: b}}`
)

func settingsAt(revision int) string        { return fmt.Sprintf(settings, revision) }
func immutableObjectAt(revision int) string { return fmt.Sprintf(immutableObject, revision) }

func (w *testEnvironment) initialObjects() []*unstructured.Unstructured {
	return w.objects(definition, widget, namespace, deployment, credentials, settingsAt(1), immutableObjectAt(1), removedObject)
}

// changedObjects has one additional, one removed, one changed and one recreated object.
func (w *testEnvironment) changedObjects() []*unstructured.Unstructured {
	return w.objects(definition, widget, namespace, deployment, credentials, settingsAt(2), immutableObjectAt(2), addedObject)
}

// changeLiveObjects changes objects as a person does, including one whose declaration is about to
// change, and deletes another one.
func (w *testEnvironment) changeLiveObjects() {
	w.Helper()
	w.patch(w.object(widget), "{spec: {size: 4}}")
	w.patch(w.object(settingsAt(1)), "{data: {a: other}}")
	gone := w.object(credentials)
	require.NoError(w, w.resource(gone).Delete(w.ctx, gone.GetName(), metav1.DeleteOptions{}))
}

// processFault is a fault of a request, and of its process.
type processFault struct {
	requestFault
	killsProcess bool // the process is killed
}

// TestKilledBetweenAnyTwoRequests creates and changes a ManagedResource, moves it to another class
// and back, and deletes it. Each process has a fault at its n-th request after the start of each
// step, for all n.
func TestKilledBetweenAnyTwoRequests(t *testing.T) {
	apiserver.SkipIfUnavailable(t)
	for name, b := range map[string]processFault{
		"killed before its request gets to the server":   {requestFault{isUnsent: true}, true},
		"killed after its request, before the answer":    {requestFault{isAnswerLost: true}, true},
		"its request does not get to the server":         {requestFault{isUnsent: true}, false},
		"its request is carried out, the answer is lost": {requestFault{isAnswerLost: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var last atomic.Int64
			var walkers errgroup.Group
			walkers.SetLimit(4)
			for n := range testselection.Points(t) {
				if last.Load() > 0 || t.Failed() {
					break
				}
				walkers.Go(func() error {
					t.Run(fmt.Sprint("request ", n), func(t *testing.T) {
						if newWorld(t, 5*time.Minute).runLifecycle(n, b) == 0 {
							last.Store(int64(n))
						}
					})
					return nil
				})
			}
			require.NoError(t, walkers.Wait())
			if !testing.Short() {
				t.Logf("no process sends %d requests", last.Load())
				assert.True(t, t.Failed() || last.Load() > 10, "more requests were expected")
			}
		})
	}
}

// lifecycleRun runs a ManagedResource through its life, with faults of the processes.
type lifecycleRun struct {
	*testEnvironment
	faultIndex int
	fault      processFault
	faultCount int
}

// faultyProcess is a process with a fault.
type faultyProcess struct {
	*engineProcess
	faulted <-chan struct{}
}

// start runs a process with a fault at its n-th request.
func (k *lifecycleRun) start(class string) *faultyProcess {
	l := &transport{}
	hit := l.faultAt(k.faultIndex, k.fault.requestFault, k.fault.killsProcess)
	return &faultyProcess{k.testEnvironment.startEngine(class, func(s *processOptions) { s.line = l }), hit}
}

// continueUntilCorrect continues until the state is correct, and replaces killed processes. All
// processes then get their next fault.
func (k *lifecycleRun) continueUntilCorrect(processes ...*faultyProcess) {
	k.Helper()
	k.waitUntilCorrect(stateTimeout, func() []string {
		for _, p := range processes {
			k.replaceKilled(p)
		}
		return k.findDifferences()
	})
	k.requireNoForeignWrites()
	for _, p := range processes {
		k.replaceKilled(p) // its last request may have had the fault
		p.faulted = p.faultAt(k.faultIndex, k.fault.requestFault, k.fault.killsProcess)
	}
}

func (k *lifecycleRun) replaceKilled(p *faultyProcess) {
	select {
	case <-p.faulted:
	default:
		return
	}
	k.faultCount++
	p.faulted = nil
	if k.fault.killsProcess {
		p.kill()
		p.engineProcess = k.testEnvironment.startEngine(p.class)
	}
}

// runLifecycle runs the whole life and returns the number of faults.
func (w *testEnvironment) runLifecycle(n int, b processFault) int {
	k := &lifecycleRun{testEnvironment: w, faultIndex: n, fault: b}
	w.declareResource("thing", "seed", w.initialObjects())
	seed := k.start("seed")
	k.continueUntilCorrect(seed)

	// A person has an own field in one of the objects.
	shared := w.object(settingsAt(2))
	w.patch(shared, "{metadata: {annotations: {somebody.example/note: x}}, data: {theirs: kept}}")
	w.allowDeletion(w.objects(removedObject, immutableObjectAt(1))...)
	w.declareResource("thing", "seed", w.changedObjects())
	k.continueUntilCorrect(seed)
	live, err := w.resource(shared).Get(w.ctx, shared.GetName(), metav1.GetOptions{})
	require.NoError(w, err)
	assert.Equal(w, "x", live.GetAnnotations()["somebody.example/note"])
	assert.Equal(w, map[string]any{"a": "2", "theirs": "kept"}, live.Object["data"])

	w.allowDeletion(w.changedObjects()...)
	mine := k.start("mine")
	w.declareResource("thing", "mine", w.changedObjects())
	k.continueUntilCorrect(seed, mine)
	w.declareResource("thing", "seed", w.initialObjects())
	w.allowDeletion(w.initialObjects()...)
	k.continueUntilCorrect(mine, seed)
	w.deleteResource("thing")
	k.continueUntilCorrect(seed, mine)
	return k.faultCount
}
