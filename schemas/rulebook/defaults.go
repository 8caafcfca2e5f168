// SPDX-License-Identifier: Apache-2.0

package rulebook

import (
	"encoding/json"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	operatorv1alpha1 "github.com/pergola-dev/pergola/api/operator/v1alpha1"
	securityv1alpha1 "github.com/pergola-dev/pergola/api/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/pergola-dev/pergola/api/seedmanagement/v1alpha1"
	"github.com/pergola-dev/pergola/schemas/fieldpath"
	"github.com/pergola-dev/pergola/schemas/structure"
)

// defaultingFunction returns an empty object and its defaulting function, or nil for kinds without
// one.
func defaultingFunction(kind *structure.Kind) (object any, set func()) {
	const core, operator, security, seedmanagement = gardencorev1beta1.GroupName, operatorv1alpha1.GroupName, securityv1alpha1.GroupName, seedmanagementv1alpha1.GroupName
	switch kind.GVK.GroupKind() {
	case schema.GroupKind{Group: core, Kind: "CloudProfile"}:
		return newDefaulter(gardencorev1beta1.SetDefaults_CloudProfile)
	case schema.GroupKind{Group: core, Kind: "ControllerRegistration"}:
		return newDefaulter(gardencorev1beta1.SetDefaults_ControllerRegistration)
	case schema.GroupKind{Group: core, Kind: "NamespacedCloudProfile"}:
		return newDefaulter(gardencorev1beta1.SetDefaults_NamespacedCloudProfile)
	case schema.GroupKind{Group: core, Kind: "Project"}:
		return newDefaulter(gardencorev1beta1.SetDefaults_Project)
	case schema.GroupKind{Group: core, Kind: "SecretBinding"}:
		return newDefaulter(gardencorev1beta1.SetDefaults_SecretBinding)
	case schema.GroupKind{Group: core, Kind: "Seed"}:
		return newDefaulter(gardencorev1beta1.SetDefaults_Seed)
	case schema.GroupKind{Group: core, Kind: "Shoot"}:
		return newDefaulter(gardencorev1beta1.SetDefaults_Shoot)
	case schema.GroupKind{Group: operator, Kind: "Garden"}:
		return newDefaulter(operatorv1alpha1.SetDefaults_Garden)
	case schema.GroupKind{Group: security, Kind: "CredentialsBinding"}:
		return newDefaulter(securityv1alpha1.SetDefaults_CredentialsBinding)
	case schema.GroupKind{Group: seedmanagement, Kind: "Gardenlet"}:
		return newDefaulter(seedmanagementv1alpha1.SetDefaults_Gardenlet)
	case schema.GroupKind{Group: seedmanagement, Kind: "ManagedSeed"}:
		return newDefaulter(seedmanagementv1alpha1.SetDefaults_ManagedSeed)
	case schema.GroupKind{Group: seedmanagement, Kind: "ManagedSeedSet"}:
		return newDefaulter(seedmanagementv1alpha1.SetDefaults_ManagedSeedSet)
	}
	return nil, nil
}

func newDefaulter[T any](set func(*T)) (object any, do func()) {
	o := new(T)
	return o, func() { set(o) }
}

// specVariants returns the specs for which defaults exist, because some apply to only one form of
// an object.
func specVariants(kind *structure.Kind) []map[string]any {
	resource := func(kind string) map[string]any {
		return map[string]any{"resources": []any{map[string]any{"kind": kind}}}
	}
	switch kind.GVK.Kind {
	case "Shoot": // most defaults require workers
		return []map[string]any{{"provider": map[string]any{"workers": []any{map[string]any{}}}}}
	case "ControllerRegistration":
		return []map[string]any{resource("Extension"), resource("SelfHostedShootExposure")}
	}
	return []map[string]any{nil}
}

// functionDefault returns the default of a field that a defaulting function sets. The object has
// only the parents of the field. It returns nil for no default, or a default that depends on the
// object's name.
func functionDefault(kind *structure.Kind, path fieldpath.Path) (any, error) {
	// Some blocks get defaults only as a whole, so try with ever fewer parents.
	for depth := len(path); depth > 0; depth-- {
		for _, spec := range specVariants(kind) {
			first, err := functionDefaultIn(kind, path, depth, "one", spec)
			if err != nil {
				return nil, err
			}
			second, err := functionDefaultIn(kind, path, depth, "another", spec)
			if err != nil {
				return nil, err
			}
			if first != nil && reflect.DeepEqual(first, second) {
				return first, nil
			}
		}
	}
	return nil, nil
}

func functionDefaultIn(kind *structure.Kind, path fieldpath.Path, depth int, name string, spec map[string]any) (any, error) {
	object, set := defaultingFunction(kind)
	if object == nil || len(path) == 0 {
		return nil, nil
	}
	around := map[string]any{"metadata": map[string]any{"name": name, "namespace": "garden-" + name}}
	if spec != nil {
		around["spec"] = runtime.DeepCopyJSON(spec)
	}
	addParents(kind.Root, around, path[:depth])
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(around, object); err != nil {
		return nil, nil // a parent of the field is not an object
	}
	before, err := readDefault(object, kind, path)
	if err != nil {
		return nil, err
	}
	switch before.(type) {
	case map[string]any, []any:
		// the value comes from a requested child or from the zero value of the type
		return nil, nil
	}
	set()
	after, err := readDefault(object, kind, path)
	if err != nil || reflect.DeepEqual(before, after) {
		return nil, err
	}
	return after, nil
}

// addParents adds the parents of a field to an object.
func addParents(node *structure.Node, object map[string]any, path fieldpath.Path) {
	if len(path) < 2 {
		return
	}
	name := fieldpath.StepName(path[0])
	child := node.Properties[name]
	if child == nil || child.InnermostItems().Properties == nil {
		return
	}
	inner := map[string]any{}
	switch before := object[name].(type) {
	case map[string]any:
		inner = before
	case []any:
		inner, _ = before[0].(map[string]any)
	default:
		object[name] = inner
		if child.Items != nil {
			object[name] = []any{inner}
		}
	}
	addParents(child.InnermostItems(), inner, path[1:])
}

// readDefault returns the value of a field, or nil if it is unset.
func readDefault(object any, kind *structure.Kind, path fieldpath.Path) (any, error) {
	data, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("reading the defaults of %s: %w", kind.GVK.Kind, err)
	}
	o := &unstructured.Unstructured{}
	if err := json.Unmarshal(data, &o.Object); err != nil {
		return nil, fmt.Errorf("reading the defaults of %s: %w", kind.GVK.Kind, err)
	}
	var value any = o.Object
	for _, step := range path {
		if list, ok := value.([]any); ok && len(list) > 0 {
			value = list[0]
		}
		fields, ok := value.(map[string]any)
		if !ok {
			return nil, nil
		}
		value = fields[fieldpath.StepName(step)]
	}
	return value, nil
}
