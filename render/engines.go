// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"sort"
	"strings"
	"sync"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/token"
	yamlv3 "go.yaml.in/yaml/v3"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/api/crds"
	"github.com/pergola-dev/pergola/schemas"
)

// renderSource renders a bundle with the engine that its source names.
func renderSource(catalogue fs.FS, dir string, in Input, spec bundleSpec) ([]Object, error) {
	engines := []struct {
		field  string
		render func(cue.Value) ([]Object, error)
	}{
		{"cue", func(v cue.Value) ([]Object, error) { return cueObjects(v) }},
		{"helm", func(v cue.Value) ([]Object, error) { return helmObjects(catalogue, dir, in, spec, v) }},
		{"kustomize", func(v cue.Value) ([]Object, error) { return kustomizeSource(catalogue, dir, v) }},
		{"crds", func(v cue.Value) ([]Object, error) { return crdObjects(v) }},
	}
	var chosen func() ([]Object, error)
	first := ""
	for _, engine := range engines {
		v := spec.source.LookupPath(cue.ParsePath(engine.field))
		if !v.Exists() {
			continue
		}
		if chosen != nil {
			return nil, findingAt(v, "component.bundles.%s.source.%s: field not allowed: the source is %s already", spec.Name, engine.field, first)
		}
		first, chosen = engine.field, func() ([]Object, error) { return engine.render(v) }
	}
	if chosen != nil {
		return chosen()
	}
	if err := spec.source.Err(); err != nil {
		return nil, cueError("source", err)
	}
	return nil, findingAt(spec.value, "source names no engine: want one of cue, helm, kustomize, crds")
}

// findingAt is an error about a value of a component, with its position.
func findingAt(v cue.Value, format string, args ...any) finding {
	p := sourcePosition(v)
	return finding{Position: schemas.Position{File: p.Filename(), Line: p.Line(), Column: p.Column()}, kind: schemas.TypeInvalid, message: fmt.Sprintf(format, args...)}
}

// sourcePosition is the position where a component sets a value, rather than where the schema
// declares it.
func sourcePosition(v cue.Value) token.Pos {
	best := v.Pos()
	if best.IsValid() && !isSchema(best) {
		return best
	}
	if op, parts := v.Expr(); op == cue.AndOp {
		for _, part := range parts {
			if p := part.Pos(); p.IsValid() && !isSchema(p) {
				return p
			}
		}
	}
	if fields, err := v.Fields(); err == nil {
		for fields.Next() {
			if p := fields.Value().Pos(); p.IsValid() && !isSchema(p) {
				return p
			}
		}
	}
	return best
}

// ownDefinitionCache caches the definitions of our API by group; they are read-only.
var ownDefinitionCache sync.Map

func ownDefinitions(group string) []*apiextensionsv1.CustomResourceDefinition {
	read, _ := ownDefinitionCache.LoadOrStore(group, sync.OnceValue(func() []*apiextensionsv1.CustomResourceDefinition { return crds.ByGroup(group) }))
	return read.(func() []*apiextensionsv1.CustomResourceDefinition)()
}

// cueObjects reads a list of objects; each knows its line.
func cueObjects(v cue.Value) ([]Object, error) {
	items, err := v.List()
	if err != nil {
		return nil, cueError("objects", err)
	}
	var out []Object
	for items.Next() {
		item := items.Value()
		if err := item.Validate(cue.Concrete(true), cue.Final()); err != nil {
			return nil, cueError("object "+items.Selector().String(), err)
		}
		raw, err := item.MarshalJSON()
		if err != nil {
			return nil, cueError("object "+items.Selector().String(), err)
		}
		pos := item.Pos()
		if kind := item.LookupPath(cue.ParsePath("kind")); kind.Exists() && kind.Pos().IsValid() {
			pos = kind.Pos()
		}
		content := map[string]any{}
		if err := utiljson.Unmarshal(raw, &content); err != nil {
			return nil, fmt.Errorf("%s:%d: object %s: %w", pos.Filename(), pos.Line(), items.Selector(), err)
		}
		out = append(out, Object{Unstructured: &unstructured.Unstructured{Object: content}, Origin: Origin{File: pos.Filename(), Line: pos.Line()}})
	}
	return out, nil
}

// crdObjects reads definitions of our API packages by group or <plural>.<group>.
func crdObjects(v cue.Value) ([]Object, error) {
	var names []string
	if err := v.Decode(&names); err != nil {
		return nil, cueError("crds", err)
	}
	var out []Object
	for i, name := range names {
		found := false
		_, group, _ := strings.Cut(name, ".")
		for _, crd := range slices.Concat(ownDefinitions(name), ownDefinitions(group)) {
			if crd.Spec.Group != name && crd.Name != name {
				continue
			}
			found = true
			obj, err := crds.ToUnstructured(crd)
			if err != nil {
				return nil, err
			}
			out = append(out, Object{Unstructured: obj, Origin: Origin{File: "api/crds/" + crd.Spec.Group + "_" + crd.Spec.Names.Plural + ".yaml"}})
		}
		if !found {
			return nil, findingAt(v.LookupPath(cue.MakePath(cue.Index(i))), "no CustomResourceDefinition for %q in our API: known groups are %s", name, strings.Join(crdGroups(), ", "))
		}
	}
	return out, nil
}

func crdGroups() []string {
	set := map[string]bool{}
	for _, crd := range crds.All() {
		set[crd.Spec.Group] = true
	}
	groups := make([]string, 0, len(set))
	for g := range set {
		groups = append(groups, g)
	}
	sort.Strings(groups)
	return groups
}

// resolveFolder finds a folder that a component names: relative to the component, or from the root
// of the catalogue. It rejects paths outside the catalogue.
func resolveFolder(dir, name string) (string, error) {
	p := path.Join(dir, name)
	if strings.HasPrefix(name, "/") {
		p = path.Clean(strings.TrimPrefix(name, "/"))
	}
	if !fs.ValidPath(p) || strings.HasPrefix(p, "..") {
		return "", fmt.Errorf("path %q leaves the catalogue", name)
	}
	return p, nil
}

// DecodeYAML splits a stream of documents into objects and records the line at which each document
// starts.
func DecodeYAML(file string, data []byte) ([]Object, error) {
	var out []Object
	for _, doc := range splitYAML(data) {
		content, err := decodeObject(doc.text)
		if err != nil {
			return nil, documentFinding(file, doc, err)
		}
		if len(content) == 0 {
			continue
		}
		origin := Origin{File: file, Line: doc.line}
		obj := &unstructured.Unstructured{Object: content}
		if obj.GetKind() == "" || obj.GetAPIVersion() == "" {
			return nil, finding{
				Position: schemas.Position{File: file, Line: doc.contentLine(), Column: 1}, kind: schemas.TypeRequired,
				message: "not an object: apiVersion and kind are required",
			}
		}
		if !obj.IsList() {
			out = append(out, Object{Unstructured: obj, Origin: origin})
			continue
		}
		if err := obj.EachListItem(func(o runtime.Object) error {
			item := o.(*unstructured.Unstructured)
			// An API server sets the type of the items once, on the list.
			if kind, typed := strings.CutSuffix(obj.GetKind(), "List"); typed && kind != "" && item.GetKind() == "" && item.GetAPIVersion() == "" {
				item.SetKind(kind)
				item.SetAPIVersion(obj.GetAPIVersion())
			}
			out = append(out, Object{Unstructured: item, Origin: origin})
			return nil
		}); err != nil {
			return nil, documentFinding(file, doc, errors.New("a List has items, each an object"))
		}
	}
	return out, nil
}

// documentFinding gives an error in a document its position: the line that the parser names, or the
// start.
func documentFinding(file string, doc yamlDocument, err error) finding {
	var node yamlv3.Node
	if syntax := yamlv3.Unmarshal(doc.text, &node); syntax != nil {
		f := syntaxFinding(file, doc.text, syntax)
		f.Line += doc.line - 1
		return f
	}
	message := "the document is not an object"
	if len(node.Content) > 0 && node.Content[0].Kind == yamlv3.MappingNode {
		message = "this is not YAML of an object: " + firstLine(err.Error())
	}
	return finding{Position: schemas.Position{File: file, Line: doc.contentLine(), Column: 1}, kind: schemas.TypeInvalid, message: message}
}

// contentLine is the first line of a document that is neither empty nor a comment.
func (d yamlDocument) contentLine() int {
	line := d.line
	for text := range bytes.Lines(d.text) {
		if text = bytes.TrimSpace(text); len(text) > 0 && text[0] != '#' {
			return line
		}
		line++
	}
	return d.line
}

// yamlDocument is one document of a stream and the line of the stream where it starts.
type yamlDocument struct {
	text []byte
	line int
	// isUnseparated means that a JSON value precedes this one without a separator.
	isUnseparated bool
}

// splitYAML cuts a stream into its documents: at lines that begin with ---, and between values of a
// JSON stream. A document may begin on the line with ---. It skips empty documents.
func splitYAML(data []byte) []yamlDocument {
	var out []yamlDocument
	current := yamlDocument{line: 1}
	take := func() {
		if len(bytes.TrimSpace(current.text)) > 0 {
			out = append(out, splitJSON(current)...)
		}
	}
	line := 0
	for text := range bytes.Lines(data) {
		line++
		rest, separator := bytes.CutPrefix(text, []byte("---"))
		if separator && (len(rest) == 0 || bytes.ContainsRune([]byte(" \t\r\n"), rune(rest[0]))) {
			take()
			if content := bytes.TrimSpace(rest); len(content) == 0 || content[0] == '#' {
				current = yamlDocument{line: line + 1}
			} else {
				current = yamlDocument{line: line, text: bytes.Clone(rest)}
			}
			continue
		}
		current.text = append(current.text, text...)
	}
	take()
	return out
}

// splitJSON cuts a document that is a stream of JSON values.
func splitJSON(doc yamlDocument) []yamlDocument {
	if text := bytes.TrimSpace(doc.text); text[0] != '{' {
		return []yamlDocument{doc}
	}
	var out []yamlDocument
	values, line, read := json.NewDecoder(bytes.NewReader(doc.text)), doc.line, int64(0)
	for {
		var value json.RawMessage
		err := values.Decode(&value)
		if errors.Is(err, io.EOF) && len(out) > 0 {
			return out
		}
		if err != nil {
			return []yamlDocument{doc} // YAML in braces, or a mistake
		}
		start := values.InputOffset() - int64(len(value))
		line += bytes.Count(doc.text[read:start], []byte("\n"))
		read = start
		out = append(out, yamlDocument{text: value, line: line, isUnseparated: len(out) > 0})
	}
}

// errTrailingContent reports content after the end of a document.
var errTrailingContent = errors.New("text follows the end of the document")

// isSingleDocument reports whether nothing follows the end of a document. It parses only documents
// that may continue.
func isSingleDocument(doc []byte) bool {
	text := bytes.TrimSpace(doc)
	if !bytes.HasPrefix(text, []byte("{")) && !bytes.Contains(text, []byte("\n...")) {
		return true
	}
	var node yamlv3.Node
	documents := yamlv3.NewDecoder(bytes.NewReader(doc))
	if documents.Decode(&node) != nil {
		return true // reported elsewhere
	}
	return errors.Is(documents.Decode(&node), io.EOF)
}

// decodeObject reads one YAML document like the API machinery: whole numbers stay integers.
func decodeObject(doc []byte) (map[string]any, error) {
	if !isSingleDocument(doc) {
		return nil, errTrailingContent
	}
	raw, err := yaml.YAMLToJSON(doc)
	if err != nil {
		return nil, err
	}
	content := map[string]any{}
	if bytes.Equal(raw, []byte("null")) {
		return content, nil
	}
	if err := utiljson.Unmarshal(raw, &content); err != nil {
		return nil, err
	}
	return content, nil
}
