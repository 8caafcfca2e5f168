// SPDX-License-Identifier: Apache-2.0

package strict

import (
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/pergola-dev/pergola/schemas/structure"
)

// quantityPattern matches strings that resource.Quantity reads, as in definitions.
var quantityPattern = regexp.MustCompile(`^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$`)

// goTypes converts Go types to schemas, each once, because types may be recursive.
type goTypes struct {
	nodes map[reflect.Type]*structure.Node
}

func newGoTypes() *goTypes {
	quantity := &structure.Node{IntOrString: true, AllowsFraction: true, Pattern: quantityPattern}
	time := &structure.Node{Type: "string", Format: "date-time", Nullable: true}
	anything := &structure.Node{}
	g := &goTypes{nodes: map[reflect.Type]*structure.Node{
		reflect.TypeFor[resource.Quantity]():                     quantity,
		reflect.TypeFor[intstr.IntOrString]():                    {IntOrString: true},
		reflect.TypeFor[metav1.Time]():                           time,
		reflect.TypeFor[metav1.MicroTime]():                      time,
		reflect.TypeFor[metav1.Duration]():                       {Type: "string", Format: "duration"},
		reflect.TypeFor[[]byte]():                                {Type: "string", Format: "byte"},
		reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrBool](): anything,
	}}
	// Definitions do not allow a list of schemas for items, only one.
	items := &structure.Node{}
	g.nodes[reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrArray]()] = items
	*items = *g.node(reflect.TypeFor[apiextensionsv1.JSONSchemaProps]())
	// It is part of the key of ports.
	g.node(reflect.TypeFor[corev1.Protocol]()).Default = string(corev1.ProtocolTCP)
	g.hideSecrets()
	return g
}

// hideSecrets marks values that messages must not show.
func (g *goTypes) hideSecrets() {
	secret := g.node(reflect.TypeFor[corev1.Secret]())
	secret.HidesUnknownNames = true
	for _, field := range []string{"data", "stringData"} {
		values := *secret.Properties[field].Additional
		values.Sensitive = true
		secret.Properties[field] = &structure.Node{Type: "object", Sensitive: true, Additional: &values}
	}
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// node is the schema of a type. Types with their own decoder accept anything.
func (g *goTypes) node(t reflect.Type) *structure.Node {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if n := g.nodes[t]; n != nil {
		return n
	}
	n := &structure.Node{}
	g.nodes[t] = n
	if reflect.PointerTo(t).Implements(unmarshaler) {
		return n
	}
	switch t.Kind() {
	case reflect.Struct:
		n.Type, n.Properties = "object", map[string]*structure.Node{}
		g.addFields(n, t)
	case reflect.Map:
		n.Type, n.Additional = "object", g.node(t.Elem())
	case reflect.Slice:
		n.Type, n.Items = "array", g.node(t.Elem())
	case reflect.String:
		n.Type, n.Enum = "string", kubernetesTable().enums[nameOf(t)]
	case reflect.Bool:
		n.Type = "boolean"
	case reflect.Int32:
		n.Type, n.Format = "integer", "int32"
	case reflect.Int, reflect.Int64, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		n.Type, n.Format = "integer", "int64"
	case reflect.Float32, reflect.Float64:
		n.Type = "number"
	}
	return n
}

func nameOf(t reflect.Type) string { return t.PkgPath() + "." + t.Name() }

// addFields adds the fields of a struct and of inlined structs.
func (g *goTypes) addFields(n *structure.Node, t reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case !f.IsExported() || name == "-":
		case name == "" && (f.Anonymous || strings.Contains(options, "inline")):
			g.addFields(n, f.Type)
		case name != "":
			child, place := g.node(f.Type), nameOf(t)+"\t"+name
			if keys, ok := kubernetesTable().keys[place]; ok {
				child = newKeyedList(child, keys)
			}
			n.Properties[name] = child
			if since := kubernetesTable().since[place]; since > 0 {
				if n.FieldsSince == nil {
					n.FieldsSince = map[string]int{}
				}
				n.FieldsSince[name] = since
			}
		}
	}
}

// newKeyedList is a list with keys for its items; without keys it is a set.
func newKeyedList(list *structure.Node, keys []string) *structure.Node {
	apart := *list
	apart.ListType, apart.ListKeys = "set", nil
	if len(keys) > 0 {
		apart.ListType, apart.ListKeys = "map", slices.Clone(keys)
	}
	return &apart
}
