// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"slices"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"

	"github.com/pergola-dev/pergola/internal/suggest"
	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/fieldpath"
	"github.com/pergola-dev/pergola/schemas/structure"
)

// warnOfNewItems warns of items that a strategic merge adds to lists of the component: a misspelt
// container name makes a second container. Items of one of the objects are not new, nor are items
// of a list that the component does not have.
func (c *overlayCheck) warnOfNewItems(p *patch, targets []Object) {
	var added map[*yamlv3.Node]finding
	for i, o := range targets {
		kind := c.schemaOf(o.GroupVersionKind())
		if kind == nil {
			return
		}
		w := itemWalk{patch: p, object: o, added: map[*yamlv3.Node]finding{}}
		w.walk(p.node, kind.Root, o.Object, nil)
		if i == 0 {
			added = w.added
		}
		for node := range added {
			if _, here := w.added[node]; !here {
				delete(added, node)
			}
		}
	}
	for _, f := range added {
		c.warn(f)
	}
}

// itemWalk visits a patch and an object in parallel.
type itemWalk struct {
	patch  *patch
	object Object
	added  map[*yamlv3.Node]finding
}

func (w *itemWalk) walk(node *yamlv3.Node, n *structure.Node, value any, path fieldpath.Path) {
	node = resolveAlias(node)
	if n == nil || node == nil || value == nil || len(path) > maxDepth {
		return
	}
	switch v := value.(type) {
	case map[string]any:
		if node.Kind != yamlv3.MappingNode {
			return
		}
		for i := 0; i+1 < len(node.Content); i += 2 {
			name := node.Content[i].Value
			inner, step := n.Properties[name], any(name)
			if inner == nil {
				inner, step = n.Additional, fieldpath.Key(name)
			}
			w.walk(node.Content[i+1], inner, v[name], path.Append(step))
		}
	case []any:
		switch {
		case node.Kind != yamlv3.SequenceNode || len(v) == 0:
		case n.ListType == "map":
			w.compareList(node, n, v, path)
		case len(path) > 0 && slices.Contains([]any{"args", "command"}, path[len(path)-1]):
			w.findDroppedArguments(node, v, path)
		}
	}
}

// findDroppedArguments finds arguments that a patch drops, because a strategic merge replaces the
// whole list: most likely it should add or change one.
func (w *itemWalk) findDroppedArguments(node *yamlv3.Node, items []any, path fieldpath.Path) {
	flags := func(text string) string {
		name, _, _ := strings.Cut(text, "=")
		return name
	}
	var kept []string
	for _, item := range node.Content {
		kept = append(kept, flags(item.Value))
	}
	var gone []string
	for _, item := range items {
		if text, ok := item.(string); ok && !slices.Contains(kept, flags(text)) {
			gone = append(gone, text)
		}
	}
	if len(gone) > 0 {
		w.added[node] = finding{
			Position: w.patch.position(node), field: path.String(), kind: schemas.TypeInvalid, rule: ruleOverlayItem, warning: true,
			message: fmt.Sprintf("replaces the whole list: %s %s loses %s; to add or change one, use operations of a JSON patch", w.object.GetKind(), w.object.GetName(), strings.Join(firstNames(gone), ", ")),
		}
	}
}

// compareList compares the items of a list by their key. A strategic merge uses only the first key.
func (w *itemWalk) compareList(node *yamlv3.Node, n *structure.Node, items []any, path fieldpath.Path) {
	key := n.ListKeys[0]
	byKey := map[string]any{}
	for _, item := range items {
		if object, ok := item.(map[string]any); ok {
			byKey[fmt.Sprint(object[key])] = item
		}
	}
	for i, item := range node.Content {
		_, name := childNode(item, key)
		if name == nil {
			continue
		}
		if known, ok := byKey[name.Value]; ok {
			w.walk(item, n.Items, known, path.Append(i))
			continue
		}
		_, directive := childNode(item, "$patch")
		w.added[name] = w.finding(name, path.Append(i, key), sortedKeys(byKey), directive != nil && directive.Value == "delete")
	}
}

func (w *itemWalk) finding(name *yamlv3.Node, path fieldpath.Path, known []string, deletes bool) finding {
	hint := "it has " + strings.Join(firstNames(known), ", ")
	if guess := suggest.Closest(name.Value, known); guess != "" {
		hint += fmt.Sprintf("; did you mean %q?", guess)
	}
	list := path[:len(path)-2].String()
	message := fmt.Sprintf("adds an item to %s: %s has no %q there; %s To add it on purpose, use an operation add with the path /%s/-",
		list, nameOfObject(w.object), name.Value, addFullStop(hint), strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(list, "[", "/"), "]", ""), ".", "/"))
	if deletes {
		message = fmt.Sprintf("deletes nothing: %s has no %q in %s; %s", nameOfObject(w.object), name.Value, list, hint)
	}
	return finding{Position: w.patch.position(name), field: w.patch.entry + ": " + path.String(), kind: schemas.TypeInvalid, rule: ruleOverlayItem, warning: true, message: message}
}

func addFullStop(text string) string {
	if strings.HasSuffix(text, "?") {
		return text
	}
	return text + "."
}

// firstNames are the first of many names.
func firstNames(names []string) []string {
	if len(names) > 8 {
		return append(slices.Clone(names[:8]), "…")
	}
	return names
}
