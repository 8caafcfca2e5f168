package report

import (
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// document is one of a file: the lines between two markers.
type document struct {
	// first is the index of its first line in the file.
	first int
	lines []string
	// root is what it holds; nil where that cannot be parsed.
	root *yaml.Node
}

// marker begins or ends a document.
var marker = regexp.MustCompile(`^(---|\.\.\.)(\s|$)`)

// split gives the documents of a file of YAML or JSON. Each is parsed by itself, so that a broken
// one says nothing about the others.
func split(lines []string) []*document {
	var documents []*document
	current := &document{}
	for i, line := range lines {
		if !marker.MatchString(line) {
			current.lines = append(current.lines, line)
			continue
		}
		documents = append(documents, current)
		// What stands behind the marker belongs to the document, in its column.
		current = &document{first: i, lines: []string{"   " + line[3:]}}
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

// at gives the document that has a line, counted from 1.
func at(documents []*document, line int) *document {
	var found *document
	for _, d := range documents {
		if d.first < line {
			found = d
		}
	}
	return found
}

// values gives what a mapping has under a name. A name may be written twice.
func values(mapping *yaml.Node, name string) []*yaml.Node {
	var found []*yaml.Node
	if mapping == nil || mapping.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == name {
			found = append(found, resolved(mapping.Content[i+1]))
		}
	}
	return found
}

// text gives the text that a mapping has under a name, "" if it has none or several.
func text(mapping *yaml.Node, name string) string {
	found := values(mapping, name)
	if len(found) != 1 || found[0].Kind != yaml.ScalarNode {
		return ""
	}
	return found[0].Value
}

func resolved(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode && node.Alias != nil {
		return node.Alias
	}
	return node
}
