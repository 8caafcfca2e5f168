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

// shade says whether a line may be shown.
type shade int

const (
	// shown is a line whose fields the schema knows, none of them as one that holds a secret, or
	// whose others do not tell of one.
	shown shade = iota
	// guarded is a line that cannot be taken apart: it is shown if no word in it tells of a secret.
	guarded
	hidden
)

// encrypted is a file that is encrypted, or holds a key in plain text: none of its lines is shown.
var encrypted = regexp.MustCompile(`(?m)^\s*["']?sops["']?\s*:|ENC\[|PRIVATE KEY`)

// confidential is text that may be an object with secret values, for what cannot be read as an
// object.
var confidential = regexp.MustCompile(`\b(Secret|SecretList|InternalSecret|InternalSecretList|ShootState|ShootStateList|List)\b["']?\s*(#.*)?(?m:$|[,}])`)

// secretKinds hold secret values wherever it is in them.
var secretKinds = [...]string{"Secret", "InternalSecret", "ShootState"}

func isSecret(kind *yaml.Node) bool { return kind.Kind != yaml.ScalarNode || isSecretKind(kind.Value) }

func isSecretKind(kind string) bool {
	return slices.Contains(secretKinds[:], strings.TrimSuffix(kind, "List"))
}

// shading finds the shades of the lines of a document.
type shading struct {
	kinds  func(schema.GroupVersionKind) *structure.Kind
	shades []shade
	// last is the line that was marked last, with its shade: the lines up to the next mark are a
	// part of the same value.
	last      int
	lastShade shade
}

// shadesOf gives the shades of the lines of all documents. What cannot be read, behind what is
// hidden because it cannot be read, may be the rest of it: a line of text that looks like a marker.
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

// careful gives the shade of text that cannot be read as an object whose kind has a schema.
func careful(text string) shade {
	if confidential.MatchString(text) || holdsValues(text, plainKind) {
		return hidden
	}
	return guarded
}

// carefulCUE gives the shade of text in CUE. Nothing is evaluated for it: where the text leaves
// open what a kind is, or has fields as objects with secret values have them, all of it is hidden.
func carefulCUE(text string) shade {
	if confidential.MatchString(text) || holdsValues(text, plainKindCUE) || oddLabel.MatchString(text) {
		return hidden
	}
	return guarded
}

var (
	// kindField is a field that says what an object is, with what stands behind it in the line.
	kindField = regexp.MustCompile(`\bkind["']?[ \t]*[?!]?[ \t]*:([^\n]*)`)
	// valuesField is a field that holds values of Secrets.
	valuesField = regexp.MustCompile(`\b(data|stringData)["']?\s*[?!]?\s*:`)
	plainKind   = regexp.MustCompile(`^[ \t]*["']?[A-Za-z]+["']?[ \t\r]*(#.*|[,}].*)?$`)
	// plainKindCUE may have other kinds beside it: those are looked for by confidential.
	plainKindCUE = regexp.MustCompile(`^[ \t]*"[A-Za-z]+"[ \t\r]*(//.*|[,}].*)?$`)
	// oddLabel is the name of a field that has escapes, or is computed. One that is put together of
	// text and the value of a name, as "\(name)", is that of a declaration.
	oddLabel = regexp.MustCompile(`"[^"\n]*\\[^("\n][^"\n]*"[ \t]*[?!]?[ \t]*:|\)[ \t]*[?!]?[ \t]*:`)
)

// holdsValues tells whether fields are written down that hold secret values, or a kind in another
// form than a plain one.
func holdsValues(text string, plain *regexp.Regexp) bool {
	return valuesField.MatchString(text) || slices.ContainsFunc(kindField.FindAllStringSubmatch(text, -1), func(found []string) bool {
		return !plain.MatchString(found[1])
	})
}

// object marks the lines of an object; false if its kind is not known.
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

// list marks the lines of a list of objects. It is hidden if one of them is, and so is all that is
// no item.
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

// mark says that something of a shade begins in a line, counted from 1.
func (s *shading) mark(line int, sh shade) {
	for i := s.last + 1; i < line && i <= len(s.shades); i++ {
		s.shades[i-1] = max(s.shades[i-1], s.lastShade)
	}
	if line >= 1 && line <= len(s.shades) {
		s.shades[line-1] = max(s.shades[line-1], sh)
	}
	s.last, s.lastShade = line, sh
}

// value marks the lines of a value of which the schema is given, nil where there is none.
func (s *shading) value(v *yaml.Node, node *structure.Node, sh shade) {
	if v.Anchor != "" || v.Kind == yaml.AliasNode {
		node = nil // it is the value of other fields, too
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

// inherited is the shade of what is in a value: what is guarded says nothing of its fields, which
// are judged by their own.
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

// fieldOf gives the schema of a field and the shade of its name.
func fieldOf(node *structure.Node, name string) (*structure.Node, shade) {
	switch {
	case node == nil && secretwords.In(name):
		return nil, hidden
	case node == nil:
		return nil, shown
	case node.Properties[name] != nil:
		return node.Properties[name], shown
	case node.SecretNames, secretwords.In(name):
		return nil, hidden
	}
	return node.Additional, shown
}

// untold is the shade of a value that no schema describes. Fields in it are judged by their names
// and values.
func untold(v *yaml.Node) shade {
	switch v.Kind {
	case yaml.ScalarNode:
		if secretwords.In(v.Value) || confidential.MatchString(v.Value) {
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

// fits tells whether a value is of the form that its schema asks for. Another one may be what
// belongs somewhere else.
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

// holdsSensitive tells whether a value of the schema may have a secret in it.
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
