// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"fmt"
	"reflect"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/fieldpath"
	"github.com/pergola-dev/pergola/schemas/resultcache"
)

// SecretState is how much of the values of a Secret is known.
type SecretState string

const (
	// SecretPlain is a Secret that is not encrypted in the repository.
	SecretPlain SecretState = "plain"
	// SecretDecrypted is a SOPS-encrypted Secret whose values were decrypted.
	SecretDecrypted SecretState = "decrypted"
	// SecretEncrypted is a SOPS-encrypted Secret without a matching key: its keys are known, and
	// its values are empty.
	SecretEncrypted SecretState = "encrypted"
)

// Declaration is one object of a landscape, with the places where its fields are written. Its
// identity is always known; its content may be read on first use.
type Declaration struct {
	// File is relative to the landscape folder; Line and Column are where the object begins. For a
	// merged object it is the last layer that writes it. All are empty for an object without a file
	// (FromObjects).
	File         string
	Line, Column int
	// Layer is the layer of File, relative to the landscape folder; it is empty for the landscape
	// itself.
	Layer string
	// Secret is empty for other kinds.
	Secret SecretState

	kind            schema.GroupVersionKind
	namespace, name string
	// digest identifies the content of a file that was already read in its present form; else zero.
	digest  resultcache.Key
	content contentReader
}

// contentUse is why content is requested.
type contentUse int

const (
	useShared  contentUse = iota
	useCopy               // the caller owns the object
	usePreload            // returns nothing: loads the content in advance
)

// contentReader returns the content of a declaration.
type contentReader func(contentUse) declaredContent

// declaredContent is the content of a declaration.
type declaredContent struct {
	object *unstructured.Unstructured
	// sealed is a SOPS-encrypted Secret as in the repository, still encrypted.
	sealed map[string]any
	// recipients are the age keys that it is encrypted for.
	recipients []string
	// origins are the merged documents, base layers first.
	origins []origin
}

// inMemoryReader returns a reader of content in memory.
func (w declaredContent) inMemoryReader() contentReader {
	return func(p contentUse) declaredContent {
		if p != useCopy {
			return w
		}
		own := w
		own.object = w.object.DeepCopy()
		return own
	}
}

// setContent sets the content of a declaration, and derives its identity from it.
func (d *Declaration) setContent(w declaredContent) {
	d.kind, d.namespace, d.name = w.object.GroupVersionKind(), w.object.GetNamespace(), w.object.GetName()
	d.digest, d.content = resultcache.Key{}, w.inMemoryReader()
}

// Object returns the content, which must not be changed.
func (d *Declaration) Object() *unstructured.Unstructured { return d.content(useShared).object }

// Copy returns a copy of the content, which the caller owns.
func (d *Declaration) Copy() *unstructured.Unstructured { return d.content(useCopy).object }

// Load reads the content if necessary. It panics if Object would.
func (d *Declaration) Load() { d.content(usePreload) }

// EncryptedContent returns a SOPS-encrypted Secret as in the repository, to detect changes without
// a key. It is nil for all other objects.
func (d *Declaration) EncryptedContent() map[string]any {
	if d.Secret == "" {
		return nil // without reading the content
	}
	return d.content(useShared).sealed
}

// Recipients returns the age keys that a Secret is encrypted for, in their public form (age1…).
func (d *Declaration) Recipients() []string {
	if d.Secret == "" {
		return nil // without reading the content
	}
	return d.content(useShared).recipients
}

// GroupVersionKind returns the kind of the object.
func (d *Declaration) GroupVersionKind() schema.GroupVersionKind { return d.kind }

// Namespace returns the namespace of the object, or "" if it has none.
func (d *Declaration) Namespace() string { return d.namespace }

// Name returns the name of the object.
func (d *Declaration) Name() string { return d.name }

// PositionText returns where the object is declared, as FILE:LINE:COLUMN, or "" for an object
// without a file.
func (d *Declaration) PositionText() string {
	if d.File == "" {
		return ""
	}
	return fmt.Sprintf("%s:%d:%d", d.File, d.Line, d.Column)
}

// WrapError prefixes an error with the place, kind and name of the object.
func (d *Declaration) WrapError(err error) error {
	if at := d.PositionText(); at != "" {
		return fmt.Errorf("%s: %s: %w", at, identityOf(d), err)
	}
	return fmt.Errorf("%s: %w", identityOf(d), err)
}

// lazyInput returns the content for reading on demand, or nil if the declaration has no digest.
func (d *Declaration) lazyInput() *schemas.LazyObject {
	if d.digest == (resultcache.Key{}) {
		return nil
	}
	return &schemas.LazyObject{Kind: d.kind, Namespace: d.namespace, Name: d.name, Digest: d.digest, Read: d.Object}
}

// Input returns the declaration as input of validation.
func (d *Declaration) Input() schemas.Input {
	in := schemas.Input{Lazy: d.lazyInput(), Positions: d}
	if in.Lazy == nil {
		in.Object = d.Object()
	}
	return in
}

// HasSameContent reports whether two declarations have the same content, wherever it is written.
// Equal content of different origin, such as another file, may count as different. Content with a
// digest is not read.
func (d *Declaration) HasSameContent(other *Declaration) bool {
	one, two := d.Input(), other.Input()
	if d.Secret != other.Secret || one.Digest() != two.Digest() {
		return false
	}
	// Encrypted Secrets without a key look the same; only a digest of the file differs.
	return d.Secret != SecretEncrypted || d.digest != (resultcache.Key{}) && d.digest == other.digest || reflect.DeepEqual(d.EncryptedContent(), other.EncryptedContent())
}

// SetOld adds the declaration to an input as the old object of a change.
func (d *Declaration) SetOld(in *schemas.Input) {
	if in.OldLazy = d.lazyInput(); in.OldLazy == nil {
		in.Old = d.Object()
	}
}

// Position returns the place that sets a field, or the place of its closest existing parent. The
// path has the format of Violation.Field.
func (d *Declaration) Position(path string) schemas.Position {
	steps := fieldpath.Parse(path)
	origins := d.content(useShared).origins
	trees := make([]*positionTree, 0, len(origins))
	for i := range origins {
		if tree := origins[i].tree(); tree != nil {
			trees = append(trees, tree)
		}
	}
	best := schemas.Position{File: d.File, Line: d.Line, Column: d.Column}
	for {
		trees = visiblePositions(trees)
		if len(trees) == 0 {
			return best
		}
		top := trees[len(trees)-1]
		best = top.position
		if len(steps) == 0 {
			return best
		}
		var children []*positionTree
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

// KeyPosition returns the place of the name of a field if the file has it, else its Position.
func (d *Declaration) KeyPosition(path string) schemas.Position {
	steps := fieldpath.Parse(path)
	if len(steps) > 0 {
		origins := d.content(useShared).origins
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

// visiblePositions drops layers that a later one hides: a list or a plain value replaces all layers
// below it.
func visiblePositions(trees []*positionTree) []*positionTree {
	for i := len(trees) - 1; i > 0; i-- {
		if !trees[i].isMap {
			return trees[i:]
		}
	}
	return trees
}

// origin is one document that contributes to an object.
type origin struct{ tree func() *positionTree }

// positionTree is where a value and its parts are written.
type positionTree struct {
	position schemas.Position
	key      schemas.Position
	isMap    bool
	fields   map[string]*positionTree
	items    []*positionTree
	// literal is the text of a block scalar, which may hold YAML, such as a file in a ConfigMap.
	literal string
}

// child returns the place one step down, or nil if nothing is written there.
func (p *positionTree) child(step any) *positionTree {
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
		return p.literalPositions().child(step)
	}
	return p.fields[fieldpath.StepName(step)]
}

// literalPositions returns the places inside a block scalar that holds YAML, or nil for other text.
// Columns assume an indentation by two, which is usual.
func (p *positionTree) literalPositions() *positionTree {
	var document yaml.Node
	if yaml.Unmarshal([]byte(p.literal), &document) != nil || len(document.Content) == 0 {
		return nil
	}
	tree := newPositionTree(p.position.File, document.Content[0], 0)
	tree.shift(p.position.Line, p.key.Column+1)
	return tree
}

func (p *positionTree) shift(lines, columns int) {
	for _, position := range []*schemas.Position{&p.position, &p.key} {
		if position.Line > 0 {
			position.Line, position.Column = position.Line+lines, position.Column+columns
		}
	}
	p.literal = "" // a nested block scalar is plain text
	for _, item := range p.items {
		item.shift(lines, columns)
	}
	for _, field := range p.fields {
		field.shift(lines, columns)
	}
}

// HideLine moves a finding from a line with a credential to the start of the object, because
// findings show their line. An object in one line gets no line.
func (d *Declaration) HideLine(v *schemas.Violation) {
	if v.Line == d.Line {
		v.Line, v.Column = 0, 0
		return
	}
	v.Line, v.Column = d.Line, d.Column
}
