// SPDX-License-Identifier: Apache-2.0

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

// nonRecreatableKinds are kinds whose deletion loses data or clusters; package apply protects them.
var nonRecreatableKinds = []string{"PersistentVolumeClaim", "PersistentVolume", "Namespace", "CustomResourceDefinition", "Etcd",
	"Garden", "Seed", "Shoot", "Project", "BackupBucket", "BackupEntry", "ShootState", "Infrastructure", "Worker"}

const annotationRecreate = "resources.gardener.cloud/delete-on-invalid-update"

// predictAction predicts the action of the engine. An update that the API server would refuse is a
// recreation if the object allows it, and a failure otherwise. The reason of a change names fields
// that keep their live value.
func (e objectChange) predictAction(old, new *unstructured.Unstructured) (change.Action, string) {
	kept, stay := e.retainedFields(change.RefOf(old).GroupKind())
	e.fields = fieldsExcept(e.fields, kept)
	frozen, _, _ := unstructured.NestedBool(old.Object, "immutable")
	frozen = frozen && slices.Contains([]string{"ConfigMap", "Secret", "InternalSecret"}, old.GetKind())
	hits := e.refusedPaths(updateRules[change.RefOf(old).GroupKind()])
	if frozen {
		hits = append(hits, e.changedWithin(immutableContent...)...)
	}
	slices.Sort(hits)
	hit := strings.Join(slices.Compact(hits), ", ")
	never := e.refusedPaths(creationRules[change.RefOf(old).GroupKind()])
	switch {
	case len(never) > 0 && old.GetName() == new.GetName():
		return change.Fail, strings.Join(never, ", ") + " cannot be changed, not even in a new object of this name: the API server refuses it"
	case hit == "":
		return change.Change, stay
	case old.GetName() != new.GetName():
		return change.Change, "its name is a hash of its content: the old object is deleted when nothing refers to it"
	case slices.Contains(nonRecreatableKinds, old.GetKind()) && isKnownGroup(change.RefOf(old)):
		return change.Fail, hit + " cannot be changed, and an object of this kind is never recreated: the API server refuses it"
	case old.GetKind() == "Service" && change.RefOf(old).Group() == "" && hit != "" && hasAddressConflict(e):
		return change.Fail, hit + " cannot be changed, and the Service cannot be recreated with the address or node port that it holds: the API server refuses it"
	case frozen && old.GetKind() != "InternalSecret", isTrue(old, annotationRecreate), isTrue(new, annotationRecreate):
		return change.Recreate, hit + " cannot be changed"
	}
	return change.Fail, fmt.Sprintf("%s cannot be changed: the API server refuses it; annotation %s=true deletes and recreates the object", hit, annotationRecreate)
}

// retainedText names declared fields without an effect.
func retainedText(paths []string) string {
	return strings.Join(paths, ", ") + " cannot change on a live object and keeps its value"
}

// immutableContent has the fields that an immutable ConfigMap or Secret must not change.
var immutableContent = []string{"data", "binaryData", "stringData", "immutable"}

// isTrue parses an annotation like package apply: True, 1 and t count, too.
func isTrue(o *unstructured.Unstructured, annotation string) bool {
	is, err := strconv.ParseBool(o.GetAnnotations()[annotation])
	return err == nil && is
}

// objectChange is a change of one object: both versions, and the different fields.
type objectChange struct {
	old, new map[string]any
	fields   []change.Field
	// isAutoscaled reports whether an autoscaler sets its replicas.
	isAutoscaled bool
}

// hasChanged reports whether a value, or a value below it, differs.
func (e objectChange) hasChanged(path string) bool {
	return slices.ContainsFunc(e.fields, func(f change.Field) bool {
		return isWithin(f.Path, path) || isWithin(path, f.Path) && !jsonvalue.Equal(e.oldValue(path), e.newValue(path))
	})
}

// changedWithin returns the different fields below some paths.
func (e objectChange) changedWithin(paths ...string) []string {
	var out []string
	for _, f := range e.fields {
		if isWithin(f.Path, paths...) {
			out = append(out, f.Path)
		}
	}
	return out
}

func (e objectChange) oldValue(path string) any {
	return nestedValue(e.old, strings.Split(path, ".")...)
}
func (e objectChange) newValue(path string) any {
	return nestedValue(e.new, strings.Split(path, ".")...)
}

// updateRule returns the paths of a change that an API server refuses.
type updateRule func(e objectChange) []string

// refusedPaths returns the paths that any of the rules refuses.
func (e objectChange) refusedPaths(rules []updateRule) []string {
	var out []string
	for _, r := range rules {
		out = append(out, r(e)...)
	}
	return out
}

// retainedFields returns the fields that keep their live value because of the engine or the API
// server, and the reasons.
func (e objectChange) retainedFields(gk schemaKind) (paths []string, why string) {
	if f := retainedFieldsOf[gk]; f != nil {
		paths = f(e)
	}
	var reasons []string
	if len(paths) > 0 {
		reasons = append(reasons, retainedText(paths))
	}
	preserved, more := e.preservedFields(gk)
	return append(paths, preserved...), strings.Join(append(reasons, more...), "; ")
}

// immutableFields is a rule for immutable fields.
func immutableFields(paths ...string) updateRule {
	return func(e objectChange) []string {
		return slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return !e.hasChanged(p) })
	}
}

// immutableOnceSet is a rule for fields that are immutable once set.
func immutableOnceSet(paths ...string) updateRule {
	return func(e objectChange) []string {
		return slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return e.oldValue(p) == nil || !e.hasChanged(p) })
	}
}

// notRemovable is a rule for fields that may change but not be removed.
func notRemovable(paths ...string) updateRule {
	return func(e objectChange) []string {
		return slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return e.oldValue(p) == nil || e.newValue(p) != nil })
	}
}

// notDecreasing is a rule for quantities that may only increase.
func notDecreasing(paths ...string) updateRule {
	return func(e objectChange) []string {
		return slices.DeleteFunc(slices.Clone(paths), func(p string) bool {
			was, err := jsonvalue.Quantity(e.oldValue(p))
			is, err2 := jsonvalue.Quantity(e.newValue(p))
			return err != nil || err2 == nil && is.Cmp(was) >= 0
		})
	}
}

// immutableExcept is a rule for everything below a path except some fields.
func immutableExcept(path string, but ...string) updateRule {
	return func(e objectChange) []string {
		var out []string
		for _, f := range e.fields {
			if isWithin(f.Path, path) && !isWithin(f.Path, but...) {
				out = append(out, f.Path)
			}
		}
		return out
	}
}

// conditionalRules makes rules conditional.
func conditionalRules(holds func(e objectChange) bool, rules ...updateRule) updateRule {
	return func(e objectChange) []string {
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
