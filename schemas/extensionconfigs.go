// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pergola-dev/pergola/internal/suggest"
	"github.com/pergola-dev/pergola/schemas/fieldpath"
	"github.com/pergola-dev/pergola/schemas/structure"
)

// extensionFields lists the fields of configurations of extensions, as pkg/apis of the repositories
// github.com/gardener/gardener-extension-* had them in November 2026. The columns are apiVersion,
// kind, path (zones[] is a list item, labels{} a map entry), type, and the values of a closed set.
// A line without a path is a kind whose fields are not listed.
//
//go:embed extensionconfigs.tsv
var extensionFields string

// extensionConfigurationSchemas returns the configurations of extensions with their schemas.
// Extensions have their own releases, so other versions may have more fields.
var extensionConfigurationSchemas = sync.OnceValues(func() (map[schema.GroupVersionKind]configurationSchema, error) {
	known := map[schema.GroupVersionKind]configurationSchema{}
	for line := range strings.Lines(extensionFields) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		columns := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(columns) != 5 {
			return nil, fmt.Errorf("reading the configurations of extensions: a line has %d columns instead of 5: %q", len(columns), line)
		}
		gvk := schema.FromAPIVersionAndKind(columns[0], columns[1])
		c, ok := known[gvk]
		if !ok {
			c = configurationSchema{configurationType{gvk: gvk, processName: "the extension", releasedSeparately: true}, structure.MetadataOnlyKind(gvk)}
			c.kind.Root.AllowsUnknownFields = columns[2] == ""
			known[gvk] = c
		}
		if err := addSchemaField(c.kind.Root, columns[2], columns[3], columns[4]); err != nil {
			return nil, fmt.Errorf("reading the configuration %s of extensions: %w", gvk, err)
		}
	}
	for gvk, c := range known {
		c.kind.Root.Properties["apiVersion"] = &structure.Node{Type: "string"}
		c.kind.Root.Properties["kind"] = &structure.Node{Type: "string"}
		known[gvk] = c
	}
	return known, nil
})

// addSchemaField adds the node of a path to a schema that has the nodes above it.
func addSchemaField(root *structure.Node, path, typ, values string) error {
	if path == "" {
		return nil
	}
	node, err := newSchemaNode(typ, values)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	n := root
	names := strings.Split(path, ".")
	for i, name := range names {
		field := strings.TrimRight(name, "[]{}")
		inner := name[len(field):]
		last := i == len(names)-1
		if last && inner == "" {
			n.Properties[field] = node
			return nil
		}
		if n = n.Properties[field]; n == nil {
			return fmt.Errorf("%s: a line for %s has to come before", path, field)
		}
		for ; inner != ""; inner = inner[2:] {
			below := &n.Items
			if inner[:2] == "{}" {
				below = &n.Additional
			}
			switch {
			case last && len(inner) == 2:
				*below = node
			case *below == nil:
				*below = &structure.Node{Type: "object", Properties: map[string]*structure.Node{}}
			}
			n = *below
		}
	}
	return nil
}

func newSchemaNode(typ, values string) (*structure.Node, error) {
	var enum []string
	if values != "" {
		enum = strings.Split(values, ",")
	}
	switch typ {
	case "object":
		return &structure.Node{Type: "object", Properties: map[string]*structure.Node{}}, nil
	case "list":
		return &structure.Node{Type: "array"}, nil
	case "map":
		return &structure.Node{Type: "object"}, nil
	case "string", "boolean", "integer", "number":
		return &structure.Node{Type: typ, Enum: enum}, nil
	case "duration", "cidr":
		return &structure.Node{Type: "string", Format: typ}, nil
	case "quantity":
		return &structure.Node{IntOrString: true, AllowsFraction: true}, nil
	case "any":
		return &structure.Node{AllowsUnknownFields: true}, nil
	}
	return nil, fmt.Errorf("there is no type %q", typ)
}

// groupWithField returns the group of another extension whose configuration of the same kind has a
// field at the path.
func groupWithField(known map[schema.GroupVersionKind]configurationSchema, gvk schema.GroupVersionKind, path string) string {
	var groups []string
	for other, c := range known {
		if other.Kind != gvk.Kind || other.Group == gvk.Group || !c.releasedSeparately {
			continue
		}
		n := c.kind.Root
		for _, step := range fieldpath.Parse(path) {
			if n == nil {
				break
			}
			switch name := step.(type) {
			case int:
				n = n.Items
			case fieldpath.Key:
				n = n.Additional
			case string:
				n = n.Properties[name]
			}
		}
		if n != nil {
			groups = append(groups, other.Group)
		}
	}
	if len(groups) == 0 {
		return ""
	}
	return slices.Min(groups)
}

// checkConfigurationGVK reports an unknown version or a misspelt kind of a known extension group,
// and a misspelt group.
func checkConfigurationGVK(object embeddedObject, known map[schema.GroupVersionKind]configurationSchema) []finding {
	gvk := object.gvk()
	wrong := func(field, format string, args ...any) []finding {
		return []finding{{path: joinPath(object.path.String(), field), typ: TypeNotSupported, rule: ruleExtensionConfig, severity: SeverityWarning, message: fmt.Sprintf(format, args...)}}
	}
	kinds, versions, groups := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for other := range known {
		groups[other.Group] = true
		if other.Group == gvk.Group {
			versions[other.Version] = true
			kinds[other.Kind] = true
		}
	}
	switch {
	case len(kinds) == 0:
		if group := suggest.ClosestWithin(gvk.Group, slices.Sorted(maps.Keys(groups)), 2); group != "" {
			return wrong("apiVersion", "no known extension reads the group %q; did you mean %q?", gvk.Group, group)
		}
	case !versions[gvk.Version]:
		return wrong("apiVersion", "known versions of the group %s are %s, but not %q", gvk.Group, strings.Join(slices.Sorted(maps.Keys(versions)), ", "), gvk.Version)
	case !kinds[gvk.Kind]:
		if kind := suggest.Closest(gvk.Kind, slices.Sorted(maps.Keys(kinds))); kind != "" {
			return wrong("kind", "no known extension reads the kind %q of the group %s; did you mean %q?", gvk.Kind, gvk.Group, kind)
		}
	}
	return nil
}

// extensionConfigFields are the fields that hold a configuration of an extension.
var extensionConfigFields = []string{"providerConfig", "infrastructureConfig", "controlPlaneConfig"}

// checkConfigurationTypeMeta reports a configuration without apiVersion or kind, by which
// extensions recognise it. The ingress controller is not an extension.
func checkConfigurationTypeMeta(in ruleInput, object embeddedObject) []finding {
	if len(object.content) == 0 || len(object.path) == 0 || !slices.Contains([]string{"Shoot", "CloudProfile", "NamespacedCloudProfile"}, in.kind.GVK.Kind) ||
		!slices.Contains(extensionConfigFields, fieldpath.StepName(object.path[len(object.path)-1])) {
		return nil
	}
	for _, field := range []string{"apiVersion", "kind"} {
		if text, _ := object.content[field].(string); text == "" {
			return []finding{{path: object.path.String(), typ: TypeRequired, rule: ruleExtensionConfig, severity: SeverityWarning,
				message: fmt.Sprintf("has no %s, which tells the extension the type of the configuration", field)}}
		}
	}
	return nil
}
