package render

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sort"
	"strings"
	"sync"

	"cuelang.org/go/cue"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/api/crds"
)

// source renders the source of a bundle with the engine it names.
func source(catalogue fs.FS, dir string, in Input, spec bundleSpec) ([]Object, error) {
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
			pos := v.Pos()
			return nil, fmt.Errorf("%s:%d:%d: component.bundles.%s.source.%s: field not allowed: the source is %s already",
				pos.Filename(), pos.Line(), pos.Column(), spec.Name, engine.field, first)
		}
		first, chosen = engine.field, func() ([]Object, error) { return engine.render(v) }
	}
	if chosen != nil {
		return chosen()
	}
	if err := spec.source.Err(); err != nil {
		return nil, cueError("source", err)
	}
	return nil, errors.New("source names no engine: one of cue, helm, kustomize, crds")
}

// definitions are those of our API, read once; nobody changes them.
var definitions = sync.OnceValue(crds.All)

// cueObjects takes a list of objects; each knows the line it was written on.
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

// crdObjects takes definitions of our API packages by group or <plural>.<group>.
func crdObjects(v cue.Value) ([]Object, error) {
	var names []string
	if err := v.Decode(&names); err != nil {
		return nil, cueError("crds", err)
	}
	var out []Object
	for _, name := range names {
		found := false
		for _, crd := range definitions() {
			if crd.Spec.Group != name && crd.Name != name {
				continue
			}
			found = true
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
			if err != nil {
				return nil, fmt.Errorf("CRD %s: %w", crd.Name, err)
			}
			delete(content, "status")
			obj := &unstructured.Unstructured{Object: content}
			obj.SetAPIVersion("apiextensions.k8s.io/v1")
			obj.SetKind("CustomResourceDefinition")
			out = append(out, Object{Unstructured: obj, Origin: Origin{File: "api/crds/" + crd.Spec.Group + "_" + crd.Spec.Names.Plural + ".yaml"}})
		}
		if !found {
			return nil, fmt.Errorf("no CustomResourceDefinition for %q in our API: known groups are %s", name, strings.Join(crdGroups(), ", "))
		}
	}
	return out, nil
}

func crdGroups() []string {
	set := map[string]bool{}
	for _, crd := range definitions() {
		set[crd.Spec.Group] = true
	}
	groups := make([]string, 0, len(set))
	for g := range set {
		groups = append(groups, g)
	}
	sort.Strings(groups)
	return groups
}

// resolve finds a folder that a component names: relative to the component, or
// from the top of the catalogue. Nothing outside of the catalogue is reachable.
func resolve(dir, name string) (string, error) {
	p := path.Join(dir, name)
	if strings.HasPrefix(name, "/") {
		p = path.Clean(strings.TrimPrefix(name, "/"))
	}
	if !fs.ValidPath(p) || strings.HasPrefix(p, "..") {
		return "", fmt.Errorf("path %q leaves the catalogue", name)
	}
	return p, nil
}

// DecodeYAML splits a stream of documents into objects and keeps the line each
// one starts at.
func DecodeYAML(file string, data []byte) ([]Object, error) {
	var out []Object
	for _, doc := range splitYAML(data) {
		content, err := decodeObject(doc.text)
		if err != nil {
			return nil, fmt.Errorf("%s: document that starts at line %d: %w", file, doc.line, err)
		}
		if len(content) == 0 {
			continue
		}
		origin := Origin{File: file, Line: doc.line}
		obj := &unstructured.Unstructured{Object: content}
		if obj.GetKind() == "" || obj.GetAPIVersion() == "" {
			return nil, fmt.Errorf("%s: not an object: apiVersion and kind are required", origin)
		}
		if !obj.IsList() {
			out = append(out, Object{Unstructured: obj, Origin: origin})
			continue
		}
		if err := obj.EachListItem(func(o runtime.Object) error {
			out = append(out, Object{Unstructured: o.(*unstructured.Unstructured), Origin: origin})
			return nil
		}); err != nil {
			return nil, fmt.Errorf("%s: %w", origin, err)
		}
	}
	return out, nil
}

// yamlDocument is a part of a stream and the line of the stream it starts at.
type yamlDocument struct {
	text []byte
	line int
}

// splitYAML cuts a stream at the lines that are --- alone; empty documents are left out.
func splitYAML(data []byte) []yamlDocument {
	var out []yamlDocument
	current := yamlDocument{line: 1}
	take := func() {
		if len(bytes.TrimSpace(current.text)) > 0 {
			out = append(out, current)
		}
	}
	line := 0
	for text := range bytes.Lines(data) {
		line++
		if rest, separator := bytes.CutPrefix(text, []byte("---")); separator && len(bytes.TrimSpace(rest)) == 0 {
			take()
			current = yamlDocument{line: line + 1}
			continue
		}
		current.text = append(current.text, text...)
	}
	take()
	return out
}

// decodeObject reads one YAML document the way the API machinery does: whole
// numbers stay integers.
func decodeObject(doc []byte) (map[string]any, error) {
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
