// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/pergola-dev/pergola/schemas"
)

// reportPlainComments reports plain comments in the encrypted part of a file. SOPS would have
// encrypted them; they are most likely values that someone commented out. It needs no key.
func (l *loader) reportPlainComments(name string, c parsedObject) bool {
	metadata, _ := c.object[sopsField].(map[string]any)
	wanted, err := encryptionSelector(metadata)
	if err != nil || wanted == nil || wanted([]string{"apiVersion"}) {
		return false // reported with the values, or unknown
	}
	node, p := c.document.parse()
	if p != nil {
		return false
	}
	found := commentLines{}
	found.collect(node, nil, wanted)
	lines := strings.Split(string(c.document.data), "\n")
	reported := false
	for i, text := range lines {
		column, comment, ok := found.find(text)
		if !ok {
			continue
		}
		found[comment]--
		reported = true
		l.report(name, c.document.offset+i+1, column, "landscape/sops", schemas.TypeForbidden,
			"the comment is not encrypted, but the SOPS metadata require it: remove it, or write it with `sops FILE`; renew the value if it holds one")
	}
	return reported
}

// commentLines counts the lines of comments that are not found yet.
type commentLines map[string]int

// collect adds the plain comments at and below a node. As in SOPS, they have the path of their
// object or list (stores/yaml, appendYamlNodeToTreeBranch).
func (c commentLines) collect(node *yaml.Node, path []string, wanted func([]string) bool) {
	take := func(n *yaml.Node) {
		if len(path) > 0 && path[0] != sopsField && wanted(path) {
			c.add(n.HeadComment, n.LineComment, n.FootComment)
		}
	}
	take(node)
	switch node.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			key, value := node.Content[i], node.Content[i+1]
			take(key)
			if value.Kind == yaml.MappingNode || value.Kind == yaml.SequenceNode {
				c.collect(value, append(path[:len(path):len(path)], key.Value), wanted)
			} else {
				take(value)
			}
		}
	case yaml.SequenceNode:
		for _, item := range node.Content {
			c.collect(item, path, wanted)
		}
	}
}

func (c commentLines) add(comments ...string) {
	for _, comment := range comments {
		for line := range strings.Lines(comment) {
			line = strings.TrimSpace(line)
			if words := strings.TrimSpace(strings.TrimLeft(line, "#")); words != "" && !isEncrypted(words) {
				c[line]++
			}
		}
	}
}

// find finds a comment at the end of a line.
func (c commentLines) find(text string) (column int, comment string, ok bool) {
	text = strings.TrimRight(text, " \t\r")
	for i := range text {
		if text[i] == '#' && c[text[i:]] > 0 {
			return utf8.RuneCountInString(text[:i]) + 1, text[i:], true
		}
	}
	return 0, "", false
}
