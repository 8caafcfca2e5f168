// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"

	"github.com/pergola-dev/pergola/internal/suggest"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/fieldpath"
)

// yamlFile is a YAML file of one document with the positions of its values.
type yamlFile struct {
	name string
	root *yamlv3.Node
}

// readYAMLFile parses a file and reports faults as findings. Findings do not quote the content: it
// may be secret.
func readYAMLFile(name string, data []byte) (yamlFile, error) {
	file := yamlFile{name: name}
	decoder := yamlv3.NewDecoder(bytes.NewReader(data))
	var document, second yamlv3.Node
	err := decoder.Decode(&document)
	if errors.Is(err, io.EOF) {
		return file, nil
	}
	if err != nil {
		return file, syntaxFinding(name, data, err)
	}
	if len(document.Content) > 0 {
		file.root = document.Content[0]
	}
	if err := decoder.Decode(&second); err == nil && len(second.Content) > 0 && second.Content[0].ShortTag() != "!!null" {
		return file, finding{Position: schemas.Position{File: name, Line: second.Content[0].Line, Column: 1}, kind: schemas.TypeInvalid, message: "the file must hold one document"}
	}
	return file, nil
}

// syntaxFinding adds position and cause to an error of the YAML parser.
func syntaxFinding(name string, data []byte, err error) finding {
	line, column, message := landscapes.YAMLFault(data, err)
	return finding{Position: schemas.Position{File: name, Line: line, Column: column}, kind: schemas.TypeInvalid, message: message}
}

func indentation(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// position is the position of a field, or of its closest existing parent.
func (f yamlFile) position(field string) schemas.Position {
	at := schemas.Position{File: f.name, Line: 1, Column: 1}
	node := f.root
	for _, step := range append(fieldpath.Path{nil}, fieldpath.Parse(field)...) {
		key := node
		if step != nil {
			key, node = childNode(node, step)
		}
		if node == nil {
			break
		}
		at.Line, at.Column = key.Line, key.Column
	}
	return at
}

// node is the value of a field; it is nil if the field does not exist.
func (f yamlFile) node(field string) *yamlv3.Node {
	node := f.root
	for _, step := range fieldpath.Parse(field) {
		if _, node = childNode(node, step); node == nil {
			return nil
		}
	}
	return node
}

// childNode follows one step: the node of the name, and the value.
func childNode(node *yamlv3.Node, step any) (key, value *yamlv3.Node) {
	node = resolveAlias(node)
	if node == nil {
		return nil, nil
	}
	if i, ok := step.(int); ok && node.Kind == yamlv3.SequenceNode {
		if i < len(node.Content) {
			return node.Content[i], node.Content[i]
		}
		return nil, nil
	}
	if node.Kind != yamlv3.MappingNode {
		return nil, nil
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == fieldpath.StepName(step) {
			return node.Content[i], node.Content[i+1]
		}
	}
	return nil, nil
}

func resolveAlias(node *yamlv3.Node) *yamlv3.Node {
	for node != nil && node.Kind == yamlv3.AliasNode {
		node = node.Alias
	}
	return node
}

// checkShape compares a file with its Go type: unknown and duplicate fields, values of another
// type.
func (f yamlFile) checkShape(target reflect.Type) findings {
	var out findings
	if f.root != nil {
		s := shapeCheck{file: f.name, out: &out}
		s.checkValue(f.root, target, nil)
	}
	return out
}

type shapeCheck struct {
	file  string
	out   *findings
	depth int
}

func (s shapeCheck) report(node *yamlv3.Node, path fieldpath.Path, kind schemas.ViolationType, format string, args ...any) {
	*s.out = append(*s.out, finding{
		Position: schemas.Position{File: s.file, Line: node.Line, Column: node.Column},
		field:    path.String(), kind: kind, message: fmt.Sprintf(format, args...),
	})
}

// maxDepth limits recursive anchors.
const maxDepth = 64

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

func (s shapeCheck) checkValue(node *yamlv3.Node, t reflect.Type, path fieldpath.Path) {
	node = resolveAlias(node)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if s.depth++; s.depth > maxDepth {
		s.report(node, path, schemas.TypeInvalid, "values are nested more than %d deep", maxDepth)
		return
	}
	if t.Kind() == reflect.Interface || reflect.PointerTo(t).Implements(unmarshaler) || node.ShortTag() == "!!null" {
		return
	}
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		if node.Kind != yamlv3.MappingNode {
			s.report(node, path, schemas.TypeTypeInvalid, "must be an object with fields")
			return
		}
		s.checkMapping(node, t, path)
	case reflect.Slice:
		if node.Kind != yamlv3.SequenceNode {
			s.report(node, path, schemas.TypeTypeInvalid, "must be a list")
			return
		}
		for i, item := range node.Content {
			s.checkValue(item, t.Elem(), path.Append(i))
		}
	default:
		s.checkScalar(node, t.Kind(), path)
	}
}

func (s shapeCheck) checkMapping(node *yamlv3.Node, t reflect.Type, path fieldpath.Path) {
	var fields map[string]reflect.Type
	if t.Kind() == reflect.Struct {
		fields = jsonFields(t)
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if key.ShortTag() == "!!merge" {
			continue
		}
		step := any(key.Value)
		if fields == nil {
			step = fieldpath.Key(key.Value)
		}
		if seen[key.Value] {
			s.report(key, path.Append(step), schemas.TypeDuplicate, "the field is written twice")
			continue
		}
		seen[key.Value] = true
		if fields == nil {
			s.checkValue(value, t.Elem(), path.Append(step))
			continue
		}
		field, ok := fields[key.Value]
		if !ok {
			hint := ""
			if guess := suggest.Closest(key.Value, sortedKeys(fields)); guess != "" {
				hint = fmt.Sprintf("; did you mean %q?", guess)
			}
			s.report(key, path.Append(step), schemas.TypeForbidden, "the field %q does not exist%s", key.Value, hint)
			continue
		}
		s.checkValue(value, field, path.Append(step))
	}
}

// yaml11BoolPattern are words that the decoders read as true or false unless quoted.
var yaml11BoolPattern = regexp.MustCompile(`^([yYnN]|[yY]es|YES|[nN]o|NO|[oO]n|ON|[oO]ff|OFF)$`)

func (s shapeCheck) checkScalar(node *yamlv3.Node, want reflect.Kind, path fieldpath.Path) {
	tag := node.ShortTag()
	if node.Style == 0 && yaml11BoolPattern.MatchString(node.Value) {
		tag = "!!bool"
	}
	switch {
	case want == reflect.String && (node.Kind != yamlv3.ScalarNode || tag == "!!int" || tag == "!!float" || tag == "!!bool"):
		s.report(node, path, schemas.TypeTypeInvalid, "must be text; put a value that looks like something else in quotes")
	case want == reflect.Bool && tag != "!!bool":
		s.report(node, path, schemas.TypeTypeInvalid, "must be true or false")
	case (want == reflect.Int || want == reflect.Int32 || want == reflect.Int64) && tag != "!!int":
		s.report(node, path, schemas.TypeTypeInvalid, "must be a whole number")
	}
}

// jsonFields are the fields of a struct, including embedded structs, by JSON name.
func jsonFields(t reflect.Type) map[string]reflect.Type {
	out := map[string]reflect.Type{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			for inner, typ := range jsonFields(f.Type) {
				if _, known := out[inner]; !known {
					out[inner] = typ
				}
			}
		case !f.IsExported() || name == "-":
		case name == "":
			out[f.Name] = f.Type
		default:
			out[name] = f.Type
		}
	}
	return out
}
