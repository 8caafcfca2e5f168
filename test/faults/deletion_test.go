// SPDX-License-Identifier: Apache-2.0

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
	"github.com/pergola-dev/pergola/hack/testselection"
)

// maxWrites is one more than the number of writes of the first deployment.
const maxWrites = 16

// runAtEachWrite runs a test for every write of the first deployment, or for a sample.
func runAtEachWrite(t *testing.T, run func(w *testEnvironment, p *engineProcess, n int)) {
	t.Helper()
	for n := range testselection.Points(t) {
		if n > maxWrites {
			return
		}
		t.Run(fmt.Sprint("write ", n), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 5*time.Minute)
			run(w, w.startEngine("seed"), n)
		})
	}
}

// waitForEvent waits for an event; the deployment may end without it.
func (w *testEnvironment) waitForEvent(done <-chan struct{}) {
	w.Helper()
	w.waitUntilCorrect(stateTimeout, func() []string {
		select {
		case <-done:
			return nil
		default:
			return w.findDifferences()
		}
	})
}

// TestManagedResourceDeletedWhileApplying checks that nothing of it remains.
func TestManagedResourceDeletedWhileApplying(t *testing.T) {
	runAtEachWrite(t, func(w *testEnvironment, p *engineProcess, n int) {
		mr := w.reference("ManagedResource", "thing")
		var err error
		gone := p.callAt(n, func() { err = w.resource(mr).Delete(w.ctx, "thing", metav1.DeleteOptions{}) })
		w.allowDeletion(w.initialObjects()...)
		w.declareResource("thing", "seed", w.initialObjects())
		w.waitForEvent(gone)
		p.setFaults(nil)
		require.NoError(w, err)
		if live, err := w.get("ManagedResource", "thing"); err == nil && live.GetDeletionTimestamp() == nil {
			w.deleteResource("thing") // it took fewer writes
		}
		delete(w.wantedObjects, "thing")
		w.requireCorrectState()
	})
}

// TestSecretDeletedWhileApplying: nothing is deleted for it, and another Secret continues.
func TestSecretDeletedWhileApplying(t *testing.T) {
	runAtEachWrite(t, func(w *testEnvironment, p *engineProcess, n int) {
		secret := w.reference("Secret", "data-1")
		var err error
		gone := p.callAt(n, func() { err = w.resource(secret).Delete(w.ctx, "data-1", metav1.DeleteOptions{}) })
		w.declareResource("thing", "seed", w.initialObjects())
		w.waitForEvent(gone)
		p.setFaults(nil)
		require.NoError(w, err)
		if _, err := w.get("Secret", "data-1"); err == nil {
			require.NoError(w, w.resource(secret).Delete(w.ctx, "data-1", metav1.DeleteOptions{}))
		}
		w.waitUntilCorrect(stateTimeout, func() []string {
			if text := w.conditionComplaint("thing"); text == "" {
				return []string{"it does not say that its Secret is gone"}
			}
			return nil
		})
		w.requireNoForeignWrites()
		w.allowDeletion(w.objects(removedObject, immutableObjectAt(1))...)
		w.writeDataSecret("data-1", w.changedObjects())
		w.setWanted("thing", "seed", w.changedObjects())
		w.requireCorrectState()
		w.deleteResource("thing")
		w.requireCorrectState()
	})
}

// TestNamespaceDeletedWhileApplying deletes the namespace of some objects. It is one of the objects
// itself, or a person creates it again.
func TestNamespaceDeletedWhileApplying(t *testing.T) {
	t.Run("own", func(t *testing.T) {
		runAtEachWrite(t, func(w *testEnvironment, p *engineProcess, n int) {
			ns := w.object(namespace)
			gone := p.callAt(n, func() { _ = w.resource(ns).Delete(w.ctx, ns.GetName(), metav1.DeleteOptions{}) })
			w.declareResource("thing", "seed", w.initialObjects())
			w.waitForEvent(gone)
			p.setFaults(nil)
			w.requireCorrectState()
			w.deleteResource("thing")
			w.requireCorrectState()
		})
	})
	t.Run("foreign", func(t *testing.T) {
		runAtEachWrite(t, func(w *testEnvironment, p *engineProcess, n int) {
			w.create(namespace)
			ns, objects := w.object(namespace), w.objects(definition, widget, deployment, credentials, settingsAt(1), immutableObjectAt(1), removedObject)
			gone := p.callAt(n, func() { _ = w.resource(ns).Delete(w.ctx, ns.GetName(), metav1.DeleteOptions{}) })
			w.declareResource("thing", "seed", objects)
			w.waitForEvent(gone)
			p.setFaults(nil)
			if live, err := w.resource(ns).Get(w.ctx, ns.GetName(), metav1.GetOptions{}); err == nil && live.GetDeletionTimestamp() == nil {
				require.NoError(w, w.resource(ns).Delete(w.ctx, ns.GetName(), metav1.DeleteOptions{}))
			}
			w.waitUntilCorrect(stateTimeout, func() []string {
				if _, err := w.resource(ns).Get(w.ctx, ns.GetName(), metav1.GetOptions{}); !isNotFound(err) {
					return []string{"the namespace is still there"}
				}
				return nil
			})
			w.create(namespace)
			w.requireCorrectStateWithin(2 * stateTimeout)
			w.deleteResource("thing")
			w.requireCorrectState()
		})
	})
}

// TestDefinitionDeletedWhileApplying: without the CustomResourceDefinition of ManagedResources,
// they and their objects are deleted. When both exist again, everything is deployed again.
func TestDefinitionDeletedWhileApplying(t *testing.T) {
	draw := newRand(t)
	w := newWorld(t, 8*time.Minute)
	p := w.startEngine("seed")
	crd := w.managedResourceDefinition()
	w.foreignObjects = w.foreignObjects[:2] // their ManagedResource is deleted as well
	for round := range 3 {
		gone := p.callAt(1+draw.IntN(12), func() { _ = w.resource(crd).Delete(w.ctx, crd.GetName(), metav1.DeleteOptions{}) })
		if round == 0 {
			w.declareResource("thing", "seed", w.initialObjects())
		} else {
			w.create("{apiVersion: resources.gardener.cloud/v1alpha1, kind: ManagedResource, metadata: {name: thing, namespace: NS}, spec: {class: seed, secretRefs: [{name: data-1}]}}")
		}
		w.allowDeletion(w.initialObjects()...)
		w.waitForEvent(gone)
		p.setFaults(nil)
		if round == 0 {
			w.patch(w.reference("ManagedResource", "theirs"), "{metadata: {finalizers: null}}")
		}
		w.waitUntilCorrect(stateTimeout, func() []string {
			live, err := w.resource(crd).Get(w.ctx, crd.GetName(), metav1.GetOptions{})
			switch {
			case isNotFound(err):
				return nil
			case err == nil && live.GetDeletionTimestamp() == nil:
				_ = w.resource(crd).Delete(w.ctx, crd.GetName(), metav1.DeleteOptions{})
			}
			return []string{"the definition is still there"}
		})
		labelled, err := w.managedObjects()
		require.NoError(t, err)
		assert.Empty(t, labelled)
		w.defineManagedResources()
	}
	w.create("{apiVersion: resources.gardener.cloud/v1alpha1, kind: ManagedResource, metadata: {name: thing, namespace: NS}, spec: {class: seed, secretRefs: [{name: data-1}]}}")
	w.requireCorrectStateWithin(2 * stateTimeout)
	w.deleteResource("thing")
	w.requireCorrectState()
}

func (w *testEnvironment) managedResourceDefinition() *unstructured.Unstructured {
	for _, crd := range crds.ByGroup(resourcesv1alpha1.SchemeGroupVersion.Group) {
		if crd.Spec.Names.Kind == "ManagedResource" {
			return w.object("{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: " + crd.Name + "}}")
		}
	}
	require.Fail(w, "no definition")
	return nil
}

// defineManagedResources creates the definition, and waits until it is served.
func (w *testEnvironment) defineManagedResources() {
	w.Helper()
	require.NoError(w, suite.createDefinitions())
	w.waitUntilCorrect(stateTimeout, func() []string {
		if _, err := w.resource(w.reference("ManagedResource", "")).List(w.ctx, metav1.ListOptions{}); err != nil {
			return []string{err.Error()}
		}
		return nil
	})
}
