package landscapes

import (
	"fmt"
	"reflect"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/fieldpath"
	"github.com/pergola-dev/pergola/schemas/kept"
)

// SecretState says how the values of a Secret are known.
type SecretState string

const (
	// SecretPlain is a Secret that is not encrypted in the repository.
	SecretPlain SecretState = "plain"
	// SecretDecrypted is a SOPS-encrypted Secret whose values were decrypted.
	SecretDecrypted SecretState = "decrypted"
	// SecretEncrypted is a SOPS-encrypted Secret without a fitting key: its keys are known, its
	// values are empty text.
	SecretEncrypted SecretState = "encrypted"
)

// Declaration is one object of a landscape, with the places where its fields are written. What it
// is comes with the declaration; its content may be read only when somebody asks for it.
type Declaration struct {
	// File is relative to the landscape folder; Line and Column are where the object begins. For an
	// object that is merged from layers, this is the last layer that writes it. All are empty for
	// an object that comes from no file (FromObjects).
	File         string
	Line, Column int
	// Layer is that layer, relative to the landscape folder; empty for the landscape itself.
	Layer string
	// Secret is empty for other kinds.
	Secret SecretState

	kind            schema.GroupVersionKind
	namespace, name string
	// digest is that of the content, if the content comes from a file that was looked at before as
	// it is now.
	digest  kept.Key
	content reader
}

// purpose is what content is wanted for.
type purpose int

const (
	toRead   purpose = iota
	toChange         // the object belongs to whoever asks
	toHave           // nothing is given: it is to be there when somebody asks
)

// reader gives the content of a declaration.
type reader func(purpose) written

// written is the content of a declaration.
type written struct {
	object *unstructured.Unstructured
	// sealed is a SOPS-encrypted Secret as it stands in the repository.
	sealed map[string]any
	// recipients are the age keys that it is encrypted for.
	recipients []string
	// origins are the documents that were merged, bases first.
	origins []origin
}

// reader gives content that is in memory.
func (w written) reader() reader {
	return func(p purpose) written {
		if p != toChange {
			return w
		}
		own := w
		own.object = w.object.DeepCopy()
		return own
	}
}

// setContent gives a declaration its content, and what it is by that.
func (d *Declaration) setContent(w written) {
	d.kind, d.namespace, d.name = w.object.GroupVersionKind(), w.object.GetNamespace(), w.object.GetName()
	d.digest, d.content = kept.Key{}, w.reader()
}

// Object is the content. Nobody may change it.
func (d *Declaration) Object() *unstructured.Unstructured { return d.content(toRead).object }

// Copy is the content, which belongs to the caller.
func (d *Declaration) Copy() *unstructured.Unstructured { return d.content(toChange).object }

// Load reads the file that has the content, unless that was done. It panics where Object would.
func (d *Declaration) Load() { d.content(toHave) }

// Sealed is a SOPS-encrypted Secret as it stands in the repository, with its encrypted values: for
// telling whether they changed where there is no key. nil for all other objects.
func (d *Declaration) Sealed() map[string]any {
	if d.Secret == "" {
		return nil // without reading it
	}
	return d.content(toRead).sealed
}

// Recipients are the age keys that an encrypted Secret is encrypted for, in their public form
// (age1…).
func (d *Declaration) Recipients() []string {
	if d.Secret == "" {
		return nil // without reading it
	}
	return d.content(toRead).recipients
}

// GroupVersionKind is that of the object.
func (d *Declaration) GroupVersionKind() schema.GroupVersionKind { return d.kind }

// Namespace is that of the object, "" where it has none.
func (d *Declaration) Namespace() string { return d.namespace }

// Name is that of the object.
func (d *Declaration) Name() string { return d.name }

// Place is where the object is declared, as FILE:LINE:COLUMN; empty for an object that comes from
// no file.
func (d *Declaration) Place() string {
	if d.File == "" {
		return ""
	}
	return fmt.Sprintf("%s:%d:%d", d.File, d.Line, d.Column)
}

// Wrap puts the place of the object, its kind and its name before an error.
func (d *Declaration) Wrap(err error) error {
	if at := d.Place(); at != "" {
		return fmt.Errorf("%s: %s: %w", at, identityOf(d), err)
	}
	return fmt.Errorf("%s: %w", identityOf(d), err)
}

// later gives the content to whoever asks for it; nil where it is there already.
func (d *Declaration) later() *schemas.Later {
	if d.digest == (kept.Key{}) {
		return nil
	}
	return &schemas.Later{Kind: d.kind, Namespace: d.namespace, Name: d.name, Digest: d.digest, Read: d.Object}
}

// Input gives the declaration to validation.
func (d *Declaration) Input() schemas.Input {
	in := schemas.Input{Later: d.later(), Positions: d}
	if in.Later == nil {
		in.Object = d.Object()
	}
	return in
}

// Same tells whether two declarations are of the same content, wherever it is written. Content that
// both come to in different ways, such as by another file, may count as different. Nothing is read
// of what is known by its digest.
func (d *Declaration) Same(other *Declaration) bool {
	one, two := d.Input(), other.Input()
	if d.Secret != other.Secret || one.Digest() != two.Digest() {
		return false
	}
	// Without their values, encrypted Secrets look the same. A digest of the file knows them apart.
	return d.Secret != SecretEncrypted || d.digest != (kept.Key{}) && d.digest == other.digest || reflect.DeepEqual(d.Sealed(), other.Sealed())
}

// Before makes the declaration the one before a change.
func (d *Declaration) Before(in *schemas.Input) {
	if in.OldLater = d.later(); in.OldLater == nil {
		in.Old = d.Object()
	}
}

// Position gives the place that set the field: of the value, or for a field that does not exist, of
// the closest parent that is written down. The path is as in Violation.Field.
func (d *Declaration) Position(path string) schemas.Position {
	steps := fieldpath.Parse(path)
	origins := d.content(toRead).origins
	trees := make([]*place, 0, len(origins))
	for i := range origins {
		if tree := origins[i].tree(); tree != nil {
			trees = append(trees, tree)
		}
	}
	best := schemas.Position{File: d.File, Line: d.Line, Column: d.Column}
	for {
		trees = visible(trees)
		if len(trees) == 0 {
			return best
		}
		top := trees[len(trees)-1]
		best = top.position
		if len(steps) == 0 {
			return best
		}
		var children []*place
		for _, tree := range trees {
			if child := tree.child(steps[0]); child != nil {
				children = append(children, child)
			}
		}
		if len(children) == 0 {
			return best
		}
		trees, steps = children, steps[1:]
	}
}

// KeyPosition gives the place of the name of a field instead of its value, where the file shows it.
func (d *Declaration) KeyPosition(path string) schemas.Position {
	steps := fieldpath.Parse(path)
	if len(steps) > 0 {
		origins := d.content(toRead).origins
		for i := len(origins) - 1; i >= 0; i-- {
			tree := origins[i].tree()
			for _, step := range steps {
				if tree = tree.child(step); tree == nil {
					break
				}
			}
			if tree != nil && tree.key.Line > 0 {
				return tree.key
			}
		}
	}
	return d.Position(path)
}

// visible leaves out what a later layer hides: a list or a plain value replaces what the layers
// below it say.
func visible(trees []*place) []*place {
	for i := len(trees) - 1; i > 0; i-- {
		if !trees[i].isMap {
			return trees[i:]
		}
	}
	return trees
}

// origin is one document that an object was read from.
type origin struct{ tree func() *place }

// place is where a value and its parts are written.
type place struct {
	position schemas.Position
	key      schemas.Position
	isMap    bool
	fields   map[string]*place
	items    []*place
	// literal is the text of a block scalar, whose lines are lines of the file: it may hold an
	// object, as that of a ConfigMap does.
	literal string
}

// child follows one step; nil if nothing is written there.
func (p *place) child(step any) *place {
	if p == nil {
		return nil
	}
	if index, ok := step.(int); ok && p.items != nil {
		if index < len(p.items) {
			return p.items[index]
		}
		return nil
	}
	if p.literal != "" {
		return p.inLiteral().child(step)
	}
	return p.fields[fieldpath.Name(step)]
}

// inLiteral gives the places inside of a block scalar that holds YAML; nil for any other text. The
// columns are those of a text that is indented by two, as most are.
func (p *place) inLiteral() *place {
	var document yaml.Node
	if yaml.Unmarshal([]byte(p.literal), &document) != nil || len(document.Content) == 0 {
		return nil
	}
	tree := places(p.position.File, document.Content[0], 0)
	tree.shift(p.position.Line, p.key.Column+1)
	return tree
}

func (p *place) shift(lines, columns int) {
	for _, position := range []*schemas.Position{&p.position, &p.key} {
		if position.Line > 0 {
			position.Line, position.Column = position.Line+lines, position.Column+columns
		}
	}
	p.literal = "" // one inside of the other is looked at as a text
	for _, item := range p.items {
		item.shift(lines, columns)
	}
	for _, field := range p.fields {
		field.shift(lines, columns)
	}
}

// Hide moves a finding from a line that holds a credential to the beginning of the object: lines of
// findings are shown. An object in one line gets no line.
func (d *Declaration) Hide(v *schemas.Violation) {
	if v.Line == d.Line {
		v.Line, v.Column = 0, 0
		return
	}
	v.Line, v.Column = d.Line, d.Column
}
