// SPDX-License-Identifier: Apache-2.0

package report

import (
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// document is one YAML document of a file.
type document struct {
	// firstLine is the index of its first line in the file.
	firstLine int
	lines     []string
	// root is the parsed content; it is nil if it is invalid.
	root *yaml.Node
}

// documentMarkerPattern matches the begin or end of a document.
var documentMarkerPattern = regexp.MustCompile(`^(---|\.\.\.)(\s|$)`)

// splitDocuments parses the documents of a YAML or JSON file separately, so that a broken one does
// not affect others.
func splitDocuments(lines []string) []*document {
	var documents []*document
	current := &document{}
	for i, line := range lines {
		if !documentMarkerPattern.MatchString(line) {
			current.lines = append(current.lines, line)
			continue
		}
		documents = append(documents, current)
		// Text after the marker belongs to the document, in its column.
		current = &document{firstLine: i, lines: []string{"   " + line[3:]}}
	}
	documents = append(documents, current)
	for _, d := range documents {
		d.parse()
	}
	return documents
}

func (d *document) parse() {
	var node yaml.Node
	text := strings.TrimPrefix(strings.Join(d.lines, "\n"), "\ufeff")
	if err := yaml.Unmarshal([]byte(text), &node); err == nil && node.Kind == yaml.DocumentNode && len(node.Content) == 1 {
		d.root = node.Content[0]
	}
}

// documentAt returns the document that contains a line, counted from 1.
func documentAt(documents []*document, line int) *document {
	var found *document
	for _, d := range documents {
		if d.firstLine < line {
			found = d
		}
	}
	return found
}

// mappingValues returns all values of a key in a mapping; keys may be repeated.
func mappingValues(mapping *yaml.Node, name string) []*yaml.Node {
	var found []*yaml.Node
	if mapping == nil || mapping.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == name {
			found = append(found, resolveAlias(mapping.Content[i+1]))
		}
	}
	return found
}

// mappingText returns the text value of a key, or "" for none or several.
func mappingText(mapping *yaml.Node, name string) string {
	found := mappingValues(mapping, name)
	if len(found) != 1 || found[0].Kind != yaml.ScalarNode {
		return ""
	}
	return found[0].Value
}

func resolveAlias(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode && node.Alias != nil {
		return node.Alias
	}
	return node
}
