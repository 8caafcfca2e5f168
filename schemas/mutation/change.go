// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/fieldpath"
)

// Change is a filled-in field.
type Change struct {
	// Field has the form of findings: spec.provider.workers[0].machine.image.version. An index
	// equal to the list's length adds an item.
	Field string `json:"field"`
	// Value is the new value; nil removes the field, which only affects labels that the API
	// maintains.
	Value any `json:"value"`
	// Mutation is the id of the mutation that made the change; see Mutations.
	Mutation string `json:"mutation"`
	// Reason is the origin of the value.
	Reason string `json:"reason"`
}

// Result is the result of the mutations of one object.
type Result struct {
	// Changes are in the order of the mutations.
	Changes []Change
	// Problems are the reasons why the API would reject the object, as no value fits. They have no
	// file position.
	Problems []schemas.Violation
}

// PersistentChanges returns the changes that an object retains from its creation: versions, machine
// images and architectures, networks and the domain. Callers that store objects as declarations
// must store these, too.
func (r Result) PersistentChanges() Result {
	lasting := []string{shootDefaultDomain, shootNetworks, shootKubernetesVersion, shootPoolVersions, shootArchitecture, shootMachineImages}
	return Result{Changes: slices.DeleteFunc(slices.Clone(r.Changes), func(c Change) bool { return !slices.Contains(lasting, c.Mutation) })}
}

// changeRecorder collects the changes and problems of mutations.
type changeRecorder struct {
	Result
	mutationID            string
	kind, namespace, name string
}

// recordChange records a filled-in value.
func (r *changeRecorder) recordChange(field string, value any, reason string, args ...any) {
	r.Changes = append(r.Changes, Change{Field: field, Value: value, Mutation: r.mutationID, Reason: fmt.Sprintf(reason, args...)})
}

// recordProblem records that no value fits.
func (r *changeRecorder) recordProblem(rule, field string, message string, args ...any) {
	r.Problems = append(r.Problems, schemas.Violation{
		Severity: schemas.SeverityError, Kind: r.kind, Namespace: r.namespace, Name: r.name,
		Field: field, Type: schemas.TypeInvalid, Rule: rule, Message: fmt.Sprintf(message, args...),
	})
}

// recordCurrentProblem records that no value fits at this time; unchanged objects remain valid.
func (r *changeRecorder) recordCurrentProblem(rule, field string, message string, args ...any) {
	r.recordProblem(rule, field, message, args...)
	r.Problems[len(r.Problems)-1].NewOnly = true
}

// ApplyTo applies the changes to an object in place. It fails if a value cannot be encoded as JSON
// or the object has another structure.
func (r Result) ApplyTo(object *unstructured.Unstructured) error {
	for _, change := range r.Changes {
		value, err := toUnstructuredValue(change.Value)
		if err != nil {
			return fmt.Errorf("%s: %w", change.Field, err)
		}
		if object.Object, err = setField(object.Object, fieldpath.Parse(change.Field), value); err != nil {
			return fmt.Errorf("%s: %w", change.Field, err)
		}
	}
	return nil
}

// toUnstructuredValue converts a value to the form of unstructured objects: maps, lists, int64.
func toUnstructuredValue(value any) (any, error) {
	switch value.(type) {
	case nil, string, bool, int64:
		return value, nil
	}
	data, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("writing a value: %w", err)
	}
	var out any
	if err := utiljson.Unmarshal(data, &out); err != nil {
		return nil, fmt.Errorf("reading a value: %w", err)
	}
	return out, nil
}

func setField(object map[string]any, path fieldpath.Path, value any) (map[string]any, error) {
	out, err := setValueAt(object, path, value)
	if err != nil {
		return object, err
	}
	fields, _ := out.(map[string]any)
	return fields, nil
}

// setValueAt sets the value at a path and returns the changed root. It creates missing maps.
func setValueAt(at any, path fieldpath.Path, value any) (any, error) {
	if len(path) == 0 {
		return value, nil
	}
	if index, ok := path[0].(int); ok {
		if list, isList := at.([]any); isList || at == nil {
			return setItemAt(list, index, path[1:], value)
		}
	}
	fields, ok := at.(map[string]any)
	if !ok && at != nil {
		return nil, fmt.Errorf("there is a %T where fields are expected", at)
	}
	if fields == nil {
		fields = map[string]any{}
	}
	name := fieldpath.StepName(path[0])
	if len(path) == 1 && value == nil {
		delete(fields, name)
		return fields, nil
	}
	inner, err := setValueAt(fields[name], path[1:], value)
	if err != nil {
		return nil, err
	}
	fields[name] = inner
	return fields, nil
}

// setItemAt is place for lists. An index beyond the end appends an item, because defaults may have
// made the list longer.
func setItemAt(list []any, index int, path fieldpath.Path, value any) (any, error) {
	if index >= len(list) {
		item, err := setValueAt(nil, path, value)
		return append(list, item), err
	}
	item, err := setValueAt(list[index], path, value)
	if err == nil {
		list[index] = item
	}
	return list, err
}
