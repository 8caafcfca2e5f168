// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
)

func isNotFound(err error) bool { return apierrors.IsNotFound(err) }

// requireCorrectState waits until the state is correct, and checks that there was no wrong write.
func (w *testEnvironment) requireCorrectState() {
	w.Helper()
	w.requireCorrectStateWithin(stateTimeout)
}

func (w *testEnvironment) requireCorrectStateWithin(patience time.Duration) {
	w.Helper()
	w.waitUntilCorrect(patience, w.findDifferences)
	w.requireNoForeignWrites()
}

// waitUntilCorrect polls until nothing is wrong.
func (w *testEnvironment) waitUntilCorrect(patience time.Duration, wrong func() []string) {
	w.Helper()
	late, first, last := time.After(patience), time.Now(), ""
	for {
		began := time.Now()
		said := wrong()
		if len(said) == 0 {
			if took := time.Since(first); took > 5*time.Second && last != "" {
				w.Logf("it took %s; last: %.2000s", took.Round(time.Millisecond), last)
			}
			return
		}
		last = said[0]
		select {
		case <-late:
			require.Fail(w, "not as it should be", "%s", strings.Join(said[:min(len(said), 20)], "\n"))
		case <-time.After(max(25*time.Millisecond, 2*time.Since(began))): // checks have a cost, too
		}
	}
}

// waitForChannel waits for a channel to be closed.
func (w *testEnvironment) waitForChannel(done <-chan struct{}) {
	w.Helper()
	w.waitUntilCorrect(stateTimeout, func() []string {
		select {
		case <-done:
			return nil
		default:
			return []string{"it does not happen"}
		}
	})
}

// requireNoForeignWrites checks that only own objects were written, and only allowed ones deleted.
func (w *testEnvironment) requireNoForeignWrites() {
	w.Helper()
	for _, l := range w.transports {
		for _, r := range l.writesSoFar() {
			path, status := strings.CutSuffix(r.path, "/status")
			switch {
			case strings.HasSuffix(r.path, "/namespaces/"+w.ns+"/events"), strings.HasPrefix(r.path, "/apis/coordination.k8s.io/v1/namespaces/"+w.ns+"/leases"):
			case !w.allowedWrites[path], status && !strings.Contains(path, "/managedresources/"):
				assert.Fail(w, "foreign object written", "%s %s", r.verb, r.path)
			case r.verb == "DELETE" && !w.allowedDeletions[r.path]:
				assert.Fail(w, "wanted object deleted", "%s", r.path)
			}
		}
	}
}

// findDifferences returns the differences from the wanted state.
func (w *testEnvironment) findDifferences() []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	mrs, err := w.managedResources()
	if err != nil {
		return []string{err.Error()}
	}
	for _, mr := range slices.Sorted(maps.Keys(w.wantedObjects)) {
		if text := w.findWrongConditions(mr, mrs[mr]); text != "" {
			say("%s", text)
		}
	}
	for mr := range mrs {
		if w.wantedObjects[mr] == nil && mr != "theirs" {
			say("ManagedResource %s is left over: finalizers %v, status %.1000v", mr, mrs[mr].GetFinalizers(), mrs[mr].Object["status"])
		}
	}
	if len(out) > 0 {
		return out // further checks are more expensive
	}
	there, err := w.managedObjects()
	if err != nil {
		return []string{err.Error()}
	}
	for _, mr := range slices.Sorted(maps.Keys(w.wantedObjects)) {
		origin := w.ns + "/" + mr
		var refs []string
		for _, o := range w.wantedObjects[mr] {
			path := pathOf(o)
			refs = append(refs, path)
			live := there[path]
			switch {
			case live == nil:
				say("%s is not there", path)
			case live.GetAnnotations()[resourcesv1alpha1.Origin] != origin:
				say("%s is of %q", path, live.GetAnnotations()[resourcesv1alpha1.Origin])
			case live.GetDeletionTimestamp() != nil:
				say("%s is being deleted", path)
			case !hasDeclared(live.Object, o.Object):
				say("%s is %v, want %v", path, live.Object, o.Object)
			}
			delete(there, path)
		}
		slices.Sort(refs)
		have, err := w.inventory(mrs[mr])
		if w.hasInFlightCreates {
			have = slices.DeleteFunc(have, func(path string) bool { return !slices.Contains(refs, path) })
		}
		if err != nil || !slices.Equal(have, refs) {
			say("%s: inventory %v (%v), want %v", mr, have, err, refs)
		}
	}
	for path := range there {
		say("%s is left over", path)
	}
	return append(out, w.findForeignChanges()...)
}

// managedResources returns the ManagedResources of this world, by name.
func (w *testEnvironment) managedResources() (map[string]*unstructured.Unstructured, error) {
	list, err := w.resource(w.reference("ManagedResource", "")).List(w.ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	out := map[string]*unstructured.Unstructured{}
	for i := range list.Items {
		out[list.Items[i].GetName()] = &list.Items[i]
	}
	return out, nil
}

// conditionComplaint returns a wrong condition of a ManagedResource, or "".
func (w *testEnvironment) conditionComplaint(mr string) string {
	all, err := w.managedResources()
	if err != nil {
		return err.Error()
	}
	return w.findWrongConditions(mr, all[mr])
}

func (w *testEnvironment) findWrongConditions(mr string, o *unstructured.Unstructured) string {
	if o == nil {
		return mr + " is not there"
	}
	finalizer := resourcesv1alpha1.FinalizerName
	if class := w.classByResource[mr]; class != "" {
		finalizer += "-" + class
	}
	if !slices.Equal(o.GetFinalizers(), []string{finalizer}) {
		return fmt.Sprintf("%s: finalizers %v", mr, o.GetFinalizers())
	}
	if seen, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration"); seen != o.GetGeneration() {
		return fmt.Sprintf("%s: observed generation %d of %d", mr, seen, o.GetGeneration())
	}
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == string(resourcesv1alpha1.ResourcesApplied) {
			if c["status"] == "True" || w.hasInFlightCreates && c["reason"] == resourcesv1alpha1.ConditionDeletionPending {
				return ""
			}
			return fmt.Sprintf("%s: %v", mr, c)
		}
	}
	return mr + ": no condition"
}

// managedObjects returns all objects labelled as parts of our ManagedResources, by path.
func (w *testEnvironment) managedObjects() (map[string]*unstructured.Unstructured, error) {
	out := map[string]*unstructured.Unstructured{}
	for _, gvr := range []schema.GroupVersionResource{
		{Version: "v1", Resource: "configmaps"}, {Version: "v1", Resource: "secrets"}, {Version: "v1", Resource: "namespaces"}, {Version: "v1", Resource: "serviceaccounts"},
		deployments, {Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
		{Group: w.ns + ".faults.example", Version: "v1", Resource: "widgets"},
	} {
		list, err := w.api.Resource(gvr).List(w.ctx, metav1.ListOptions{LabelSelector: resourcesv1alpha1.ManagedBy + "=" + resourcesv1alpha1.ManagedByGardener})
		if isNotFound(err) {
			continue // the custom resource is not defined
		}
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			o := &list.Items[i]
			if origin := o.GetAnnotations()[resourcesv1alpha1.Origin]; strings.HasPrefix(origin, w.ns+"/") {
				out[pathOf(o)] = o
			}
		}
	}
	return out, nil
}

// findForeignChanges returns changes of foreign objects.
func (w *testEnvironment) findForeignChanges() []string {
	var out []string
	for _, o := range w.foreignObjects {
		live, err := w.resource(o).Get(w.ctx, o.GetName(), metav1.GetOptions{})
		if err != nil {
			out = append(out, err.Error())
		} else if live.GetResourceVersion() != o.GetResourceVersion() || live.GetUID() != o.GetUID() {
			out = append(out, fmt.Sprintf("%s was written by somebody: %v", pathOf(o), live.Object))
		}
	}
	return out
}

// hasDeclared reports whether a live value has all declared values.
func hasDeclared(live, declared any) bool {
	switch declared := declared.(type) {
	case map[string]any:
		have, ok := live.(map[string]any)
		for k, v := range declared {
			if !ok || !hasDeclared(have[k], v) {
				return false
			}
		}
		return ok || len(declared) == 0
	case []any:
		have, _ := live.([]any)
		if len(have) != len(declared) {
			return false
		}
		for i := range declared {
			if !hasDeclared(have[i], declared[i]) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(live, declared)
}
