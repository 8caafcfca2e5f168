package landscapes

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/build"
	"cuelang.org/go/cue/cuecontext"
	"cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/token"

	"github.com/pergola-dev/pergola/schemas"
)

// cueFile is a CUE file before it is parsed; name is its path in the repository.
type cueFile struct {
	name string
	data []byte
}

// readCUE evaluates the CUE files of one folder. Files of the same package belong together; a file without a package
// stands alone. Packages of other folders are not seen.
func (l *layer) readCUE(folder string, names []string) []Declaration {
	packages := map[string][]cueFile{}
	for _, name := range names {
		data, ok := l.read(name)
		if !ok {
			continue
		}
		group := name
		if file, err := parser.ParseFile(name, data, parser.PackageClauseOnly); err == nil && file.PackageName() != "" {
			group = path.Join(folder, "package "+file.PackageName())
		}
		packages[group] = append(packages[group], cueFile{name: name, data: data})
	}
	var found []Declaration
	for _, group := range sortedKeys(packages) {
		found = append(found, l.evaluateCUE(packages[group])...)
	}
	return found
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, cmp.Compare[string])
	return keys
}

// evaluateCUE gives the objects of one package.
func (l *loader) evaluateCUE(files []cueFile) (found []Declaration) {
	// The evaluator is known to panic on some broken input; that must not end a run over many files.
	defer func() {
		if recover() != nil {
			l.report(files[0].name, 0, 0, "landscape/cue", schemas.TypeInvalid, "the CUE evaluator failed on this package; simplify it")
			found = nil
		}
	}()
	instance := build.NewContext().NewInstance("landscape", nil)
	for _, file := range files {
		syntax, err := parser.ParseFile(file.name, file.data, parser.ParseComments)
		if err != nil {
			l.reportCUE(file.name, err)
			return nil
		}
		if !l.checkImports(file.name, syntax) {
			return nil
		}
		if err := instance.AddSyntax(syntax); err != nil {
			l.reportCUE(file.name, err)
			return nil
		}
	}
	if err := instance.Complete(); err != nil {
		l.reportCUE(files[0].name, err)
		return nil
	}
	value := cuecontext.New().BuildInstance(instance)
	if err := value.Err(); err != nil {
		l.reportCUE(files[0].name, err)
		return nil
	}
	c := &cueReader{loader: l, file: files[0].name}
	c.collect(value, true)
	return c.found
}

// checkImports allows packages of the CUE standard library that compute, and nothing that reaches out.
func (l *loader) checkImports(name string, file *ast.File) bool {
	allowed := true
	for spec := range file.ImportSpecs() {
		importPath, err := strconv.Unquote(spec.Path.Value)
		first, _, _ := strings.Cut(importPath, "/")
		if err != nil || strings.Contains(first, ".") || first == "tool" {
			place := spec.Pos().Position()
			l.report(name, place.Line, place.Column, "landscape/cue", schemas.TypeForbidden, "%s must not be imported: declarations use the CUE standard library only", spec.Path.Value)
			allowed = false
		}
	}
	for _, declaration := range file.Decls {
		attribute, ok := declaration.(*ast.Attribute)
		if !ok {
			continue
		}
		if key, _ := attribute.Split(); key == "extern" {
			place := attribute.Pos().Position()
			l.report(name, place.Line, place.Column, "landscape/cue", schemas.TypeForbidden, "@extern is not allowed: declarations do not read other files")
			allowed = false
		}
	}
	return allowed
}

// reportCUE reports every error of an evaluation at its place.
func (l *loader) reportCUE(file string, err error) {
	for _, e := range errors.Errors(err) {
		name, line, column := file, 0, 0
		positions := append([]token.Pos{e.Position()}, e.InputPositions()...)
		for _, pos := range positions {
			if pos.IsValid() && pos.Filename() != "" {
				name, line, column = pos.Filename(), pos.Line(), pos.Column()
				break
			}
		}
		where := ""
		if steps := e.Path(); len(steps) > 0 {
			where = strings.Join(steps, ".") + ": "
		}
		l.report(name, line, column, "landscape/cue", schemas.TypeInvalid, "%s%s", where, cueSentence(e))
	}
}

// cueSentence says what is wrong without any value: CUE's own messages quote them, and a file may hold a Secret.
func cueSentence(e errors.Error) string {
	format, args := e.Msg()
	text := fmt.Sprintf(format, args...)
	for _, known := range []struct{ mark, sentence string }{
		{"conflicting values", "two places give it different values, or one gives a type that the other does not allow"},
		{"mismatched types", "it is of another type than is asked for"},
		{"out of bound", "the value is outside of what a constraint allows"},
		{"invalid value", "the value is outside of what a constraint allows"},
		{"incomplete value", "it has no concrete value"},
		{"field not allowed", "the field is not allowed by a definition it is checked against"},
		{"structural cycle", "it contains itself without end"},
		{"cycle", "it refers to itself"},
		{"empty disjunction", "none of the alternatives fits"},
		{"division by zero", "it divides by zero"},
	} {
		if strings.Contains(text, known.mark) {
			return known.sentence
		}
	}
	// These speak about names and syntax only.
	for _, harmless := range []string{"reference ", "undefined field", "expected ", "import", "package ", "missing ", "unexpected ", "illegal "} {
		if strings.HasPrefix(text, harmless) {
			return text
		}
	}
	return "CUE cannot evaluate this"
}

// cueReader collects the objects of an evaluated package.
type cueReader struct {
	*loader
	file  string
	found []Declaration
}

// collect takes an object, or looks for objects in the fields of a struct and the items of a list, one level below a
// top-level field. Other top-level fields are helpers of the author.
func (c *cueReader) collect(value cue.Value, top bool) {
	if isObject(value) {
		c.take(value)
		return
	}
	switch value.IncompleteKind() {
	case cue.StructKind:
		fields, err := value.Fields()
		if err != nil {
			c.reportCUE(c.file, err)
			return
		}
		for fields.Next() {
			if top {
				c.collect(fields.Value(), false)
			} else if isObject(fields.Value()) {
				c.take(fields.Value())
			}
		}
	case cue.ListKind:
		items, err := value.List()
		if err != nil {
			c.reportCUE(c.file, err)
			return
		}
		for items.Next() {
			if isObject(items.Value()) {
				c.take(items.Value())
			}
		}
	}
}

func isObject(value cue.Value) bool {
	return value.LookupPath(cue.ParsePath("apiVersion")).Exists() && value.LookupPath(cue.ParsePath("kind")).Exists()
}

func (c *cueReader) take(value cue.Value) {
	if err := value.Validate(cue.Concrete(true), cue.Final()); err != nil {
		c.reportCUE(c.file, err)
		return
	}
	plain, err := cueContent(value)
	if err != nil {
		c.reportCUE(c.file, err)
		return
	}
	object, ok := plain.(map[string]any)
	if !ok {
		return
	}
	tree := c.places(value, schemas.Position{File: c.relative(c.file), Line: 1, Column: 1})
	name := c.file
	line, column := tree.position.Line, tree.position.Column
	if pos := value.Pos(); pos.IsValid() && pos.Filename() != "" {
		name = pos.Filename()
	}
	content := content{object: object, line: line, column: column, tree: func() *place { return tree }}
	if _, encrypted := object[sopsField]; encrypted {
		c.report(name, line, column, "landscape/sops", schemas.TypeForbidden, "encrypted objects must be YAML files")
		return
	}
	c.found = append(c.found, c.declare(name, content)...)
}

// places gives where the parts of a value are written; a part without a place of its own has that of its parent.
func (c *cueReader) places(value cue.Value, parent schemas.Position) *place {
	tree := &place{position: parent}
	if pos := value.Pos(); pos.IsValid() && pos.Filename() != "" {
		tree.position = schemas.Position{File: c.relative(pos.Filename()), Line: pos.Line(), Column: pos.Column()}
	}
	switch value.Kind() {
	case cue.StructKind:
		tree.isMap, tree.fields = true, map[string]*place{}
		if fields, err := value.Fields(); err == nil {
			for fields.Next() {
				tree.fields[fields.Selector().Unquoted()] = c.places(fields.Value(), tree.position)
			}
		}
	case cue.ListKind:
		if items, err := value.List(); err == nil {
			for items.Next() {
				tree.items = append(tree.items, c.places(items.Value(), tree.position))
			}
		}
	}
	return tree
}

// cueContent gives the content of an object with the types of unstructured content.
func cueContent(value cue.Value) (any, error) {
	if chosen, ok := value.Default(); ok {
		value = chosen
	}
	switch value.Kind() {
	case cue.StructKind:
		fields, err := value.Fields()
		if err != nil {
			return nil, err
		}
		result := map[string]any{}
		for fields.Next() {
			if result[fields.Selector().Unquoted()], err = cueContent(fields.Value()); err != nil {
				return nil, err
			}
		}
		return result, nil
	case cue.ListKind:
		items, err := value.List()
		if err != nil {
			return nil, err
		}
		result := []any{}
		for items.Next() {
			item, err := cueContent(items.Value())
			if err != nil {
				return nil, err
			}
			result = append(result, item)
		}
		return result, nil
	case cue.IntKind:
		return value.Int64()
	case cue.FloatKind, cue.NumberKind:
		return value.Float64()
	case cue.BoolKind:
		return value.Bool()
	case cue.NullKind:
		return nil, nil
	case cue.BytesKind:
		data, err := value.Bytes()
		return string(data), err
	}
	return value.String()
}
