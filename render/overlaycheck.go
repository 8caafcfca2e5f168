// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/kustomize/api/provider"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/pergola-dev/pergola/internal/suggest"
	"github.com/pergola-dev/pergola/render/strict"
	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/fieldpath"
	"github.com/pergola-dev/pergola/schemas/structure"
)

// overlayCheck checks the files of an overlay against the schemas of their objects before krusty
// merges both, because only here values have positions.
type overlayCheck struct {
	objectCheck
	overlayFiles
	k kustomization
	// nestedPatches is the number of patches of nested components, which krusty applies first.
	nestedPatches int
	// objects are the objects of the component (the first own ones), then objects that the overlay
	// adds; all are the same for krusty's selectors.
	objects    []Object
	ownCount   int
	selectable resmap.ResMap
	// warn receives possibly intended faults; nil disables warnings.
	warn func(finding)
	// addOpenReference receives references that others may satisfy; nil disables them.
	addOpenReference func(openReference)
	findings         findings
	seen             map[string]bool
}

// checkSources checks the files of added objects, and patches.
func (c *overlayCheck) checkSources(patches []patch) error {
	c.seen = map[string]bool{}
	for _, file := range c.resources {
		c.checkResource(file)
	}
	if err := c.buildIndex(); err != nil {
		return nil // krusty reports the error and its position
	}
	c.nestedPatches = len(patches) - len(c.k.targetedPatches)
	for i := range patches {
		p := &patches[i]
		targets := c.selectTargets(*p.Target)
		c.checkPatch(p, targets)
		if p.node.Kind == yamlv3.SequenceNode || c.warn != nil {
			targets = c.objectsBeforePatch(targets, patches, i)
		}
		switch {
		case p.node.Kind == yamlv3.SequenceNode:
			c.applyOperations(p, targets)
		case c.warn != nil:
			c.warnOfNewItems(p, targets)
		}
	}
	return c.findings.err()
}

// objectsBeforePatch returns objects after the patches before a given one. It skips objects whose
// state is unknown.
func (c *overlayCheck) objectsBeforePatch(objects []Object, patches []patch, until int) []Object {
	was := map[*unstructured.Unstructured]bool{}
	for _, p := range patches[:until] {
		for _, o := range c.selectTargets(*p.Target) {
			was[o.Unstructured] = true
		}
	}
	if !slices.ContainsFunc(objects, func(o Object) bool { return was[o.Unstructured] }) {
		return objects
	}
	built := c.k.Kustomization
	built.Patches, built.Replacements, built.Images, built.Replicas = c.k.Patches[:max(0, until-c.nestedPatches)], nil, nil, nil
	err := removeDeprecatedFields(c.memory, buildRoot(c.k.path), c.k.path)
	var resources resmap.ResMap
	if err == nil {
		resources, err = krustyBuild(c.memory, c.k.path, built)
	}
	if err != nil || until < c.nestedPatches {
		return slices.DeleteFunc(slices.Clone(objects), func(o Object) bool { return was[o.Unstructured] })
	}
	after, err := decodeResources(c.memory, c.k, resources, c.displayPath)
	if err != nil {
		return nil
	}
	var out []Object
	for _, o := range objects {
		i := slices.IndexFunc(after, func(a Object) bool {
			return a.GroupVersionKind() == o.GroupVersionKind() && a.GetName() == o.GetName() && a.GetNamespace() == o.GetNamespace()
		})
		if was[o.Unstructured] && i >= 0 {
			o = after[i]
		}
		if !was[o.Unstructured] || i >= 0 {
			out = append(out, o)
		}
	}
	return out
}

// report adds a finding once per position and message, because a patch may be for several objects.
func (c *overlayCheck) report(f finding) {
	if key := f.Error(); !c.seen[key] {
		c.seen[key] = true
		c.findings = append(c.findings, f)
	}
}

// buildIndex builds the objects that krusty selects from.
func (c *overlayCheck) buildIndex() error {
	marked := make([]Object, 0, len(c.objects))
	for i, o := range c.objects {
		m := o.DeepCopy()
		m.SetAnnotations(mergeMaps(m.GetAnnotations(), map[string]string{indexAnnotation: strconv.Itoa(i)}))
		marked = append(marked, Object{Unstructured: m})
	}
	manifest, err := ManifestYAML(marked)
	if err != nil {
		return err
	}
	krustyLock.Lock()
	defer krustyLock.Unlock()
	c.selectable, err = resmap.NewFactory(provider.NewDefaultDepProvider().GetResourceFactory()).NewResMapFromBytes(manifest)
	return err
}

// selectTargets are the objects that a selector matches.
func (c *overlayCheck) selectTargets(s types.Selector) []Object {
	found, err := c.selectable.Select(s)
	if err != nil {
		return nil
	}
	var out []Object
	for _, r := range found {
		if i, err := strconv.Atoi(r.GetAnnotations(indexAnnotation)[indexAnnotation]); err == nil && i < len(c.objects) {
			out = append(out, c.objects[i])
		}
	}
	return out
}

// checkResource checks a file of objects.
func (c *overlayCheck) checkResource(file string) {
	data, err := c.memory.ReadFile(file)
	if err != nil {
		return // reported before
	}
	objects, err := DecodeYAML(c.displayPath(file), data)
	if err != nil {
		return
	}
	c.objects = append(c.objects, objects...)
	for _, doc := range splitYAML(data) {
		var node yamlv3.Node
		content, err := decodeObject(doc.text)
		if err != nil || len(content) == 0 || yamlv3.Unmarshal(doc.text, &node) != nil {
			continue
		}
		at := func(n *yamlv3.Node) schemas.Position {
			return schemas.Position{File: c.displayPath(file), Line: doc.line - 1 + n.Line, Column: n.Column}
		}
		gvk := schema.FromAPIVersionAndKind(textField(content, "apiVersion"), textField(content, "kind"))
		kind := c.schemaOf(gvk)
		if kind == nil {
			if words := c.kinds.unknownKindMessage(gvk); words != "" {
				_, value := childNode(node.Content[0], "kind")
				c.report(finding{Position: at(value), field: "kind", kind: schemas.TypeNotSupported, rule: ruleObject, message: words})
			} else if words := c.kinds.similarAPI(gvk); words != "" && c.warn != nil {
				_, value := childNode(node.Content[0], "apiVersion")
				c.warn(finding{Position: at(value), field: "apiVersion", kind: schemas.TypeNotSupported, rule: ruleOverlayReference, warning: true, message: words})
			}
			kind = undefinedKind(gvk)
		}
		c.checkPart(kind, "", node.Content[0], content, at)
	}
}

func textField(content map[string]any, field string) string {
	text, _ := content[field].(string)
	return text
}

// undefinedKind represents a kind that nothing defines.
func undefinedKind(gvk schema.GroupVersionKind) *strict.Kind {
	return &strict.Kind{Kind: structure.MetadataOnlyKind(gvk)}
}

// checkPart checks a part of an object: its values and their notation.
func (c *overlayCheck) checkPart(kind *strict.Kind, entry string, node *yamlv3.Node, content map[string]any, at func(*yamlv3.Node) schemas.Position) {
	bad := map[string]bool{}
	for _, found := range kind.CheckPart(content) {
		bad[found.Path.String()] = true
		c.report(c.finding(entry, kind, at(nodeAt(node, found.Path)), found))
	}
	s := scalarCheck{report: func(n *yamlv3.Node, path fieldpath.Path, typ schemas.ViolationType, message string) {
		if !bad[path.String()] {
			c.report(c.finding(entry, kind, at(n), structure.Finding{Path: path, Type: string(typ), Message: message}))
		}
	}}
	s.walk(node, nil)
}

func (c *overlayCheck) finding(entry string, kind *strict.Kind, at schemas.Position, found structure.Finding) finding {
	field := found.Path.String()
	if entry != "" {
		field = entry + ": " + field
	}
	return finding{Position: at, field: field, kind: schemas.ViolationType(found.Type), rule: ruleObject, message: found.Message}
}

// nodeAt is the node of a field, or of its closest parent that is set. For a field this is its
// name, for an item its first node.
func nodeAt(node *yamlv3.Node, path fieldpath.Path) *yamlv3.Node {
	at := node
	for _, step := range path {
		key, value := childNode(node, step)
		if value == nil {
			break
		}
		at, node = key, value
	}
	return at
}

// checkPatch checks a strategic merge for objects.
func (c *overlayCheck) checkPatch(p *patch, targets []Object) {
	if p.node.Kind == yamlv3.SequenceNode {
		return
	}
	content, err := decodeObject([]byte(p.Patch.Patch))
	if err != nil || content["$patch"] == "delete" {
		return
	}
	c.checkDirectives(p, nil, content)
	c.warnOfOtherName(p, content)
	content, _ = withoutDirectives(content).(map[string]any)
	var checked []schema.GroupVersionKind
	for _, o := range targets {
		if gvk := o.GroupVersionKind(); !slices.Contains(checked, gvk) {
			checked = append(checked, gvk)
			kind := c.schemaOf(gvk)
			if kind == nil {
				kind = undefinedKind(gvk)
			}
			c.checkPart(kind, p.entry, p.node, content, p.position)
		}
	}
}

// warnOfOtherName warns of a patch that names a different existing object than its target: the
// patch was probably copied.
func (c *overlayCheck) warnOfOtherName(p *patch, content map[string]any) {
	kind, name, target := textField(content, "kind"), textAt(content, "metadata", "name"), strings.ReplaceAll(p.Target.Name, `\`, "")
	if c.warn == nil || target == "" || name == "" || name == target || !slices.ContainsFunc(c.objects, func(o Object) bool { return o.GetKind() == kind && o.GetName() == name }) {
		return
	}
	at := p.position(nodeAt(p.node, fieldpath.Path{"metadata", "name"}))
	c.warn(finding{Position: at, field: p.entry + ": metadata.name", kind: schemas.TypeInvalid, rule: ruleOverlayItem, warning: true,
		message: fmt.Sprintf("the patch names %s %q, but its target is %q; write the same name in both", kind, name, target)})
}

// deletableMaps are map fields in which null deletes an entry of a strategic merge.
var deletableMaps = []string{"annotations", "data", "labels", "limits", "matchLabels", "nodeSelector", "requests"}

// checkDirectives finds invalid directives of a strategic merge: Kustomize treats $patch with an
// unknown value as a field.
func (c *overlayCheck) checkDirectives(p *patch, path fieldpath.Path, value any) {
	known := []string{"delete", "merge", "replace"}
	switch v := value.(type) {
	case map[string]any:
		for _, name := range sortedKeys(v) {
			word, isText := v[name].(string)
			if name != "$patch" || isText && slices.Contains(known, word) {
				c.checkDirectives(p, path.Append(name), v[name])
				continue
			}
			hint := ""
			if better := suggest.Closest(word, known); better != "" {
				hint = fmt.Sprintf("; did you mean %q?", better)
			}
			c.report(finding{Position: p.position(nodeAt(p.node, path.Append(name))), field: p.entry + ": " + path.Append(name).String(), kind: schemas.TypeNotSupported, rule: ruleObject,
				message: fmt.Sprintf("%q is not delete, merge or replace%s", fmt.Sprint(v[name]), hint)})
		}
	case []any:
		for i, inner := range v {
			c.checkDirectives(p, path.Append(i), inner)
		}
	}
}

// withoutDirectives removes the directives of a strategic merge.
func withoutDirectives(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, inner := range v {
			if name != "" && name[0] == '$' {
				continue
			}
			if entries, is := inner.(map[string]any); is && slices.Contains(deletableMaps, name) {
				inner = maps.Clone(entries)
				maps.DeleteFunc(inner.(map[string]any), func(_ string, value any) bool { return value == nil })
			}
			out[name] = withoutDirectives(inner)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, inner := range v {
			out[i] = withoutDirectives(inner)
		}
		return out
	}
	return value
}

// scalarCheck finds values that krusty converts differently from the API.
type scalarCheck struct {
	report func(*yamlv3.Node, fieldpath.Path, schemas.ViolationType, string)
	depth  int
}

func (s scalarCheck) walk(node *yamlv3.Node, path fieldpath.Path) {
	node = resolveAlias(node)
	if s.depth++; node == nil || s.depth > maxDepth {
		return
	}
	switch node.Kind {
	case yamlv3.MappingNode:
		seen := map[string]int{}
		for i := 0; i+1 < len(node.Content); i += 2 {
			key, value := node.Content[i], node.Content[i+1]
			inner := path.Append(key.Value)
			if first, double := seen[key.Value]; double && key.ShortTag() != "!!merge" {
				s.report(key, inner, schemas.TypeDuplicate, fmt.Sprintf("the field %q is written twice: first in line %d of the patch or document", key.Value, first))
			}
			seen[key.Value] = key.Line
			if node.Style&yamlv3.FlowStyle != 0 && isEmpty(value) {
				s.report(key, inner, schemas.TypeInvalid, `has no value, and Kustomize reads it as empty text inside braces: write {}, [], "" or null`)
				continue
			}
			s.walk(value, inner)
		}
	case yamlv3.SequenceNode:
		for i, item := range node.Content {
			s.walk(item, path.Append(i))
		}
	case yamlv3.ScalarNode:
		if node.Style == 0 && node.ShortTag() == "!!timestamp" && len(node.Value) == len("2006-01-02") {
			s.report(node, path, schemas.TypeInvalid, fmt.Sprintf("is a date without quotes, which Kustomize turns into %sT00:00:00Z: put it in quotes", node.Value))
		}
	}
}

// isEmpty reports whether a value is missing.
func isEmpty(value *yamlv3.Node) bool {
	return value.Kind == yamlv3.ScalarNode && value.Style == 0 && value.Value == "" && value.ShortTag() == "!!null"
}
