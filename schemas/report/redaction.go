// SPDX-License-Identifier: Apache-2.0

package report

import (
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pergola-dev/pergola/internal/secretwords"
	"github.com/pergola-dev/pergola/schemas/structure"
)

// visibility decides whether a line may be shown.
type visibility int

const (
	// visible is a line whose fields are known and not sensitive, or have harmless names and
	// values.
	visible visibility = iota
	// maybeSecret is a line without structure; it is shown unless it contains a word for a secret.
	maybeSecret
	secret
)

// encryptedPattern matches encrypted files and private keys; none of their lines is shown.
var encryptedPattern = regexp.MustCompile(`(?m)^\s*["']?sops["']?\s*:|ENC\[|PRIVATE KEY`)

// secretKindPattern matches text that may be an object with secret values, for unreadable text.
var secretKindPattern = regexp.MustCompile(`\b(Secret|SecretList|InternalSecret|InternalSecretList|ShootState|ShootStateList|List)\b["']?\s*(#.*)?(?m:$|[,}])`)

// secretKinds may have secret values in any field.
var secretKinds = [...]string{"Secret", "InternalSecret", "ShootState"}

func hasSecretKind(kind *yaml.Node) bool {
	return kind.Kind != yaml.ScalarNode || isSecretKind(kind.Value)
}

func isSecretKind(kind string) bool {
	return slices.Contains(secretKinds[:], strings.TrimSuffix(kind, "List"))
}

// visibilityMarker computes the shades of the lines of a document.
type visibilityMarker struct {
	findSchema   func(schema.GroupVersionKind) *structure.Kind
	visibilities []visibility
	// lastLine and lastVisibility are the latest mark: lines up to the next mark belong to the same
	// value.
	lastLine       int
	lastVisibility visibility
}

// documentVisibilities returns the shades of the lines of all documents. An unreadable document
// after a hidden unreadable one is hidden, too: the marker between them may be a line of text.
func documentVisibilities(documents []*document, kinds func(schema.GroupVersionKind) *structure.Kind) []visibility {
	var all []visibility
	rest := false
	for _, d := range documents {
		s := &visibilityMarker{findSchema: kinds, visibilities: make([]visibility, len(d.lines))}
		if d.root != nil && s.markObject(d.root) {
			s.markLine(len(d.lines)+1, visible)
			all, rest = append(all, s.visibilities...), false
			continue
		}
		sh := unparsedVisibility(strings.Join(d.lines, "\n"))
		if rest {
			sh = secret
		}
		rest = sh == secret && d.root == nil
		all = append(all, slices.Repeat([]visibility{sh}, len(d.lines))...)
	}
	return all
}

// unparsedVisibility returns the shade of text without a readable object of a known kind.
func unparsedVisibility(text string) visibility {
	if secretKindPattern.MatchString(text) || canHoldSecretValues(text, plainKindPattern) {
		return secret
	}
	return maybeSecret
}

// cueVisibility returns the shade of CUE text without evaluation. It hides the whole text if a kind
// is unclear or fields look like those of objects with secret values.
func cueVisibility(text string) visibility {
	if secretKindPattern.MatchString(text) || canHoldSecretValues(text, plainCUEKindPattern) || computedLabelPattern.MatchString(text) {
		return secret
	}
	return maybeSecret
}

var (
	// kindFieldPattern matches a kind field and the rest of its line.
	kindFieldPattern = regexp.MustCompile(`\bkind["']?[ \t]*[?!]?[ \t]*:([^\n]*)`)
	// secretDataPattern matches fields with values of Secrets.
	secretDataPattern = regexp.MustCompile(`\b(data|stringData)["']?\s*[?!]?\s*:`)
	plainKindPattern  = regexp.MustCompile(`^[ \t]*["']?[A-Za-z]+["']?[ \t\r]*(#.*|[,}].*)?$`)
	// plainCUEKindPattern permits other kinds in the line, which confidential detects.
	plainCUEKindPattern = regexp.MustCompile(`^[ \t]*"[A-Za-z]+"[ \t\r]*(//.*|[,}].*)?$`)
	// computedLabelPattern matches computed field names and names with escapes. Interpolations such
	// as "\(name)" are names of declarations and do not match.
	computedLabelPattern = regexp.MustCompile(`"[^"\n]*\\[^("\n][^"\n]*"[ \t]*[?!]?[ \t]*:|\)[ \t]*[?!]?[ \t]*:`)
)

// canHoldSecretValues reports whether the text has fields for secret values, or a kind that is not
// plain.
func canHoldSecretValues(text string, plain *regexp.Regexp) bool {
	return secretDataPattern.MatchString(text) || slices.ContainsFunc(kindFieldPattern.FindAllStringSubmatch(text, -1), func(found []string) bool {
		return !plain.MatchString(found[1])
	})
}

// markObject marks the lines of an object; the result is false if its kind is unknown.
func (s *visibilityMarker) markObject(o *yaml.Node) bool {
	kinds := mappingValues(o, "kind")
	switch {
	case slices.ContainsFunc(kinds, hasSecretKind) || len(mappingValues(o, "sops")) > 0:
		s.markValue(o, nil, secret)
		return true
	case len(kinds) != 1:
		return false
	case strings.HasSuffix(kinds[0].Value, "List"):
		return s.markList(o)
	}
	gv, err := schema.ParseGroupVersion(mappingText(o, "apiVersion"))
	if err != nil {
		return false
	}
	kind := s.findSchema(gv.WithKind(kinds[0].Value))
	if kind == nil {
		return false
	}
	s.markValue(o, kind.Root, visible)
	return true
}

// markList marks the lines of a list of objects. It hides the whole list if one item is a secret,
// and all fields other than items.
func (s *visibilityMarker) markList(list *yaml.Node) bool {
	items := mappingValues(list, "items")
	if len(items) != 1 || items[0].Kind != yaml.SequenceNode {
		s.markValue(list, nil, secret)
		return true
	}
	for _, item := range items[0].Content {
		if item.Kind != yaml.MappingNode || len(mappingValues(item, "sops")) > 0 || slices.ContainsFunc(mappingValues(item, "kind"), hasSecretKind) {
			s.markValue(list, nil, secret)
			return true
		}
	}
	for i := 0; i+1 < len(list.Content); i += 2 {
		s.markLine(list.Content[i].Line, maybeSecret)
		if list.Content[i+1] != items[0] {
			s.markValue(list.Content[i+1], nil, secret)
			continue
		}
		for _, item := range items[0].Content {
			if !s.markObject(item) {
				s.markValue(item, nil, maybeSecret)
			}
		}
	}
	return true
}

// markLine sets the shade of the value that begins in a line, counted from 1.
func (s *visibilityMarker) markLine(line int, sh visibility) {
	for i := s.lastLine + 1; i < line && i <= len(s.visibilities); i++ {
		s.visibilities[i-1] = max(s.visibilities[i-1], s.lastVisibility)
	}
	if line >= 1 && line <= len(s.visibilities) {
		s.visibilities[line-1] = max(s.visibilities[line-1], sh)
	}
	s.lastLine, s.lastVisibility = line, sh
}

// markValue marks the lines of a value; node is its schema, or nil.
func (s *visibilityMarker) markValue(v *yaml.Node, node *structure.Node, sh visibility) {
	if v.Anchor != "" || v.Kind == yaml.AliasNode {
		node = nil // other fields share the value
	}
	switch {
	case sh == secret:
	case node == nil:
		sh = max(sh, unknownValueVisibility(v))
	case node.Sensitive, node.Format == "byte":
		sh = secret
	case !hasSchemaType(v, node):
		sh = max(sh, unknownValueVisibility(v))
		if canHoldSecret(node) {
			sh = secret
		}
		node = nil
	}
	s.markLine(v.Line, sh)
	switch v.Kind {
	case yaml.SequenceNode:
		for _, item := range v.Content {
			s.markValue(item, itemSchema(node), childVisibility(sh))
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(v.Content); i += 2 {
			child, own := fieldSchema(node, v.Content[i].Value)
			own = max(own, childVisibility(sh))
			s.markLine(v.Content[i].Line, own)
			s.markValue(v.Content[i+1], child, own)
		}
	}
}

// childVisibility returns the shade for fields of a value. Only hidden is inherited; other fields
// are judged separately.
func childVisibility(sh visibility) visibility {
	if sh == secret {
		return secret
	}
	return visible
}

func itemSchema(node *structure.Node) *structure.Node {
	if node == nil {
		return nil
	}
	return node.Items
}

// fieldSchema returns the schema of a field and the shade of its name.
func fieldSchema(node *structure.Node, name string) (*structure.Node, visibility) {
	switch {
	case node == nil && secretwords.HasSecretWord(name):
		return nil, secret
	case node == nil:
		return nil, visible
	case node.Properties[name] != nil:
		return node.Properties[name], visible
	case node.HidesUnknownNames, secretwords.HasSecretWord(name):
		return nil, secret
	}
	return node.Additional, visible
}

// unknownValueVisibility returns the shade of a value without schema. Its fields are judged by
// their names and values.
func unknownValueVisibility(v *yaml.Node) visibility {
	switch v.Kind {
	case yaml.ScalarNode:
		if secretwords.HasSecretWord(v.Value) || secretKindPattern.MatchString(v.Value) {
			return secret
		}
		return visible
	case yaml.MappingNode:
		if slices.ContainsFunc(mappingValues(v, "kind"), hasSecretKind) && len(mappingValues(v, "data"))+len(mappingValues(v, "stringData")) > 0 {
			return secret
		}
		return visible
	case yaml.SequenceNode:
		return visible
	}
	return maybeSecret
}

// hasSchemaType reports whether a value has the type of its schema. Another type may be a misplaced
// value.
func hasSchemaType(v *yaml.Node, node *structure.Node) bool {
	switch v.Kind {
	case yaml.MappingNode:
		return node.Properties != nil || node.Additional != nil
	case yaml.SequenceNode:
		return node.Items != nil
	case yaml.ScalarNode:
		return v.Tag == "!!null" || node.IntOrString || node.Type != "" && node.Type != "object" && node.Type != "array"
	}
	return false
}

// canHoldSecret reports whether values of the schema may contain a secret.
func canHoldSecret(node *structure.Node) bool {
	if node == nil {
		return false
	}
	if node.Sensitive || canHoldSecret(node.Items) || canHoldSecret(node.Additional) {
		return true
	}
	for _, child := range node.Properties {
		if canHoldSecret(child) {
			return true
		}
	}
	return false
}
