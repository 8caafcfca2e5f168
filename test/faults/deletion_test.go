package faults

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/api/crds"
	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
	"github.com/pergola-dev/pergola/hack/speeds"
)

// lastWrite is one more than the number of writes of the first deployment.
const lastWrite = 16

// atEachWrite runs a test for every write of the first deployment, or for a sample.
func atEachWrite(t *testing.T, run func(w *world, p *process, n int)) {
	t.Helper()
	for n := range speeds.Points(t) {
		if n > lastWrite {
			return
		}
		t.Run(fmt.Sprint("write ", n), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 5*time.Minute)
			run(w, w.start("seed"), n)
		})
	}
}

// come waits for an event; the deployment may end without it.
func (w *world) come(done <-chan struct{}) {
	w.Helper()
	w.until(deadline, func() []string {
		select {
		case <-done:
			return nil
		default:
			return w.wrong()
		}
	})
}

// TestManagedResourceDeletedWhileApplying checks that nothing of it remains.
func TestManagedResourceDeletedWhileApplying(t *testing.T) {
	atEachWrite(t, func(w *world, p *process, n int) {
		mr := w.reference("ManagedResource", "thing")
		var err error
		gone := p.at(n, func() { err = w.resource(mr).Delete(w.ctx, "thing", metav1.DeleteOptions{}) })
		w.may(w.before()...)
		w.declare("thing", "seed", w.before())
		w.come(gone)
		p.use(nil)
		require.NoError(w, err)
		if live, err := w.get("ManagedResource", "thing"); err == nil && live.GetDeletionTimestamp() == nil {
			w.withdraw("thing") // it took fewer writes
		}
		delete(w.want, "thing")
		w.settled()
	})
}

// TestSecretDeletedWhileApplying: nothing is deleted for it, and another Secret continues.
func TestSecretDeletedWhileApplying(t *testing.T) {
	atEachWrite(t, func(w *world, p *process, n int) {
		secret := w.reference("Secret", "data-1")
		var err error
		gone := p.at(n, func() { err = w.resource(secret).Delete(w.ctx, "data-1", metav1.DeleteOptions{}) })
		w.declare("thing", "seed", w.before())
		w.come(gone)
		p.use(nil)
		require.NoError(w, err)
		if _, err := w.get("Secret", "data-1"); err == nil {
			require.NoError(w, w.resource(secret).Delete(w.ctx, "data-1", metav1.DeleteOptions{}))
		}
		w.until(deadline, func() []string {
			if text := w.complaint("thing"); text == "" {
				return []string{"it does not say that its Secret is gone"}
			}
			return nil
		})
		w.innocent()
		w.may(w.objects(old, fixedAt(1))...)
		w.putData("data-1", w.after())
		w.expect("thing", "seed", w.after())
		w.settled()
		w.withdraw("thing")
		w.settled()
	})
}

// TestNamespaceDeletedWhileApplying deletes the namespace of some objects. It is one of the objects
// itself, or a person creates it again.
func TestNamespaceDeletedWhileApplying(t *testing.T) {
	t.Run("own", func(t *testing.T) {
		atEachWrite(t, func(w *world, p *process, n int) {
			ns := w.object(namespace)
			gone := p.at(n, func() { _ = w.resource(ns).Delete(w.ctx, ns.GetName(), metav1.DeleteOptions{}) })
			w.declare("thing", "seed", w.before())
			w.come(gone)
			p.use(nil)
			w.settled()
			w.withdraw("thing")
			w.settled()
		})
	})
	t.Run("foreign", func(t *testing.T) {
		atEachWrite(t, func(w *world, p *process, n int) {
			w.create(namespace)
			ns, objects := w.object(namespace), w.objects(definition, widget, deployment, credentials, settingsAt(1), fixedAt(1), old)
			gone := p.at(n, func() { _ = w.resource(ns).Delete(w.ctx, ns.GetName(), metav1.DeleteOptions{}) })
			w.declare("thing", "seed", objects)
			w.come(gone)
			p.use(nil)
			if live, err := w.resource(ns).Get(w.ctx, ns.GetName(), metav1.GetOptions{}); err == nil && live.GetDeletionTimestamp() == nil {
				require.NoError(w, w.resource(ns).Delete(w.ctx, ns.GetName(), metav1.DeleteOptions{}))
			}
			w.until(deadline, func() []string {
				if _, err := w.resource(ns).Get(w.ctx, ns.GetName(), metav1.GetOptions{}); !isGone(err) {
					return []string{"the namespace is still there"}
				}
				return nil
			})
			w.create(namespace)
			w.settledWithin(2 * deadline)
			w.withdraw("thing")
			w.settled()
		})
	})
}

// TestDefinitionDeletedWhileApplying: without the CustomResourceDefinition of ManagedResources,
// they and their objects are deleted. When both exist again, everything is deployed again.
func TestDefinitionDeletedWhileApplying(t *testing.T) {
	draw := chance(t)
	w := newWorld(t, 8*time.Minute)
	p := w.start("seed")
	crd := w.managedResourceDefinition()
	w.theirs = w.theirs[:2] // their ManagedResource is deleted as well
	for round := range 3 {
		gone := p.at(1+draw.IntN(12), func() { _ = w.resource(crd).Delete(w.ctx, crd.GetName(), metav1.DeleteOptions{}) })
		if round == 0 {
			w.declare("thing", "seed", w.before())
		} else {
			w.create("{apiVersion: resources.gardener.cloud/v1alpha1, kind: ManagedResource, metadata: {name: thing, namespace: NS}, spec: {class: seed, secretRefs: [{name: data-1}]}}")
		}
		w.may(w.before()...)
		w.come(gone)
		p.use(nil)
		if round == 0 {
			w.patch(w.reference("ManagedResource", "theirs"), "{metadata: {finalizers: null}}")
		}
		w.until(deadline, func() []string {
			live, err := w.resource(crd).Get(w.ctx, crd.GetName(), metav1.GetOptions{})
			switch {
			case isGone(err):
				return nil
			case err == nil && live.GetDeletionTimestamp() == nil:
				_ = w.resource(crd).Delete(w.ctx, crd.GetName(), metav1.DeleteOptions{})
			}
			return []string{"the definition is still there"}
		})
		labelled, err := w.labelled()
		require.NoError(t, err)
		assert.Empty(t, labelled)
		w.defineManagedResources()
	}
	w.create("{apiVersion: resources.gardener.cloud/v1alpha1, kind: ManagedResource, metadata: {name: thing, namespace: NS}, spec: {class: seed, secretRefs: [{name: data-1}]}}")
	w.settledWithin(2 * deadline)
	w.withdraw("thing")
	w.settled()
}

func (w *world) managedResourceDefinition() *unstructured.Unstructured {
	for _, crd := range crds.ByGroup(resourcesv1alpha1.SchemeGroupVersion.Group) {
		if crd.Spec.Names.Kind == "ManagedResource" {
			return w.object("{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: " + crd.Name + "}}")
		}
	}
	require.Fail(w, "no definition")
	return nil
}

// defineManagedResources creates the definition, and waits until it is served.
func (w *world) defineManagedResources() {
	w.Helper()
	require.NoError(w, suite.define())
	w.until(deadline, func() []string {
		if _, err := w.resource(w.reference("ManagedResource", "")).List(w.ctx, metav1.ListOptions{}); err != nil {
			return []string{err.Error()}
		}
		return nil
	})
}
