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

// shade decides whether a line may be shown.
type shade int

const (
	// shown is a line whose fields are known and not sensitive, or have harmless names and values.
	shown shade = iota
	// guarded is a line without structure; it is shown unless it contains a word for a secret.
	guarded
	hidden
)

// encrypted matches encrypted files and private keys; none of their lines is shown.
var encrypted = regexp.MustCompile(`(?m)^\s*["']?sops["']?\s*:|ENC\[|PRIVATE KEY`)

// confidential matches text that may be an object with secret values, for unreadable text.
var confidential = regexp.MustCompile(`\b(Secret|SecretList|InternalSecret|InternalSecretList|ShootState|ShootStateList|List)\b["']?\s*(#.*)?(?m:$|[,}])`)

// secretKinds may have secret values in any field.
var secretKinds = [...]string{"Secret", "InternalSecret", "ShootState"}

func isSecret(kind *yaml.Node) bool { return kind.Kind != yaml.ScalarNode || isSecretKind(kind.Value) }

func isSecretKind(kind string) bool {
	return slices.Contains(secretKinds[:], strings.TrimSuffix(kind, "List"))
}

// shading computes the shades of the lines of a document.
type shading struct {
	kinds  func(schema.GroupVersionKind) *structure.Kind
	shades []shade
	// last and lastShade are the latest mark: lines up to the next mark belong to the same value.
	last      int
	lastShade shade
}

// shadesOf returns the shades of the lines of all documents. An unreadable document after a hidden
// unreadable one is hidden, too: the marker between them may be a line of text.
func shadesOf(documents []*document, kinds func(schema.GroupVersionKind) *structure.Kind) []shade {
	var all []shade
	rest := false
	for _, d := range documents {
		s := &shading{kinds: kinds, shades: make([]shade, len(d.lines))}
		if d.root != nil && s.object(d.root) {
			s.mark(len(d.lines)+1, shown)
			all, rest = append(all, s.shades...), false
			continue
		}
		sh := careful(strings.Join(d.lines, "\n"))
		if rest {
			sh = hidden
		}
		rest = sh == hidden && d.root == nil
		all = append(all, slices.Repeat([]shade{sh}, len(d.lines))...)
	}
	return all
}

// careful returns the shade of text without a readable object of a known kind.
func careful(text string) shade {
	if confidential.MatchString(text) || holdsValues(text, plainKind) {
		return hidden
	}
	return guarded
}

// carefulCUE returns the shade of CUE text without evaluation. It hides the whole text if a kind is
// unclear or fields look like those of objects with secret values.
func carefulCUE(text string) shade {
	if confidential.MatchString(text) || holdsValues(text, plainKindCUE) || oddLabel.MatchString(text) {
		return hidden
	}
	return guarded
}

var (
	// kindField matches a kind field and the rest of its line.
	kindField = regexp.MustCompile(`\bkind["']?[ \t]*[?!]?[ \t]*:([^\n]*)`)
	// valuesField matches fields with values of Secrets.
	valuesField = regexp.MustCompile(`\b(data|stringData)["']?\s*[?!]?\s*:`)
	plainKind   = regexp.MustCompile(`^[ \t]*["']?[A-Za-z]+["']?[ \t\r]*(#.*|[,}].*)?$`)
	// plainKindCUE permits other kinds in the line, which confidential detects.
	plainKindCUE = regexp.MustCompile(`^[ \t]*"[A-Za-z]+"[ \t\r]*(//.*|[,}].*)?$`)
	// oddLabel matches computed field names and names with escapes. Interpolations such as
	// "\(name)" are names of declarations and do not match.
	oddLabel = regexp.MustCompile(`"[^"\n]*\\[^("\n][^"\n]*"[ \t]*[?!]?[ \t]*:|\)[ \t]*[?!]?[ \t]*:`)
)

// holdsValues reports whether the text has fields for secret values, or a kind that is not plain.
func holdsValues(text string, plain *regexp.Regexp) bool {
	return valuesField.MatchString(text) || slices.ContainsFunc(kindField.FindAllStringSubmatch(text, -1), func(found []string) bool {
		return !plain.MatchString(found[1])
	})
}

// object marks the lines of an object; false if its kind is unknown.
func (s *shading) object(o *yaml.Node) bool {
	kinds := values(o, "kind")
	switch {
	case slices.ContainsFunc(kinds, isSecret) || len(values(o, "sops")) > 0:
		s.value(o, nil, hidden)
		return true
	case len(kinds) != 1:
		return false
	case strings.HasSuffix(kinds[0].Value, "List"):
		return s.list(o)
	}
	gv, err := schema.ParseGroupVersion(text(o, "apiVersion"))
	if err != nil {
		return false
	}
	kind := s.kinds(gv.WithKind(kinds[0].Value))
	if kind == nil {
		return false
	}
	s.value(o, kind.Root, shown)
	return true
}

// list marks the lines of a list of objects. It hides the whole list if one item is a secret, and
// all fields other than items.
func (s *shading) list(list *yaml.Node) bool {
	items := values(list, "items")
	if len(items) != 1 || items[0].Kind != yaml.SequenceNode {
		s.value(list, nil, hidden)
		return true
	}
	for _, item := range items[0].Content {
		if item.Kind != yaml.MappingNode || len(values(item, "sops")) > 0 || slices.ContainsFunc(values(item, "kind"), isSecret) {
			s.value(list, nil, hidden)
			return true
		}
	}
	for i := 0; i+1 < len(list.Content); i += 2 {
		s.mark(list.Content[i].Line, guarded)
		if list.Content[i+1] != items[0] {
			s.value(list.Content[i+1], nil, hidden)
			continue
		}
		for _, item := range items[0].Content {
			if !s.object(item) {
				s.value(item, nil, guarded)
			}
		}
	}
	return true
}

// mark sets the shade of the value that begins in a line, counted from 1.
func (s *shading) mark(line int, sh shade) {
	for i := s.last + 1; i < line && i <= len(s.shades); i++ {
		s.shades[i-1] = max(s.shades[i-1], s.lastShade)
	}
	if line >= 1 && line <= len(s.shades) {
		s.shades[line-1] = max(s.shades[line-1], sh)
	}
	s.last, s.lastShade = line, sh
}

// value marks the lines of a value; node is its schema, or nil.
func (s *shading) value(v *yaml.Node, node *structure.Node, sh shade) {
	if v.Anchor != "" || v.Kind == yaml.AliasNode {
		node = nil // other fields share the value
	}
	switch {
	case sh == hidden:
	case node == nil:
		sh = max(sh, untold(v))
	case node.Sensitive, node.Format == "byte":
		sh = hidden
	case !fits(v, node):
		sh = max(sh, untold(v))
		if holdsSensitive(node) {
			sh = hidden
		}
		node = nil
	}
	s.mark(v.Line, sh)
	switch v.Kind {
	case yaml.SequenceNode:
		for _, item := range v.Content {
			s.value(item, itemsOf(node), inherited(sh))
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(v.Content); i += 2 {
			child, own := fieldOf(node, v.Content[i].Value)
			own = max(own, inherited(sh))
			s.mark(v.Content[i].Line, own)
			s.value(v.Content[i+1], child, own)
		}
	}
}

// inherited returns the shade for fields of a value. Only hidden is inherited; other fields are
// judged separately.
func inherited(sh shade) shade {
	if sh == hidden {
		return hidden
	}
	return shown
}

func itemsOf(node *structure.Node) *structure.Node {
	if node == nil {
		return nil
	}
	return node.Items
}

// fieldOf returns the schema of a field and the shade of its name.
func fieldOf(node *structure.Node, name string) (*structure.Node, shade) {
	switch {
	case node == nil && secretwords.HasSecretWord(name):
		return nil, hidden
	case node == nil:
		return nil, shown
	case node.Properties[name] != nil:
		return node.Properties[name], shown
	case node.SecretNames, secretwords.HasSecretWord(name):
		return nil, hidden
	}
	return node.Additional, shown
}

// untold returns the shade of a value without schema. Its fields are judged by their names and
// values.
func untold(v *yaml.Node) shade {
	switch v.Kind {
	case yaml.ScalarNode:
		if secretwords.HasSecretWord(v.Value) || confidential.MatchString(v.Value) {
			return hidden
		}
		return shown
	case yaml.MappingNode:
		if slices.ContainsFunc(values(v, "kind"), isSecret) && len(values(v, "data"))+len(values(v, "stringData")) > 0 {
			return hidden
		}
		return shown
	case yaml.SequenceNode:
		return shown
	}
	return guarded
}

// fits reports whether a value has the type of its schema. Another type may be a misplaced value.
func fits(v *yaml.Node, node *structure.Node) bool {
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

// holdsSensitive reports whether values of the schema may contain a secret.
func holdsSensitive(node *structure.Node) bool {
	if node == nil {
		return false
	}
	if node.Sensitive || holdsSensitive(node.Items) || holdsSensitive(node.Additional) {
		return true
	}
	for _, child := range node.Properties {
		if holdsSensitive(child) {
			return true
		}
	}
	return false
}
