// SPDX-License-Identifier: Apache-2.0

package settingsfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pergola-dev/pergola/internal/suggest"
)

// formError is an error in a file at a position.
type formError struct {
	path         string
	line, column int
	message      string
}

// formChecker checks a document against a type. The decoder is not enough: its errors lack
// positions, and it stops at the first error.
type formChecker struct {
	errors []formError
	// activeNodes holds the nodes of the current path: an alias can lead back to one of them.
	activeNodes map[*yaml.Node]bool
}

func (f *formChecker) addError(node *yaml.Node, path, format string, args ...any) {
	f.errors = append(f.errors, formError{path, node.Line, node.Column, fmt.Sprintf(format, args...)})
}

// parseDocument returns the first document of a file, or nil if the file holds none.
func parseDocument(path string, raw []byte) (*yaml.Node, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(raw, &root); err != nil {
		return nil, syntaxError(path, raw, err)
	}
	if len(root.Content) == 0 {
		return nil, nil
	}
	return root.Content[0], nil
}

var yamlError = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)

func syntaxError(path string, raw []byte, err error) error {
	line, words := 1, err.Error()
	if m := yamlError.FindStringSubmatch(err.Error()); m != nil {
		words = m[2]
		if n, err := strconv.Atoi(m[1]); err == nil {
			line = n
		}
	}
	column := 1
	if lines := strings.Split(string(raw), "\n"); line <= len(lines) {
		column += len(lines[line-1]) - len(strings.TrimLeft(lines[line-1], " "))
	}
	return fmt.Errorf("%s:%d:%d: this is not YAML: %s; check the indentation and the quotes of this line and the lines before", path, line, column, words)
}

// checkKind checks apiVersion and kind. All other checks depend on them.
func checkKind(document *yaml.Node, want metav1.TypeMeta) []formError {
	f := &formChecker{}
	both := "apiVersion: " + want.APIVersion + " and kind: " + want.Kind
	document = resolveAlias(document)
	switch {
	case document == nil || isNull(document):
		return []formError{{"", 1, 1, "the file is empty; a configuration begins with " + both}}
	case document.Kind != yaml.MappingNode:
		f.addError(document, "", "is %s; a configuration has fields, and begins with %s", formatValue(document), both)
		return f.errors
	}
	for _, field := range []struct{ name, want string }{{"apiVersion", want.APIVersion}, {"kind", want.Kind}} {
		_, value := mappingField(document, field.name)
		switch {
		case value == nil:
			f.addError(document, field.name, "is missing; a configuration begins with %s", both)
		case value.Kind != yaml.ScalarNode || value.Value != field.want:
			f.addError(value, field.name, "is %s, and must be %s", formatValue(value), field.want)
		}
	}
	return f.errors
}

// resolveAlias resolves an alias.
func resolveAlias(node *yaml.Node) *yaml.Node {
	if node != nil && node.Kind == yaml.AliasNode {
		return node.Alias
	}
	return node
}

// mappingField returns key and value of a field of a mapping.
func mappingField(mapping *yaml.Node, name string) (key, value *yaml.Node) {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == name {
			return mapping.Content[i], resolveAlias(mapping.Content[i+1])
		}
	}
	return nil, nil
}

func joinPath(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

var (
	durationType    = reflect.TypeFor[metav1.Duration]()
	unmarshalerType = reflect.TypeFor[json.Unmarshaler]()
)

// checkValue compares a value with a type.
func (f *formChecker) checkValue(node *yaml.Node, t reflect.Type, path string) {
	alias := node
	if node = resolveAlias(node); f.activeNodes[node] {
		f.addError(alias, path, "contains itself")
		return
	}
	f.activeNodes[node] = true
	defer delete(f.activeNodes, node)
	if t.Kind() == reflect.Pointer {
		if isNull(node) {
			return
		}
		t = t.Elem()
	}
	switch {
	case t == durationType:
		f.checkDuration(node, path)
	case reflect.PointerTo(t).Implements(unmarshalerType):
		f.checkUnmarshaler(node, t, path)
	case isNull(node): // as if the field were absent
	case t.Kind() == reflect.Struct:
		f.checkStruct(node, t, path)
	case t.Kind() == reflect.Map:
		f.checkMap(node, t, path)
	case t.Kind() == reflect.Slice:
		f.checkList(node, t, path)
	default:
		f.checkScalar(node, t, path)
	}
}

func isNull(node *yaml.Node) bool { return node.Kind == yaml.ScalarNode && node.ShortTag() == "!!null" }

// fieldsByJSONName returns the fields of a struct by JSON name, including those of embedded
// structs.
func fieldsByJSONName(t reflect.Type) map[string]reflect.Type {
	out := map[string]reflect.Type{}
	for i := range t.NumField() {
		field := t.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case options == "inline" || field.Anonymous && name == "":
			for name, inner := range fieldsByJSONName(field.Type) {
				out[name] = inner
			}
		case name != "-" && name != "":
			out[name] = field.Type
		}
	}
	return out
}

// visitFields visits the fields of a mapping, including those merged by <<.
func (f *formChecker) visitFields(node *yaml.Node, path string, visit func(key, value *yaml.Node)) {
	// A merge may repeat another one many times over: each mapping is merged once.
	f.visitUnmerged(node, path, map[*yaml.Node]bool{node: true}, visit)
}

func (f *formChecker) visitUnmerged(node *yaml.Node, path string, merged map[*yaml.Node]bool, visit func(key, value *yaml.Node)) {
	seen := map[string]int{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if key.ShortTag() == "!!merge" {
			f.visitMergedFields(resolveAlias(value), path, merged, visit)
			continue
		}
		if line, twice := seen[key.Value]; twice {
			f.addError(key, joinPath(path, key.Value), "is given twice, first in line %d", line)
		}
		seen[key.Value] = key.Line
		visit(key, value)
	}
}

func (f *formChecker) visitMergedFields(value *yaml.Node, path string, merged map[*yaml.Node]bool, visit func(key, value *yaml.Node)) {
	if merged[value] {
		return
	}
	merged[value] = true
	switch value.Kind {
	case yaml.MappingNode:
		f.visitUnmerged(value, path, merged, visit)
	case yaml.SequenceNode:
		for _, item := range value.Content {
			f.visitMergedFields(resolveAlias(item), path, merged, visit)
		}
	}
}

func (f *formChecker) checkStruct(node *yaml.Node, t reflect.Type, path string) {
	if node.Kind != yaml.MappingNode {
		f.addError(node, path, "is %s, and must have fields", formatValue(node))
		return
	}
	fields := fieldsByJSONName(t)
	f.visitFields(node, path, func(key, value *yaml.Node) {
		inner, known := fields[key.Value]
		if known {
			f.checkValue(value, inner, joinPath(path, key.Value))
			return
		}
		names := make([]string, 0, len(fields))
		for name := range fields {
			names = append(names, name)
		}
		slices.Sort(names)
		hint := "fields here are " + strings.Join(names, ", ")
		if better := suggest.Closest(key.Value, names); better != "" {
			hint = "did you mean " + better + "?"
		}
		f.addError(key, joinPath(path, key.Value), "unknown field; %s", hint)
	})
}

func (f *formChecker) checkMap(node *yaml.Node, t reflect.Type, path string) {
	if node.Kind != yaml.MappingNode {
		f.addError(node, path, "is %s, and must have fields", formatValue(node))
		return
	}
	f.visitFields(node, path, func(key, value *yaml.Node) { f.checkValue(value, t.Elem(), joinPath(path, key.Value)) })
}

func (f *formChecker) checkList(node *yaml.Node, t reflect.Type, path string) {
	if node.Kind != yaml.SequenceNode {
		f.addError(node, path, "is %s, and must be a list, such as [%s]", formatValue(node), strings.Trim(formatValue(node), "{}…"))
		return
	}
	for i, item := range node.Content {
		f.checkValue(item, t.Elem(), fmt.Sprintf("%s[%d]", path, i))
	}
}

// yaml11Booleans are the booleans of YAML 1.1, which upstream accepts, too.
var yaml11Booleans = regexp.MustCompile(`^(?:y|Y|yes|Yes|YES|on|On|ON|n|N|no|No|NO|off|Off|OFF)$`)

func (f *formChecker) checkScalar(node *yaml.Node, t reflect.Type, path string) {
	var want string
	good := node.Kind == yaml.ScalarNode
	tag := node.ShortTag()
	// A quoted number is text.
	plain := node.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0
	switch t.Kind() {
	case reflect.Bool:
		want = "true or false"
		if tag == "!!str" && !plain && (node.Value == "true" || node.Value == "false") {
			want += " without quotes"
		}
		good = good && (tag == "!!bool" || plain && yaml11Booleans.MatchString(node.Value))
	case reflect.Int, reflect.Int32, reflect.Int64:
		want = "a whole number"
		if tag == "!!str" && !plain && isNumber(node.Value) {
			want += " without quotes"
		}
		value, number := parseNumber(node)
		limit := math.Pow(2, float64(t.Bits()-1))
		good = good && number && value == math.Trunc(value) && value >= -limit && value < limit
	case reflect.Float32, reflect.Float64:
		want = "a number"
		value, number := parseNumber(node)
		good = good && number && (t.Kind() == reflect.Float64 || math.Abs(value) <= math.MaxFloat32)
	case reflect.String:
		want = "text" // numbers and other scalars are accepted as text
	default:
		return
	}
	if !good {
		f.addError(node, path, "is %s, and must be %s", formatValue(node), want)
	}
}

func isNumber(text string) bool {
	_, err := strconv.ParseFloat(text, 64)
	return err == nil
}

func parseNumber(node *yaml.Node) (float64, bool) {
	var value float64
	tag := node.ShortTag()
	if tag != "!!int" && tag != "!!float" || node.Decode(&value) != nil {
		return 0, false
	}
	return value, true
}

func (f *formChecker) checkDuration(node *yaml.Node, path string) {
	const want = "a duration such as 30s, 5m or 1h30m"
	if node.Kind != yaml.ScalarNode {
		f.addError(node, path, "is %s, and must be %s", formatValue(node), want)
		return
	}
	if _, err := time.ParseDuration(node.Value); err == nil && node.ShortTag() == "!!str" {
		return
	}
	text := "and must be " + want
	switch number, unit, _ := strings.Cut(strings.TrimSpace(node.Value), " "); {
	case isNumber(node.Value):
		text += fmt.Sprintf(": %ss?", node.Value)
	case isNumber(number) && unit != "" && strings.Contains("hms", strings.ToLower(unit[:1])):
		text += fmt.Sprintf(": %s%s?", number, strings.ToLower(unit[:1]))
	}
	f.addError(node, path, "is %s, %s", formatValue(node), text)
}

// checkUnmarshaler decodes a value of a type with its own UnmarshalJSON.
func (f *formChecker) checkUnmarshaler(node *yaml.Node, t reflect.Type, path string) {
	var value any
	err := node.Decode(&value)
	var raw []byte
	if err == nil {
		raw, err = json.Marshal(value)
	}
	if err == nil {
		err = json.Unmarshal(raw, reflect.New(t).Interface())
	}
	if err != nil {
		f.addError(node, path, "is %s, which cannot be read: %v", formatValue(node), err)
	}
}

// formatValue formats a value for a message.
func formatValue(node *yaml.Node) string {
	const long = 60
	switch {
	case node.Kind == yaml.MappingNode:
		return "a structure with fields"
	case node.Kind == yaml.SequenceNode:
		return "a list"
	case isNull(node):
		return "nothing"
	case len(node.Value) > long:
		return strconv.Quote(strings.ToValidUTF8(node.Value[:long], "") + "…")
	case node.ShortTag() == "!!str":
		return strconv.Quote(node.Value)
	}
	return node.Value
}

// checkForm checks a document, which may be nil.
func checkForm(document *yaml.Node, want metav1.TypeMeta, t reflect.Type) []formError {
	if wrong := checkKind(document, want); len(wrong) > 0 {
		return wrong
	}
	f := &formChecker{activeNodes: map[*yaml.Node]bool{}}
	f.checkValue(document, t, "")
	return f.errors
}

// joinFormErrors adds file, line and column in the form that editors and terminals open.
func joinFormErrors(file string, wrong []formError) error {
	var lines []error
	for _, m := range wrong {
		text := m.message
		if m.path != "" {
			text = m.path + ": " + text
		}
		lines = append(lines, fmt.Errorf("%s:%d:%d: %s", file, m.line, m.column, text))
	}
	return errors.Join(lines...)
}

// positionOf returns the position of a field, or of its nearest existing parent. It points to a
// scalar value itself, otherwise to the key.
func positionOf(document *yaml.Node, path string) (line, column int) {
	node := resolveAlias(document)
	line, column = node.Line, node.Column
	for _, name := range strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' }) {
		if i, err := strconv.Atoi(name); err == nil && node.Kind == yaml.SequenceNode && i < len(node.Content) {
			node = resolveAlias(node.Content[i])
			line, column = node.Line, node.Column
			continue
		}
		if node.Kind != yaml.MappingNode {
			break
		}
		key, value := mappingField(node, name)
		if value == nil {
			break
		}
		line, column, node = key.Line, key.Column, value
		if value.Kind == yaml.ScalarNode {
			line, column = value.Line, value.Column
		}
	}
	return line, column
}
