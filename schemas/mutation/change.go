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

// Change is a field that was filled in.
type Change struct {
	// Field as findings write it: spec.provider.workers[0].machine.image.version. The index after
	// the last item of a list stands for a new item.
	Field string `json:"field"`
	// Value that the field got; nil where it was taken away, which only happens to labels that the
	// API keeps by itself.
	Value any `json:"value"`
	// Mutation is the id of the mutation that did it; see Mutations.
	Mutation string `json:"mutation"`
	// Reason says where the value comes from.
	Reason string `json:"reason"`
}

// Result of the mutations of one object.
type Result struct {
	// Changes in the order in which they were made.
	Changes []Change
	// Problems are why the API would refuse the object instead: nothing to take a value from fits.
	// They have no place.
	Problems []schemas.Violation
}

// Lasting are the changes that are made when an object is new, and last as long as it does:
// versions, images and architectures of machines, networks and the domain. Whoever keeps objects by
// their declarations has to keep these with them.
func (r Result) Lasting() Result {
	lasting := []string{shootDomain, shootNetworks, shootKubernetes, shootPools, shootArchitecture, shootImages}
	return Result{Changes: slices.DeleteFunc(slices.Clone(r.Changes), func(c Change) bool { return !slices.Contains(lasting, c.Mutation) })}
}

// recorder notes what mutations do.
type recorder struct {
	Result
	id                    string
	kind, namespace, name string
}

// filled notes a value that a field got.
func (r *recorder) filled(field string, value any, reason string, args ...any) {
	r.Changes = append(r.Changes, Change{Field: field, Value: value, Mutation: r.id, Reason: fmt.Sprintf(reason, args...)})
}

// refused notes that nothing fits.
func (r *recorder) refused(rule, field string, message string, args ...any) {
	r.Problems = append(r.Problems, schemas.Violation{
		Severity: schemas.SeverityError, Kind: r.kind, Namespace: r.namespace, Name: r.name,
		Field: field, Type: schemas.TypeInvalid, Rule: rule, Message: fmt.Sprintf(message, args...),
	})
}

// refusedNow notes that nothing fits at the time. What was so before stays.
func (r *recorder) refusedNow(rule, field string, message string, args ...any) {
	r.refused(rule, field, message, args...)
	r.Problems[len(r.Problems)-1].NewOnly = true
}

// ApplyTo makes the changes in an object, in place. The error says that a value cannot be written
// as JSON, or that the object has another form than the one that the changes are for.
func (r Result) ApplyTo(object *unstructured.Unstructured) error {
	for _, change := range r.Changes {
		value, err := generic(change.Value)
		if err != nil {
			return fmt.Errorf("%s: %w", change.Field, err)
		}
		if object.Object, err = set(object.Object, fieldpath.Parse(change.Field), value); err != nil {
			return fmt.Errorf("%s: %w", change.Field, err)
		}
	}
	return nil
}

// generic gives a value as the API machinery holds it: maps, lists, int64.
func generic(value any) (any, error) {
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

func set(object map[string]any, path fieldpath.Path, value any) (map[string]any, error) {
	out, err := place(object, path, value)
	if err != nil {
		return object, err
	}
	fields, _ := out.(map[string]any)
	return fields, nil
}

// place gives what stands at the beginning of a path with a value at its end; maps on the way are
// made.
func place(at any, path fieldpath.Path, value any) (any, error) {
	if len(path) == 0 {
		return value, nil
	}
	if index, ok := path[0].(int); ok {
		if list, isList := at.([]any); isList || at == nil {
			return placeItem(list, index, path[1:], value)
		}
	}
	fields, ok := at.(map[string]any)
	if !ok && at != nil {
		return nil, fmt.Errorf("there is a %T where fields are expected", at)
	}
	if fields == nil {
		fields = map[string]any{}
	}
	name := fieldpath.Name(path[0])
	if len(path) == 1 && value == nil {
		delete(fields, name)
		return fields, nil
	}
	inner, err := place(fields[name], path[1:], value)
	if err != nil {
		return nil, err
	}
	fields[name] = inner
	return fields, nil
}

// placeItem is place in a list. Lists may be shorter than the one that the change was found in,
// which had defaults.
func placeItem(list []any, index int, path fieldpath.Path, value any) (any, error) {
	if index >= len(list) {
		item, err := place(nil, path, value)
		return append(list, item), err
	}
	item, err := place(list[index], path, value)
	if err == nil {
		list[index] = item
	}
	return list, err
}
