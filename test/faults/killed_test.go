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
	"github.com/pergola-dev/pergola/hack/speeds"
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
	credentials = `{apiVersion: v1, kind: Secret, metadata: {name: credentials, namespace: NS-t}, data: {password: c2VjcmV0}}`
	settings    = `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: NS}, data: {a: "%d"}}`
	fixed       = `{apiVersion: v1, kind: ConfigMap, metadata: {name: fixed, namespace: NS, annotations: {resources.gardener.cloud/delete-on-invalid-update: "true"}}, immutable: true, data: {a: "%d"}}`
	old         = `{apiVersion: v1, kind: ConfigMap, metadata: {name: old, namespace: NS-t}, data: {a: b}}`
	added       = `{apiVersion: v1, kind: ConfigMap, metadata: {name: added, namespace: NS-t}, data: {a: b}}`
)

func settingsAt(revision int) string { return fmt.Sprintf(settings, revision) }
func fixedAt(revision int) string    { return fmt.Sprintf(fixed, revision) }

func (w *world) before() []*unstructured.Unstructured {
	return w.objects(definition, widget, namespace, deployment, credentials, settingsAt(1), fixedAt(1), old)
}

// after has one additional, one removed, one changed and one recreated object.
func (w *world) after() []*unstructured.Unstructured {
	return w.objects(definition, widget, namespace, deployment, credentials, settingsAt(2), fixedAt(2), added)
}

// drift changes objects as a person does, including one whose declaration is about to change, and
// deletes another one.
func (w *world) drift() {
	w.Helper()
	w.patch(w.object(widget), "{spec: {size: 4}}")
	w.patch(w.object(settingsAt(1)), "{data: {a: other}}")
	gone := w.object(credentials)
	require.NoError(w, w.resource(gone).Delete(w.ctx, gone.GetName(), metav1.DeleteOptions{}))
}

// blow is a fault of a request, and of its process.
type blow struct {
	fate
	cut bool // the process is killed
}

// TestKilledBetweenAnyTwoRequests creates and changes a ManagedResource, moves it to another class
// and back, and deletes it. Each process has a fault at its n-th request after the start of each
// step, for all n.
func TestKilledBetweenAnyTwoRequests(t *testing.T) {
	apiserver.Needed(t)
	for name, b := range map[string]blow{
		"killed before its request gets to the server":   {fate{unreached: true}, true},
		"killed after its request, before the answer":    {fate{lost: true}, true},
		"its request does not get to the server":         {fate{unreached: true}, false},
		"its request is carried out, the answer is lost": {fate{lost: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var last atomic.Int64
			var walkers errgroup.Group
			walkers.SetLimit(4)
			for n := range speeds.Points(t) {
				if last.Load() > 0 || t.Failed() {
					break
				}
				walkers.Go(func() error {
					t.Run(fmt.Sprint("request ", n), func(t *testing.T) {
						if newWorld(t, 5*time.Minute).walk(n, b) == 0 {
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

// walker runs a ManagedResource through its life, with faults of the processes.
type walker struct {
	*world
	n    int
	blow blow
	fell int
}

// fated is a process with a fault.
type fated struct {
	*process
	hit <-chan struct{}
}

// start runs a process with a fault at its n-th request.
func (k *walker) start(class string) *fated {
	l := &line{}
	hit := l.arm(k.n, k.blow.fate, k.blow.cut)
	return &fated{k.world.start(class, func(s *setup) { s.line = l }), hit}
}

// through continues until the state is correct, and replaces killed processes. All processes then
// get their next fault.
func (k *walker) through(processes ...*fated) {
	k.Helper()
	k.until(deadline, func() []string {
		for _, p := range processes {
			k.follow(p)
		}
		return k.wrong()
	})
	k.innocent()
	for _, p := range processes {
		k.follow(p) // its last request may have had the fault
		p.hit = p.arm(k.n, k.blow.fate, k.blow.cut)
	}
}

func (k *walker) follow(p *fated) {
	select {
	case <-p.hit:
	default:
		return
	}
	k.fell++
	p.hit = nil
	if k.blow.cut {
		p.kill()
		p.process = k.world.start(p.class)
	}
}

// walk runs the whole life and returns the number of faults.
func (w *world) walk(n int, b blow) int {
	k := &walker{world: w, n: n, blow: b}
	w.declare("thing", "seed", w.before())
	seed := k.start("seed")
	k.through(seed)

	// A person has an own field in one of the objects.
	shared := w.object(settingsAt(2))
	w.patch(shared, "{metadata: {annotations: {somebody.example/note: x}}, data: {theirs: kept}}")
	w.may(w.objects(old, fixedAt(1))...)
	w.declare("thing", "seed", w.after())
	k.through(seed)
	live, err := w.resource(shared).Get(w.ctx, shared.GetName(), metav1.GetOptions{})
	require.NoError(w, err)
	assert.Equal(w, "x", live.GetAnnotations()["somebody.example/note"])
	assert.Equal(w, map[string]any{"a": "2", "theirs": "kept"}, live.Object["data"])

	w.may(w.after()...)
	mine := k.start("mine")
	w.declare("thing", "mine", w.after())
	k.through(seed, mine)
	w.declare("thing", "seed", w.before())
	w.may(w.before()...)
	k.through(mine, seed)
	w.withdraw("thing")
	k.through(seed, mine)
	return k.fell
}
