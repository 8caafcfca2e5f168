package mutation

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pergola-dev/pergola/schemas"
)

// ManagedSeeds are the declarations of a landscape, with the ManagedSeeds among them as the API
// shows them: it holds them against the rules of Seeds only after their Shoots have filled them in.
type ManagedSeeds struct {
	// Inputs are the declarations in their order. A ManagedSeed whose Shoot is not declared stays
	// as it is.
	Inputs []schemas.Input

	changes map[string][]Change
}

// CompleteManagedSeeds fills in the ManagedSeeds among the inputs, which stay as they are. It reads
// no object of a landscape without a ManagedSeed.
func CompleteManagedSeeds(inputs []schemas.Input, now time.Time) ManagedSeeds {
	out := ManagedSeeds{Inputs: inputs}
	isManagedSeed := func(in schemas.Input) bool {
		gvk, _, _ := in.Identity()
		return gvk.GroupKind() == kindManagedSeed && in.Declared()
	}
	if !slices.ContainsFunc(inputs, isManagedSeed) {
		return out
	}
	out.Inputs, out.changes = slices.Clone(inputs), map[string][]Change{}
	declared, former := New(Inputs(inputs, (*schemas.Input).Content), now), New(Inputs(inputs, formerContent), now)
	for i := range out.Inputs {
		if in := &out.Inputs[i]; isManagedSeed(*in) {
			object, changes := declared.completeManagedSeed(in.Content())
			if len(changes) == 0 {
				continue
			}
			if in.Changed() {
				old, _ := former.completeManagedSeed(in.OldContent())
				in.Old, in.OldLater = old, nil
			}
			in.Object, in.Later = object, nil
			out.changes[object.GetNamespace()+"/"+object.GetName()] = changes
		}
	}
	return out
}

// formerContent is an object before the change; a new one is taken as if it had been there.
func formerContent(in *schemas.Input) *unstructured.Unstructured {
	if old := in.OldContent(); old != nil {
		return old
	}
	return in.Content()
}

// completeManagedSeed gives a ManagedSeed with the configuration that its Shoot gives to it, and
// what that is. A Shoot without zones gives an empty list, which says that nothing more is to come.
func (s *Surroundings) completeManagedSeed(object *unstructured.Unstructured) (*unstructured.Unstructured, []Change) {
	result := s.managedSeed(object)
	result.Changes = slices.DeleteFunc(result.Changes, func(c Change) bool { return c.Mutation != managedSeedConfig })
	if len(result.Changes) == 0 {
		return object, nil
	}
	zones := []string{"spec", "gardenlet", "config", "seedConfig", "spec", "provider", "zones"}
	full := object.DeepCopy()
	if result.ApplyTo(full) != nil {
		return object, nil // its form is broken, which the structure says
	}
	if _, found, err := unstructured.NestedFieldNoCopy(full.Object, zones...); err == nil && !found {
		// the fields around it were read just now
		_ = unstructured.SetNestedSlice(full.Object, []any{}, zones...)
	}
	return full, result.Changes
}

// Explain adds to findings about values that were filled in where these come from.
func (m ManagedSeeds) Explain(found []schemas.Violation) {
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

// inputObjects is an Around of inputs, whose content is read when somebody asks for it.
type inputObjects struct {
	byIdentity map[identity]*schemas.Input
	byKind     map[schema.GroupKind][]*schemas.Input
	content    func(*schemas.Input) *unstructured.Unstructured
}

// Inputs makes an Around of inputs: of their content, or of that before the change. Of two with the
// same name the first counts.
func Inputs(inputs []schemas.Input, content func(*schemas.Input) *unstructured.Unstructured) Around {
	around := inputObjects{byIdentity: map[identity]*schemas.Input{}, byKind: map[schema.GroupKind][]*schemas.Input{}, content: content}
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

func (o inputObjects) Get(kind schema.GroupKind, namespace, name string) *unstructured.Unstructured {
	if in := o.byIdentity[identity{kind, namespace, name}]; in != nil {
		return o.content(in)
	}
	return nil
}

func (o inputObjects) List(kind schema.GroupKind) []*unstructured.Unstructured {
	var list []*unstructured.Unstructured
	for _, in := range o.byKind[kind] {
		if object := o.content(in); object != nil {
			list = append(list, object)
		}
	}
	return list
}
