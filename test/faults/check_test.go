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

func isGone(err error) bool { return apierrors.IsNotFound(err) }

// settled waits until the state is correct, and checks that there was no wrong write.
func (w *world) settled() {
	w.Helper()
	w.settledWithin(deadline)
}

func (w *world) settledWithin(patience time.Duration) {
	w.Helper()
	w.until(patience, w.wrong)
	w.innocent()
}

// until polls until nothing is wrong.
func (w *world) until(patience time.Duration, wrong func() []string) {
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

// await waits for a channel to be closed.
func (w *world) await(done <-chan struct{}) {
	w.Helper()
	w.until(deadline, func() []string {
		select {
		case <-done:
			return nil
		default:
			return []string{"it does not happen"}
		}
	})
}

// innocent checks that only own objects were written, and only allowed ones deleted.
func (w *world) innocent() {
	w.Helper()
	for _, l := range w.lines {
		for _, r := range l.writes() {
			path, status := strings.CutSuffix(r.path, "/status")
			switch {
			case strings.HasSuffix(r.path, "/namespaces/"+w.ns+"/events"), strings.HasPrefix(r.path, "/apis/coordination.k8s.io/v1/namespaces/"+w.ns+"/leases"):
			case !w.mayWrite[path], status && !strings.Contains(path, "/managedresources/"):
				assert.Fail(w, "foreign object written", "%s %s", r.verb, r.path)
			case r.verb == "DELETE" && !w.mayDelete[r.path]:
				assert.Fail(w, "wanted object deleted", "%s", r.path)
			}
		}
	}
}

// wrong returns the differences from the wanted state.
func (w *world) wrong() []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	mrs, err := w.managedResources()
	if err != nil {
		return []string{err.Error()}
	}
	for _, mr := range slices.Sorted(maps.Keys(w.want)) {
		if text := w.wrongConditions(mr, mrs[mr]); text != "" {
			say("%s", text)
		}
	}
	for mr := range mrs {
		if w.want[mr] == nil && mr != "theirs" {
			say("ManagedResource %s is left over: finalizers %v, status %.1000v", mr, mrs[mr].GetFinalizers(), mrs[mr].Object["status"])
		}
	}
	if len(out) > 0 {
		return out // further checks are more expensive
	}
	there, err := w.labelled()
	if err != nil {
		return []string{err.Error()}
	}
	for _, mr := range slices.Sorted(maps.Keys(w.want)) {
		origin := w.ns + "/" + mr
		var refs []string
		for _, o := range w.want[mr] {
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
			case !holds(live.Object, o.Object):
				say("%s is %v, want %v", path, live.Object, o.Object)
			}
			delete(there, path)
		}
		slices.Sort(refs)
		have, err := w.inventory(mrs[mr])
		if w.early {
			have = slices.DeleteFunc(have, func(path string) bool { return !slices.Contains(refs, path) })
		}
		if err != nil || !slices.Equal(have, refs) {
			say("%s: inventory %v (%v), want %v", mr, have, err, refs)
		}
	}
	for path := range there {
		say("%s is left over", path)
	}
	return append(out, w.wrongTheirs()...)
}

// managedResources returns the ManagedResources of this world, by name.
func (w *world) managedResources() (map[string]*unstructured.Unstructured, error) {
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

// complaint returns a wrong condition of a ManagedResource, or "".
func (w *world) complaint(mr string) string {
	all, err := w.managedResources()
	if err != nil {
		return err.Error()
	}
	return w.wrongConditions(mr, all[mr])
}

func (w *world) wrongConditions(mr string, o *unstructured.Unstructured) string {
	if o == nil {
		return mr + " is not there"
	}
	finalizer := resourcesv1alpha1.FinalizerName
	if class := w.classes[mr]; class != "" {
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
			if c["status"] == "True" || w.early && c["reason"] == resourcesv1alpha1.ConditionDeletionPending {
				return ""
			}
			return fmt.Sprintf("%s: %v", mr, c)
		}
	}
	return mr + ": no condition"
}

// labelled returns all objects labelled as parts of our ManagedResources, by path.
func (w *world) labelled() (map[string]*unstructured.Unstructured, error) {
	out := map[string]*unstructured.Unstructured{}
	for _, gvr := range []schema.GroupVersionResource{
		{Version: "v1", Resource: "configmaps"}, {Version: "v1", Resource: "secrets"}, {Version: "v1", Resource: "namespaces"}, {Version: "v1", Resource: "serviceaccounts"},
		deployments, {Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
		{Group: w.ns + ".faults.example", Version: "v1", Resource: "widgets"},
	} {
		list, err := w.api.Resource(gvr).List(w.ctx, metav1.ListOptions{LabelSelector: resourcesv1alpha1.ManagedBy + "=" + resourcesv1alpha1.ManagedByGardener})
		if isGone(err) {
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

// wrongTheirs returns changes of foreign objects.
func (w *world) wrongTheirs() []string {
	var out []string
	for _, o := range w.theirs {
		live, err := w.resource(o).Get(w.ctx, o.GetName(), metav1.GetOptions{})
		if err != nil {
			out = append(out, err.Error())
		} else if live.GetResourceVersion() != o.GetResourceVersion() || live.GetUID() != o.GetUID() {
			out = append(out, fmt.Sprintf("%s was written by somebody: %v", pathOf(o), live.Object))
		}
	}
	return out
}

// holds reports whether a live value has all declared values.
func holds(live, declared any) bool {
	switch declared := declared.(type) {
	case map[string]any:
		have, ok := live.(map[string]any)
		for k, v := range declared {
			if !ok || !holds(have[k], v) {
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
			if !holds(have[i], declared[i]) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(live, declared)
}
