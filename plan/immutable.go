package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/internal/jsonvalue"
)

// neverRecreated are kinds whose deletion loses what they stand for: those that package apply
// protects.
var neverRecreated = []string{"PersistentVolumeClaim", "PersistentVolume", "Namespace", "CustomResourceDefinition", "Etcd",
	"Garden", "Seed", "Shoot", "Project", "BackupBucket", "BackupEntry", "ShootState", "Infrastructure", "Worker"}

const annotationRecreate = "resources.gardener.cloud/delete-on-invalid-update"

// outcome predicts what the engine does: an update that the API server would refuse is a recreation
// where the object allows it, and fails otherwise. The reason of a change names what stays as it is
// all the same.
func (e edit) outcome(old, new *unstructured.Unstructured) (change.Action, string) {
	kept, stay := e.staying(change.RefOf(old).GroupKind())
	e.fields = fieldsBut(e.fields, kept)
	frozen, _, _ := unstructured.NestedBool(old.Object, "immutable")
	frozen = frozen && slices.Contains([]string{"ConfigMap", "Secret", "InternalSecret"}, old.GetKind())
	hits := e.hits(refusals[change.RefOf(old).GroupKind()])
	if frozen {
		hits = append(hits, e.changedWithin(content...)...)
	}
	slices.Sort(hits)
	hit := strings.Join(slices.Compact(hits), ", ")
	never := e.hits(unmendable[change.RefOf(old).GroupKind()])
	switch {
	case len(never) > 0 && old.GetName() == new.GetName():
		return change.Fail, strings.Join(never, ", ") + " cannot be changed, not even in a new object of this name: the API server will refuse it"
	case hit == "":
		return change.Change, stay
	case old.GetName() != new.GetName():
		return change.Change, "its name is a hash of its content: the old one goes when nothing refers to it any more"
	case slices.Contains(neverRecreated, old.GetKind()) && known(change.RefOf(old)):
		return change.Fail, hit + " cannot be changed, and an object of this kind is never recreated: the API server will refuse it"
	case old.GetKind() == "Service" && change.RefOf(old).Group() == "" && hit != "" && holdsItsPlace(e):
		return change.Fail, hit + " cannot be changed, and the Service cannot be made anew with the address or node port that it holds: the API server will refuse it"
	case frozen && old.GetKind() != "InternalSecret", isTrue(old, annotationRecreate), isTrue(new, annotationRecreate):
		return change.Recreate, hit + " cannot be changed"
	}
	return change.Fail, fmt.Sprintf("%s cannot be changed: the API server will refuse it; annotation %s=true has the object deleted and created anew", hit, annotationRecreate)
}

// staysAsItIs says what of a declaration has no effect.
func staysAsItIs(paths []string) string {
	return strings.Join(paths, ", ") + " cannot change on a live object and stays as it is"
}

// content is what a ConfigMap or Secret with immutable: true may not change.
var content = []string{"data", "binaryData", "stringData", "immutable"}

// isTrue reads an annotation as package apply does: True, 1 and t count, too.
func isTrue(o *unstructured.Unstructured, annotation string) bool {
	is, err := strconv.ParseBool(o.GetAnnotations()[annotation])
	return err == nil && is
}

// edit is a change of one object: both versions, and the fields that differ.
type edit struct {
	old, new map[string]any
	fields   []change.Field
	// scaled says that an autoscaler sets its replicas.
	scaled bool
}

// changed tells whether a value differs, itself or in what is below it.
func (e edit) changed(path string) bool {
	return slices.ContainsFunc(e.fields, func(f change.Field) bool {
		return within(f.Path, path) || within(path, f.Path) && !jsonvalue.Equal(e.was(path), e.is(path))
	})
}

// changedWithin are the differing fields below some paths.
func (e edit) changedWithin(paths ...string) []string {
	var out []string
	for _, f := range e.fields {
		if within(f.Path, paths...) {
			out = append(out, f.Path)
		}
	}
	return out
}

func (e edit) was(path string) any { return nestedValue(e.old, strings.Split(path, ".")...) }
func (e edit) is(path string) any  { return nestedValue(e.new, strings.Split(path, ".")...) }

// rule gives what of a change an API server refuses, as paths.
type rule func(e edit) []string

// hits is what some rules say together.
func (e edit) hits(rules []rule) []string {
	var out []string
	for _, r := range rules {
		out = append(out, r(e)...)
	}
	return out
}

// staying are the differing fields that stay as they live, because the engine or the API server
// keeps them, and why.
func (e edit) staying(gk schemaKind) (paths []string, why string) {
	if f := keeping[gk]; f != nil {
		paths = f(e)
	}
	var reasons []string
	if len(paths) > 0 {
		reasons = append(reasons, staysAsItIs(paths))
	}
	preserved, more := e.preserved(gk)
	return append(paths, preserved...), strings.Join(append(reasons, more...), "; ")
}

// fixed are fields that never change.
func fixed(paths ...string) rule {
	return func(e edit) []string {
		return slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return !e.changed(p) })
	}
}

// setOnce are fields that can be set where there is nothing, and then stay.
func setOnce(paths ...string) rule {
	return func(e edit) []string {
		return slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return e.was(p) == nil || !e.changed(p) })
	}
}

// staysSet are fields that may change, and not go.
func staysSet(paths ...string) rule {
	return func(e edit) []string {
		return slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return e.was(p) == nil || e.is(p) != nil })
	}
}

// notLess are quantities that only grow.
func notLess(paths ...string) rule {
	return func(e edit) []string {
		return slices.DeleteFunc(slices.Clone(paths), func(p string) bool {
			was, err := jsonvalue.Quantity(e.was(p))
			is, err2 := jsonvalue.Quantity(e.is(p))
			return err != nil || err2 == nil && is.Cmp(was) >= 0
		})
	}
}

// allBut freezes everything below a path but some fields.
func allBut(path string, but ...string) rule {
	return func(e edit) []string {
		var out []string
		for _, f := range e.fields {
			if within(f.Path, path) && !within(f.Path, but...) {
				out = append(out, f.Path)
			}
		}
		return out
	}
}

// when makes a rule depend on the change.
func when(holds func(e edit) bool, rules ...rule) rule {
	return func(e edit) []string {
		if !holds(e) {
			return nil
		}
		var out []string
		for _, r := range rules {
			out = append(out, r(e)...)
		}
		return out
	}
}
