// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pergola-dev/pergola/schemas"
)

// CompletedManagedSeeds are the declarations of a landscape with completed CompletedManagedSeeds.
// The API checks the rules of Seeds only after it has filled in values of their Shoots.
type CompletedManagedSeeds struct {
	// Inputs are the declarations in their order. CompletedManagedSeeds with undeclared Shoots are
	// unchanged.
	Inputs []schemas.Input

	changes map[string][]Change
}

// CompleteManagedSeeds returns the inputs with completed CompletedManagedSeeds and does not change
// its argument. Without a ManagedSeed it reads no objects.
func CompleteManagedSeeds(inputs []schemas.Input, now time.Time) CompletedManagedSeeds {
	out := CompletedManagedSeeds{Inputs: inputs}
	isManagedSeed := func(in schemas.Input) bool {
		gvk, _, _ := in.Identity()
		return gvk.GroupKind() == kindManagedSeed && in.IsDeclared()
	}
	if !slices.ContainsFunc(inputs, isManagedSeed) {
		return out
	}
	out.Inputs, out.changes = slices.Clone(inputs), map[string][]Change{}
	declared, former := New(NewInputLister(inputs, (*schemas.Input).Content), now), New(NewInputLister(inputs, oldContent), now)
	for i := range out.Inputs {
		if in := &out.Inputs[i]; isManagedSeed(*in) {
			object, changes := declared.completeManagedSeed(in.Content())
			if len(changes) == 0 {
				continue
			}
			if in.HasOld() {
				old, _ := former.completeManagedSeed(in.OldContent())
				in.Old, in.OldLazy = old, nil
			}
			in.Object, in.Lazy = object, nil
			out.changes[object.GetNamespace()+"/"+object.GetName()] = changes
		}
	}
	return out
}

// oldContent returns an object before the change; new objects count as unchanged.
func oldContent(in *schemas.Input) *unstructured.Unstructured {
	if old := in.OldContent(); old != nil {
		return old
	}
	return in.Content()
}

// completeManagedSeed returns a ManagedSeed with the configuration of its Shoot, and the changes.
// If the Shoot has no zones, it sets an empty list to mark the configuration as complete.
func (s *Mutator) completeManagedSeed(object *unstructured.Unstructured) (*unstructured.Unstructured, []Change) {
	result := s.mutateManagedSeed(object)
	result.Changes = slices.DeleteFunc(result.Changes, func(c Change) bool { return c.Mutation != managedSeedConfig })
	if len(result.Changes) == 0 {
		return object, nil
	}
	zones := []string{"spec", "gardenlet", "config", "seedConfig", "spec", "provider", "zones"}
	full := object.DeepCopy()
	if result.ApplyTo(full) != nil {
		return object, nil // the structure reports the fault
	}
	if _, found, err := unstructured.NestedFieldNoCopy(full.Object, zones...); err == nil && !found {
		// the parent fields were readable above
		_ = unstructured.SetNestedSlice(full.Object, []any{}, zones...)
	}
	return full, result.Changes
}

// ExplainFindings appends the origin of filled-in values to findings about them.
func (m CompletedManagedSeeds) ExplainFindings(found []schemas.Violation) {
	for i := range found {
		v := &found[i]
		if v.Kind != kindManagedSeed.Kind {
			continue
		}
		for _, change := range m.changes[v.Namespace+"/"+v.Name] {
			if v.Field == change.Field || strings.HasPrefix(v.Field, change.Field+".") || strings.HasPrefix(v.Field, change.Field+"[") {
				v.Message += "; the API fills it in: " + change.Reason
				break
			}
		}
	}
}

// inputLister implements Around with inputs, and reads their content on demand.
type inputLister struct {
	byIdentity map[identity]*schemas.Input
	byKind     map[schema.GroupKind][]*schemas.Input
	contentOf  func(*schemas.Input) *unstructured.Unstructured
}

// NewInputLister returns an Around for inputs; content selects the revision. The first of two
// objects with the same name counts.
func NewInputLister(inputs []schemas.Input, content func(*schemas.Input) *unstructured.Unstructured) ObjectLister {
	around := inputLister{byIdentity: map[identity]*schemas.Input{}, byKind: map[schema.GroupKind][]*schemas.Input{}, contentOf: content}
	for i := range inputs {
		in := &inputs[i]
		gvk, namespace, name := in.Identity()
		id := identity{gvk.GroupKind(), namespace, name}
		if around.byIdentity[id] == nil {
			around.byIdentity[id] = in
			around.byKind[id.kind] = append(around.byKind[id.kind], in)
		}
	}
	return around
}

func (o inputLister) Get(kind schema.GroupKind, namespace, name string) *unstructured.Unstructured {
	if in := o.byIdentity[identity{kind, namespace, name}]; in != nil {
		return o.contentOf(in)
	}
	return nil
}

func (o inputLister) List(kind schema.GroupKind) []*unstructured.Unstructured {
	var list []*unstructured.Unstructured
	for _, in := range o.byKind[kind] {
		if object := o.contentOf(in); object != nil {
			list = append(list, object)
		}
	}
	return list
}
