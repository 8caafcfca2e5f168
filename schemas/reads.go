package schemas

import (
	"fmt"
	"slices"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/token"
)

// reads are the parts of the object, the old object and the landscape that a rule reads. Nothing
// else changes its findings.
type reads struct {
	object, old, landscape *part
}

func newReads() reads { return reads{&part{}, &part{}, &part{}} }

func (r reads) String() string {
	return fmt.Sprintf("object %s old %s landscape %s", r.object, r.old, r.landscape)
}

// root returns the tree for a name at the beginning of a path, nil for other names.
func (r reads) root(name string) *part {
	switch name {
	case "object":
		return r.object
	case "old":
		return r.old
	case "landscape":
		return r.landscape
	}
	return nil
}

// isRoot reports whether a name refers to an input of rules.
func isRoot(name string) bool { return newReads().root(name) != nil }

// reader finds what an expression reads, without evaluating it. It follows names and fields from
// their beginning. Any other use of a value counts as reading all of it.
type reader struct {
	declared *declarations
	reads    reads
	// names holds the meanings of the declarations seen so far.
	names map[string]meaning
}

// meaning lists the places in the input whose value an expression may be; none for a new value.
type meaning []place

// place is a tree and the steps into it.
type place struct {
	root *part
	path []string
}

// anyItem is the step into an item of a list, or into a field with an unknown name.
const anyItem = "\x00"

func (m meaning) step(name string) meaning {
	out := make(meaning, len(m))
	for i, p := range m {
		out[i] = place{p.root, append(slices.Clone(p.path), name)}
	}
	return out
}

// read records that all of a value is read.
func (r *reader) read(m meaning) {
	for _, p := range m {
		p.root.at(p.path).whole = true
	}
}

// shape records that the number of items, or the names of fields, are read.
func (r *reader) shape(m meaning) {
	for _, p := range m {
		p.root.at(p.path).shape = true
	}
}

// there records that the existence of a value is read.
func (r *reader) there(m meaning) {
	for _, p := range m {
		p.root.at(p.path).there = true
	}
}

func isBottom(expr ast.Expr) bool {
	_, ok := expr.(*ast.BottomLit)
	return ok
}

// scope holds the names that an expression sees besides declarations: loop variables, and let
// clauses, which are analysed on use.
type scope struct {
	outer *scope
	name  string
	value func() meaning
	expr  ast.Expr // set for a let clause
}

func (s *scope) with(name string, value func() meaning) *scope {
	return &scope{outer: s, name: name, value: value}
}

func (s *scope) find(name string) (func() meaning, bool) {
	for ; s != nil; s = s.outer {
		if s.name == name {
			return s.value, true
		}
	}
	return nil, false
}

// named returns the meaning of a name.
func (r *reader) named(name string, s *scope) meaning {
	if value, ok := s.find(name); ok {
		return value()
	}
	if root := r.reads.root(name); root != nil {
		return meaning{{root: root}}
	}
	if known, ok := r.names[name]; ok {
		return known
	}
	expressions, ok := r.declared.expressions[name]
	if !ok {
		return nil
	}
	r.names[name] = nil // a declaration that refers to itself adds nothing
	var all meaning
	for _, expr := range expressions {
		all = append(all, r.meaning(expr, nil)...)
	}
	r.names[name] = all
	return all
}

// meaning returns the meaning of an expression, and records the values read to determine it.
func (r *reader) meaning(expr ast.Expr, s *scope) meaning {
	switch x := expr.(type) {
	case nil, *ast.BasicLit, *ast.BottomLit:
	case *ast.Ident:
		return r.named(x.Name, s)
	case *ast.ParenExpr:
		return r.meaning(x.X, s)
	case *ast.UnaryExpr:
		m := r.meaning(x.X, s)
		if x.Op == token.MUL { // marks a default
			return m
		}
		r.read(m)
	case *ast.BinaryExpr:
		switch {
		case asksForChange(x):
			r.reads.old.asked = true
		case (x.Op == token.EQL || x.Op == token.NEQ) && isBottom(x.Y):
			r.there(r.meaning(x.X, s))
		case x.Op == token.OR:
			return append(r.meaning(x.X, s), r.meaning(x.Y, s)...)
		default:
			r.read(r.meaning(x.X, s))
			r.read(r.meaning(x.Y, s))
		}
	case *ast.SelectorExpr:
		m := r.meaning(x.X, s)
		if name, _, err := ast.LabelName(x.Sel); err == nil {
			return m.step(name)
		}
		r.read(m)
	case *ast.IndexExpr:
		m := r.meaning(x.X, s)
		if name, ok := textOf(x.Index); ok {
			return m.step(name)
		}
		r.read(r.meaning(x.Index, s))
		r.shape(m)
		return m.step(anyItem)
	case *ast.SliceExpr:
		for _, part := range []ast.Expr{x.X, x.Low, x.High} {
			r.read(r.meaning(part, s))
		}
	case *ast.CallExpr:
		r.call(x, s)
	case *ast.Interpolation:
		for _, part := range x.Elts {
			r.read(r.meaning(part, s))
		}
	case *ast.ListLit:
		for _, item := range x.Elts {
			r.read(r.meaning(item, s))
		}
	case *ast.Ellipsis:
		r.read(r.meaning(x.Type, s))
	case *ast.StructLit:
		r.fields(x, s)
	case *ast.Comprehension:
		r.comprehension(x, s)
	default:
		r.everything(x, s)
	}
	return nil
}

// call reads the arguments of a function; len reads only their number of items.
func (r *reader) call(x *ast.CallExpr, s *scope) {
	if function, ok := x.Fun.(*ast.Ident); ok && function.Name == "len" && len(x.Args) == 1 {
		r.shape(r.meaning(x.Args[0], s))
		return
	}
	r.read(r.meaning(x.Fun, s))
	for _, argument := range x.Args {
		r.read(r.meaning(argument, s))
	}
}

// fields reads the values of a struct.
func (r *reader) fields(x *ast.StructLit, s *scope) {
	var lets []*scope
	for _, element := range x.Elts {
		if let, ok := element.(*ast.LetClause); ok {
			s = s.with(let.Ident.Name, nil)
			s.expr = let.Expr
			lets = append(lets, s)
		}
	}
	for _, let := range lets { // each let clause sees all others
		let.value = r.once(let.expr, s)
	}
	for _, element := range x.Elts {
		switch e := element.(type) {
		case *ast.LetClause, *ast.CommentGroup, *ast.Attribute:
		case *ast.Field:
			switch label := e.Label.(type) {
			case *ast.Ident, *ast.BasicLit: // it names a field and refers to nothing
			case ast.Expr:
				r.read(r.meaning(label, s))
			default:
				r.everything(e.Label, s)
			}
			r.read(r.meaning(e.Value, s))
		case *ast.EmbedDecl:
			r.read(r.meaning(e.Expr, s))
		case *ast.Comprehension:
			r.comprehension(e, s)
		default:
			r.everything(e, s)
		}
	}
}

// once analyses an expression when its value is first used. A self-reference adds nothing.
func (r *reader) once(expr ast.Expr, s *scope) func() meaning {
	var known meaning
	asked := false
	return func() meaning {
		if !asked {
			asked = true
			known = r.meaning(expr, s)
		}
		return known
	}
}

func (r *reader) comprehension(x *ast.Comprehension, s *scope) {
	nothing := func() meaning { return nil }
	for _, clause := range x.Clauses {
		switch c := clause.(type) {
		case *ast.ForClause:
			source := r.meaning(c.Source, s)
			r.shape(source)
			if c.Key != nil {
				s = s.with(c.Key.Name, nothing)
			}
			items := source.step(anyItem)
			s = s.with(c.Value.Name, func() meaning { return items })
		case *ast.IfClause:
			r.read(r.meaning(c.Condition, s))
		case *ast.LetClause:
			s = s.with(c.Ident.Name, r.once(c.Expr, s))
		default:
			r.everything(c, s)
		}
	}
	r.read(r.meaning(x.Value, s))
	if x.Fallback != nil {
		r.everything(x.Fallback, s)
	}
}

// everything reads all names in a node.
func (r *reader) everything(node ast.Node, s *scope) {
	ast.Walk(node, func(n ast.Node) bool {
		if name, ok := n.(*ast.Ident); ok {
			r.read(r.named(name.Name, s))
		}
		return true
	}, nil)
}

// asksForChange reports whether an expression compares the old object with null, which needs no
// reading of it.
func asksForChange(e *ast.BinaryExpr) bool {
	isOld := func(x ast.Expr) bool { ident, ok := x.(*ast.Ident); return ok && ident.Name == "old" }
	isNull := func(x ast.Expr) bool { basic, ok := x.(*ast.BasicLit); return ok && basic.Kind == token.NULL }
	return isOld(e.X) && isNull(e.Y) || isNull(e.X) && isOld(e.Y)
}

// textOf returns the text of an index such as ["x"].
func textOf(expr ast.Expr) (string, bool) {
	basic, ok := expr.(*ast.BasicLit)
	if !ok {
		return "", false
	}
	text, err := literal.Unquote(basic.Value)
	return text, err == nil
}

// declarations holds the declarations in the rule files of a kind.
type declarations struct {
	// rules are in the order of the files.
	rules       []string
	heads       map[string]Rule
	expressions map[string][]ast.Expr // by id for rules, otherwise by name
}

func newDeclarations() *declarations {
	return &declarations{heads: map[string]Rule{}, expressions: map[string][]ast.Expr{}}
}

// readHeads reads the fields of rules that evaluation needs, without compiling: id, severity and
// scope.
func (d *declarations) readHeads(file *ast.File) error {
	for _, declaration := range file.Decls {
		field, ok := declaration.(*ast.Field)
		if !ok || fieldName(field) != "rules" {
			continue
		}
		body, ok := field.Value.(*ast.StructLit)
		if !ok {
			continue // read reports it
		}
		for _, element := range body.Elts {
			rule, ok := element.(*ast.Field)
			if !ok || fieldName(rule) == "" {
				continue
			}
			head := Rule{ID: fieldName(rule), Severity: SeverityError, Scope: scopeObject}
			parts, ok := rule.Value.(*ast.StructLit)
			if !ok {
				continue
			}
			for _, part := range parts.Elts {
				if err := readHead(&head, part); err != nil {
					return err
				}
			}
			d.heads[head.ID] = head
		}
	}
	return nil
}

func readHead(head *Rule, part ast.Decl) error {
	field, ok := part.(*ast.Field)
	if !ok {
		return nil
	}
	name := fieldName(field)
	if name != "severity" && name != "scope" {
		return nil
	}
	text, ok := textOf(field.Value)
	switch {
	case !ok:
		return fmt.Errorf("%s: rule %s: %s must be written as text", field.Value.Pos(), head.ID, name)
	case name == "severity":
		head.Severity = Severity(text)
	default:
		head.Scope = text
	}
	return nil
}

// read adds the declarations of a file.
func (d *declarations) read(file *ast.File) error {
	for _, declaration := range file.Decls {
		switch x := declaration.(type) {
		case *ast.Package, *ast.ImportDecl, *ast.CommentGroup, *ast.Attribute:
		case *ast.LetClause:
			d.add(x.Ident.Name, x.Expr)
		case *ast.Field:
			name := fieldName(x)
			switch {
			case name == "rules":
				if err := d.readRules(x.Value); err != nil {
					return err
				}
			case name == "":
				return fmt.Errorf("%s: a file of rules declares fields with fixed names", x.Pos())
			case !isRoot(name):
				d.add(name, x.Value)
			}
		default:
			return fmt.Errorf("%s: a file of rules declares fields only", x.Pos())
		}
	}
	return nil
}

func (d *declarations) readRules(value ast.Expr) error {
	body, ok := value.(*ast.StructLit)
	if !ok {
		return fmt.Errorf("%s: rules must be written as a struct", value.Pos())
	}
	for _, element := range body.Elts {
		rule, ok := element.(*ast.Field)
		if !ok {
			return fmt.Errorf("%s: a rule must be written as a field", element.Pos())
		}
		id := fieldName(rule)
		if id == "" {
			return fmt.Errorf("%s: a rule must have a fixed id", rule.Pos())
		}
		if !slices.Contains(d.rules, id) {
			d.rules = append(d.rules, id)
		}
		d.add(id, rule.Value)
	}
	return nil
}

func (d *declarations) add(name string, expr ast.Expr) {
	d.expressions[name] = append(d.expressions[name], expr)
}

// reach returns what a rule reads, directly or through declarations, and their names.
func (d *declarations) reach(id string) (reads, map[string]bool) {
	r := &reader{declared: d, reads: newReads(), names: map[string]meaning{}}
	r.read(r.named(id, nil))
	names := map[string]bool{}
	for name := range r.names {
		names[name] = name != id
	}
	delete(names, id)
	r.reads.object.merge()
	r.reads.old.merge()
	r.reads.landscape.merge()
	return r.reads, names
}
