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

// neverRecreated are kinds whose deletion loses data or clusters; package apply protects them.
var neverRecreated = []string{"PersistentVolumeClaim", "PersistentVolume", "Namespace", "CustomResourceDefinition", "Etcd",
	"Garden", "Seed", "Shoot", "Project", "BackupBucket", "BackupEntry", "ShootState", "Infrastructure", "Worker"}

const annotationRecreate = "resources.gardener.cloud/delete-on-invalid-update"

// outcome predicts the action of the engine. An update that the API server would refuse is a
// recreation if the object allows it, and a failure otherwise. The reason of a change names fields
// that keep their live value.
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

// staysAsItIs names declared fields without an effect.
func staysAsItIs(paths []string) string {
	return strings.Join(paths, ", ") + " cannot change on a live object and stays as it is"
}

// content has the fields that an immutable ConfigMap or Secret must not change.
var content = []string{"data", "binaryData", "stringData", "immutable"}

// isTrue parses an annotation like package apply: True, 1 and t count, too.
func isTrue(o *unstructured.Unstructured, annotation string) bool {
	is, err := strconv.ParseBool(o.GetAnnotations()[annotation])
	return err == nil && is
}

// edit is a change of one object: both versions, and the different fields.
type edit struct {
	old, new map[string]any
	fields   []change.Field
	// scaled reports whether an autoscaler sets its replicas.
	scaled bool
}

// changed reports whether a value, or a value below it, differs.
func (e edit) changed(path string) bool {
	return slices.ContainsFunc(e.fields, func(f change.Field) bool {
		return within(f.Path, path) || within(path, f.Path) && !jsonvalue.Equal(e.was(path), e.is(path))
	})
}

// changedWithin returns the different fields below some paths.
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

// rule returns the paths of a change that an API server refuses.
type rule func(e edit) []string

// hits returns the paths that any of the rules refuses.
func (e edit) hits(rules []rule) []string {
	var out []string
	for _, r := range rules {
		out = append(out, r(e)...)
	}
	return out
}

// staying returns the fields that keep their live value because of the engine or the API server,
// and the reasons.
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

// fixed is a rule for immutable fields.
func fixed(paths ...string) rule {
	return func(e edit) []string {
		return slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return !e.changed(p) })
	}
}

// setOnce is a rule for fields that are immutable once set.
func setOnce(paths ...string) rule {
	return func(e edit) []string {
		return slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return e.was(p) == nil || !e.changed(p) })
	}
}

// staysSet is a rule for fields that may change but not be removed.
func staysSet(paths ...string) rule {
	return func(e edit) []string {
		return slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return e.was(p) == nil || e.is(p) != nil })
	}
}

// notLess is a rule for quantities that may only increase.
func notLess(paths ...string) rule {
	return func(e edit) []string {
		return slices.DeleteFunc(slices.Clone(paths), func(p string) bool {
			was, err := jsonvalue.Quantity(e.was(p))
			is, err2 := jsonvalue.Quantity(e.is(p))
			return err != nil || err2 == nil && is.Cmp(was) >= 0
		})
	}
}

// allBut is a rule for everything below a path except some fields.
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

// when makes rules conditional.
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
