// SPDX-License-Identifier: Apache-2.0

package structure

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Node is the structural schema of a value.
type Node struct {
	// Type is object, array, string, integer, number or boolean; empty means any.
	Type        string
	Description string
	// Nullable values may be null. Otherwise null means absent, as in the API server.
	Nullable bool
	// AllowsUnknownFields objects may have fields that are not in Properties.
	AllowsUnknownFields bool
	// Sensitive values are never quoted in messages.
	Sensitive bool
	// HidesUnknownNames hides names of unknown fields, which may be misplaced values.
	HidesUnknownNames bool
	// IntOrString values are integers or text.
	IntOrString bool
	// AllowsFraction means that an IntOrString may be any number. The aggregated API server reads
	// quantities such as 0.5 and "0.5"; a CRD only accepts the latter.
	AllowsFraction bool

	Properties map[string]*Node
	Required   []string
	// Additional is the schema of map values; it is nil for objects with named fields.
	Additional *Node
	Items      *Node

	Enum    []string
	Pattern *regexp.Regexp
	// Format is one of formats; schemas with other formats are rejected.
	Format                       string
	Minimum, Maximum             *float64
	ExclusiveMin, ExclusiveMax   bool
	MinLength, MaxLength         *int64
	MinItems, MaxItems           *int64
	MinProperties, MaxProperties *int64
	// Default is the value that the API server sets; it is nil if there is none.
	Default any
	// ListType (atomic, set or map) and ListKeys identify list items.
	ListType string
	ListKeys []string
	// FieldsSince are the Kubernetes minor releases that introduced the object's fields, if known.
	FieldsSince map[string]int
}

// IsQuantity reports whether the node is a quantity.
func (n *Node) IsQuantity() bool {
	return n.IntOrString && n.Pattern != nil && strings.Contains(n.Pattern.String(), "KMGTPE")
}

// hasType reports whether the node has a type, which null does not satisfy.
func (n *Node) hasType() bool { return n.Type != "" || n.IntOrString }

// allowFractions marks all quantities in a schema.
func (n *Node) allowFractions() {
	if n == nil {
		return
	}
	n.AllowsFraction = n.IsQuantity()
	n.Additional.allowFractions()
	n.Items.allowFractions()
	for _, child := range n.Properties {
		child.allowFractions()
	}
}

// FieldNames returns the fields of an object in alphabetical order.
func (n *Node) FieldNames() []string { return slices.Sorted(maps.Keys(n.Properties)) }

// IsMap reports whether the node is a map with free keys.
func (n *Node) IsMap() bool { return n.Additional != nil }

// KindFromForeignCRD converts the schema of a third-party definition, and reports whether the
// conversion is complete.
func KindFromForeignCRD(gvk schema.GroupVersionKind, namespaced bool, props *apiextensionsv1.JSONSchemaProps) (kind *Kind, whole bool) {
	whole = true
	root, err := nodeFromProps(props, "", func(error) error { whole = false; return nil })
	if err != nil { // unknown constructs are not errors here
		root, whole = &Node{Type: "object", AllowsUnknownFields: true}, false
	}
	completeRoot(root, gvk, namespaced)
	return &Kind{GVK: gvk, Namespaced: namespaced, Root: root}, whole
}

// rejectUnknown fails for every unknown construct.
func rejectUnknown(err error) error { return err }

// nodeFromProps converts a CRD schema. unknown decides whether constructs without support in the
// CUE base and messages are errors.
func nodeFromProps(props *apiextensionsv1.JSONSchemaProps, path string, unknown func(error) error) (*Node, error) {
	n := &Node{
		Type: props.Type, Description: props.Description, Nullable: props.Nullable,
		AllowsUnknownFields: props.XPreserveUnknownFields != nil && *props.XPreserveUnknownFields,
		IntOrString:         props.XIntOrString, Required: slices.Sorted(slices.Values(props.Required)), Format: props.Format,
		Minimum: props.Minimum, Maximum: props.Maximum, ExclusiveMin: props.ExclusiveMinimum, ExclusiveMax: props.ExclusiveMaximum,
		MinLength: props.MinLength, MaxLength: props.MaxLength, MinItems: props.MinItems, MaxItems: props.MaxItems,
		MinProperties: props.MinProperties, MaxProperties: props.MaxProperties, ListKeys: props.XListMapKeys,
	}
	if props.XListType != nil {
		n.ListType = *props.XListType
	}
	if err := errors.Join(checkSupported(props), n.readValues(props)); err != nil {
		if err := unknown(fmt.Errorf("%s: %w", path, err)); err != nil {
			return nil, err
		}
	}
	if !slices.Contains(supportedFormats[n.Type], n.Format) {
		n.Format = ""
	}
	return n, n.readChildren(props, path, unknown)
}

// checkSupported fails for unsupported constraints, so that they are not ignored silently.
func checkSupported(props *apiextensionsv1.JSONSchemaProps) error {
	switch {
	case !props.XIntOrString && (len(props.AnyOf) > 0 || len(props.OneOf) > 0 || props.Not != nil):
		return errors.New("anyOf, oneOf and not are known only for integers or strings")
	case !slices.Contains(supportedFormats[props.Type], props.Format):
		return fmt.Errorf("the format %q of type %q is not known", props.Format, props.Type)
	case props.MultipleOf != nil || props.UniqueItems || len(props.PatternProperties) > 0 || len(props.Dependencies) > 0:
		return errors.New("multipleOf, uniqueItems, patternProperties and dependencies are not known")
	case !props.XIntOrString && slices.ContainsFunc(props.AllOf, func(p apiextensionsv1.JSONSchemaProps) bool { return len(p.Enum) == 0 }):
		return errors.New("allOf is known only for enums")
	}
	return nil
}

func (n *Node) readValues(props *apiextensionsv1.JSONSchemaProps) error {
	for _, value := range props.Enum {
		var text string
		if err := json.Unmarshal(value.Raw, &text); err != nil {
			return fmt.Errorf("reading the enum value %s: %w", value.Raw, err)
		}
		n.Enum = append(n.Enum, text)
	}
	// controller-gen combines two enum markers with allOf; the first one counts.
	for _, all := range props.AllOf {
		if len(all.Enum) > 0 && len(n.Enum) == 0 {
			if err := n.readValues(&apiextensionsv1.JSONSchemaProps{Enum: all.Enum}); err != nil {
				return err
			}
		}
	}
	if props.Default != nil {
		if err := json.Unmarshal(props.Default.Raw, &n.Default); err != nil {
			return fmt.Errorf("reading the default: %w", err)
		}
	}
	if props.Pattern != "" {
		pattern, err := regexp.Compile(props.Pattern)
		if err != nil {
			return fmt.Errorf("reading the pattern: %w", err)
		}
		n.Pattern = pattern
	}
	return nil
}

func (n *Node) readChildren(props *apiextensionsv1.JSONSchemaProps, path string, unknown func(error) error) error {
	var err error
	if len(props.Properties) > 0 {
		n.Properties = make(map[string]*Node, len(props.Properties))
		for name, child := range props.Properties {
			if n.Properties[name], err = nodeFromProps(&child, path+"."+name, unknown); err != nil {
				return err
			}
		}
	}
	if extra := props.AdditionalProperties; extra != nil && extra.Schema != nil {
		if n.Additional, err = nodeFromProps(extra.Schema, path+"[*]", unknown); err != nil {
			return err
		}
	}
	if extra := props.AdditionalProperties; extra != nil && extra.Schema == nil && extra.Allows {
		n.AllowsUnknownFields = true
	}
	if props.Items != nil && props.Items.Schema != nil {
		if n.Items, err = nodeFromProps(props.Items.Schema, path+"[*]", unknown); err != nil {
			return err
		}
	}
	return nil
}
