// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"fmt"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/pergola-dev/pergola/schemas"
)

// converter turns the nodes of one document into the content of an object, and collects problems.
type converter struct {
	limits Limits
	values int
	// quotable reports whether a problem may quote a line; nil means never.
	quotable func(line int) bool
	problems []problem
	stopped  bool
	anchors  map[string]*yaml.Node
}

func (c *converter) add(node *yaml.Node, format string, args ...any) {
	c.problems = append(c.problems, problem{node.Line, node.Column, fmt.Sprintf(format, args...)})
}

// canQuote reports whether a problem may quote a node.
func (c *converter) canQuote(node *yaml.Node) bool { return c.quotable != nil && c.quotable(node.Line) }

// failAt reports a problem after which conversion ends.
func (c *converter) failAt(node *yaml.Node, format string, args ...any) any {
	if !c.stopped {
		c.stopped = true
		c.add(node, format, args...)
	}
	return nil
}

func (c *converter) convertValue(node *yaml.Node, depth int) any {
	if c.stopped {
		return nil
	}
	if c.values++; c.values > c.limits.Values {
		return c.failAt(node, "the document has more than %d values with its anchors expanded", c.limits.Values)
	}
	if depth > c.limits.Depth {
		return c.failAt(node, "values are nested more than %d deep, or an anchor holds itself", c.limits.Depth)
	}
	if node.Anchor != "" {
		c.checkAnchor(node)
	}
	switch node.Kind {
	case yaml.AliasNode:
		return c.convertValue(node.Alias, depth+1)
	case yaml.SequenceNode:
		list := make([]any, len(node.Content))
		for i, item := range node.Content {
			list[i] = c.convertValue(item, depth+1)
		}
		return list
	case yaml.MappingNode:
		return c.convertMapping(node, depth)
	}
	value, words := scalarValue(node)
	if r, _ := utf8.DecodeRuneInString(node.Value); node.Style == 0 && invisibleCharacters[r] != "" {
		words = "begins with " + invisibleCharacters[r] + ", which is invisible; remove it, or put the value in quotes"
	}
	if r, _ := utf8.DecodeLastRuneInString(node.Value); words == "" && node.Style == 0 && invisibleCharacters[r] != "" {
		words = "ends with " + invisibleCharacters[r] + ", which is invisible; remove it, or put the value in quotes"
	}
	if words == unknownTag && c.canQuote(node) {
		words = "has the tag " + node.Tag + unknownTagHint
	}
	if words != "" {
		c.add(node, "the value %s", words)
	}
	return value
}

func (c *converter) convertMapping(node *yaml.Node, depth int) map[string]any {
	result := make(map[string]any, len(node.Content)/2)
	lines := make(map[string]int, len(node.Content)/2)
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if key.ShortTag() == "!!merge" {
			c.mergeInto(result, lines, value, depth)
			continue
		}
		name, ok := keyText(key)
		if !ok {
			c.add(key, "the name of a field must be text")
			continue
		}
		if name := invisibleCharacterIn(name); name != "" {
			c.add(key, "the name of the field contains %s, which is invisible or looks like a space; retype the name", name)
			continue
		}
		if line := lines[name]; line > 0 {
			what := "a field"
			if c.canQuote(key) {
				what = fmt.Sprintf("the field %q", name)
			}
			c.add(key, "%s is written twice: first in line %d", what, line)
			continue
		}
		lines[name] = key.Line
		result[name] = c.convertValue(value, depth+1)
	}
	return result
}

// invisibleCharacterIn names an invisible character in a field name, as in text from a web page; it
// is empty if there is none.
func invisibleCharacterIn(name string) string {
	for _, r := range name {
		if what := invisibleCharacters[r]; what != "" && r != '\t' {
			return what
		}
	}
	return ""
}

// checkAnchor reports an anchor that is defined twice: aliases before and after it would have
// different values.
func (c *converter) checkAnchor(node *yaml.Node) {
	if c.anchors == nil {
		c.anchors = map[string]*yaml.Node{}
	}
	first := c.anchors[node.Anchor]
	if first == nil {
		c.anchors[node.Anchor] = node
	} else if first != node {
		c.add(node, "the anchor is defined twice: first in line %d; give each its own name", first.Line)
		c.anchors[node.Anchor] = node
	}
}

// mergeInto adds the fields of the maps after a merge key that are not set explicitly.
func (c *converter) mergeInto(result map[string]any, lines map[string]int, value *yaml.Node, depth int) {
	sources := []any{c.convertValue(value, depth+1)}
	if list, ok := sources[0].([]any); ok {
		sources = list
	}
	for _, source := range sources {
		fields, ok := source.(map[string]any)
		if !ok {
			if !c.stopped {
				c.add(value, "the merge key << needs a map, or a list of maps")
			}
			return
		}
		for name, field := range fields {
			if _, set := result[name]; !set && lines[name] == 0 {
				result[name] = field
			}
		}
	}
}

// keyText returns the text of a key. Numbers and booleans become text, as in JSON.
func keyText(node *yaml.Node) (string, bool) {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	if node.Kind != yaml.ScalarNode {
		return "", false
	}
	return node.Value, true
}

// newPositionTree returns where a node and its parts are written. An alias counts as the place of
// its content.
func newPositionTree(file string, node *yaml.Node, depth int) *positionTree {
	if node.Kind == yaml.AliasNode {
		tree := newPositionTree(file, node.Alias, depth+1)
		tree.position = schemas.Position{File: file, Line: node.Line, Column: node.Column}
		return tree
	}
	tree := &positionTree{position: schemas.Position{File: file, Line: node.Line, Column: node.Column}}
	if depth > 1000 {
		return tree
	}
	switch node.Kind {
	case yaml.ScalarNode:
		if node.Style&yaml.LiteralStyle != 0 {
			tree.literal = node.Value
		}
	case yaml.SequenceNode:
		tree.items = make([]*positionTree, len(node.Content))
		for i, item := range node.Content {
			tree.items[i] = newPositionTree(file, item, depth+1)
		}
	case yaml.MappingNode:
		tree.isMap = true
		tree.fields = make(map[string]*positionTree, len(node.Content)/2)
		for i := 0; i+1 < len(node.Content); i += 2 {
			key, value := node.Content[i], node.Content[i+1]
			name, ok := keyText(key)
			if !ok {
				continue
			}
			if key.ShortTag() == "!!merge" {
				mergePositions(tree, newPositionTree(file, value, depth+1))
				continue
			}
			child := newPositionTree(file, value, depth+1)
			child.key = schemas.Position{File: file, Line: key.Line, Column: key.Column}
			tree.fields[name] = child
		}
	}
	return tree
}

func mergePositions(tree, source *positionTree) {
	for _, from := range append([]*positionTree{source}, source.items...) {
		for name, child := range from.fields {
			if tree.fields[name] == nil {
				tree.fields[name] = child
			}
		}
	}
}
