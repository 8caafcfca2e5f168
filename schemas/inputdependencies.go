// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"fmt"
	"slices"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/token"
)

// inputDependencies are the parts of the object, the old object and the landscape that a rule
// reads. Nothing else changes its findings.
type inputDependencies struct {
	object, old, landscape *fieldSelection
}

func newInputDependencies() inputDependencies {
	return inputDependencies{&fieldSelection{}, &fieldSelection{}, &fieldSelection{}}
}

func (r inputDependencies) String() string {
	return fmt.Sprintf("object %s old %s landscape %s", r.object, r.old, r.landscape)
}

// inputByName returns the tree for a name at the beginning of a path, or nil for other names.
func (r inputDependencies) inputByName(name string) *fieldSelection {
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

// isInputName reports whether a name refers to an input of rules.
func isInputName(name string) bool { return newInputDependencies().inputByName(name) != nil }

// dependencyFinder finds what an expression reads, without evaluating it. It follows names and
// fields from their beginning. Any other use of a value counts as reading all of it.
type dependencyFinder struct {
	declarations *ruleDeclarations
	dependencies inputDependencies
	// resolved holds the meanings of the declarations seen so far.
	resolved map[string]inputPaths
}

// inputPaths lists the places in the input whose value an expression may be; it is empty for a new
// value.
type inputPaths []inputPath

// inputPath is a tree and the steps into it.
type inputPath struct {
	root *fieldSelection
	path []string
}

// anyItem is the step into an item of a list, or into a field with an unknown name.
const anyItem = "\x00"

func (m inputPaths) withStep(name string) inputPaths {
	out := make(inputPaths, len(m))
	for i, p := range m {
		out[i] = inputPath{p.root, append(slices.Clone(p.path), name)}
	}
	return out
}

// addWholeValue records that all of a value is read.
func (r *dependencyFinder) addWholeValue(m inputPaths) {
	for _, p := range m {
		p.root.selectionAt(p.path).isWhole = true
	}
}

// addShape records that the number of items, or the names of fields, are read.
func (r *dependencyFinder) addShape(m inputPaths) {
	for _, p := range m {
		p.root.selectionAt(p.path).shape = true
	}
}

// addExistence records that the existence of a value is read.
func (r *dependencyFinder) addExistence(m inputPaths) {
	for _, p := range m {
		p.root.selectionAt(p.path).exists = true
	}
}

func isBottom(expr ast.Expr) bool {
	_, ok := expr.(*ast.BottomLit)
	return ok
}

// lexicalScope holds the names that an expression sees besides declarations: loop variables, and
// let clauses, which are analysed on use.
type lexicalScope struct {
	outer *lexicalScope
	name  string
	value func() inputPaths
	expr  ast.Expr // set for a let clause
}

func (s *lexicalScope) with(name string, value func() inputPaths) *lexicalScope {
	return &lexicalScope{outer: s, name: name, value: value}
}

func (s *lexicalScope) find(name string) (func() inputPaths, bool) {
	for ; s != nil; s = s.outer {
		if s.name == name {
			return s.value, true
		}
	}
	return nil, false
}

// resolveName returns the meaning of a name.
func (r *dependencyFinder) resolveName(name string, s *lexicalScope) inputPaths {
	if value, ok := s.find(name); ok {
		return value()
	}
	if root := r.dependencies.inputByName(name); root != nil {
		return inputPaths{{root: root}}
	}
	if known, ok := r.resolved[name]; ok {
		return known
	}
	expressions, ok := r.declarations.expressions[name]
	if !ok {
		return nil
	}
	r.resolved[name] = nil // a declaration that refers to itself adds nothing
	var all inputPaths
	for _, expr := range expressions {
		all = append(all, r.resolve(expr, nil)...)
	}
	r.resolved[name] = all
	return all
}

// resolve returns the meaning of an expression, and records the values read to determine it.
func (r *dependencyFinder) resolve(expr ast.Expr, s *lexicalScope) inputPaths {
	switch x := expr.(type) {
	case nil, *ast.BasicLit, *ast.BottomLit:
	case *ast.Ident:
		return r.resolveName(x.Name, s)
	case *ast.ParenExpr:
		return r.resolve(x.X, s)
	case *ast.UnaryExpr:
		m := r.resolve(x.X, s)
		if x.Op == token.MUL { // marks a default
			return m
		}
		r.addWholeValue(m)
	case *ast.BinaryExpr:
		switch {
		case isOldNullCheck(x):
			r.dependencies.old.oldExists = true
		case (x.Op == token.EQL || x.Op == token.NEQ) && isBottom(x.Y):
			r.addExistence(r.resolve(x.X, s))
		case x.Op == token.OR:
			return append(r.resolve(x.X, s), r.resolve(x.Y, s)...)
		default:
			r.addWholeValue(r.resolve(x.X, s))
			r.addWholeValue(r.resolve(x.Y, s))
		}
	case *ast.SelectorExpr:
		m := r.resolve(x.X, s)
		if name, _, err := ast.LabelName(x.Sel); err == nil {
			return m.withStep(name)
		}
		r.addWholeValue(m)
	case *ast.IndexExpr:
		m := r.resolve(x.X, s)
		if name, ok := indexText(x.Index); ok {
			return m.withStep(name)
		}
		r.addWholeValue(r.resolve(x.Index, s))
		r.addShape(m)
		return m.withStep(anyItem)
	case *ast.SliceExpr:
		for _, part := range []ast.Expr{x.X, x.Low, x.High} {
			r.addWholeValue(r.resolve(part, s))
		}
	case *ast.CallExpr:
		r.addCall(x, s)
	case *ast.Interpolation:
		for _, part := range x.Elts {
			r.addWholeValue(r.resolve(part, s))
		}
	case *ast.ListLit:
		for _, item := range x.Elts {
			r.addWholeValue(r.resolve(item, s))
		}
	case *ast.Ellipsis:
		r.addWholeValue(r.resolve(x.Type, s))
	case *ast.StructLit:
		r.addStruct(x, s)
	case *ast.Comprehension:
		r.addComprehension(x, s)
	default:
		r.addAllNames(x, s)
	}
	return nil
}

// addCall reads the arguments of a function; len reads only their number of items.
func (r *dependencyFinder) addCall(x *ast.CallExpr, s *lexicalScope) {
	if function, ok := x.Fun.(*ast.Ident); ok && function.Name == "len" && len(x.Args) == 1 {
		r.addShape(r.resolve(x.Args[0], s))
		return
	}
	r.addWholeValue(r.resolve(x.Fun, s))
	for _, argument := range x.Args {
		r.addWholeValue(r.resolve(argument, s))
	}
}

// addStruct reads the values of a struct.
func (r *dependencyFinder) addStruct(x *ast.StructLit, s *lexicalScope) {
	var lets []*lexicalScope
	for _, element := range x.Elts {
		if let, ok := element.(*ast.LetClause); ok {
			s = s.with(let.Ident.Name, nil)
			s.expr = let.Expr
			lets = append(lets, s)
		}
	}
	for _, let := range lets { // each let clause sees all others
		let.value = r.resolveOnce(let.expr, s)
	}
	for _, element := range x.Elts {
		switch e := element.(type) {
		case *ast.LetClause, *ast.CommentGroup, *ast.Attribute:
		case *ast.Field:
			switch label := e.Label.(type) {
			case *ast.Ident, *ast.BasicLit: // it names a field and refers to nothing
			case ast.Expr:
				r.addWholeValue(r.resolve(label, s))
			default:
				r.addAllNames(e.Label, s)
			}
			r.addWholeValue(r.resolve(e.Value, s))
		case *ast.EmbedDecl:
			r.addWholeValue(r.resolve(e.Expr, s))
		case *ast.Comprehension:
			r.addComprehension(e, s)
		default:
			r.addAllNames(e, s)
		}
	}
}

// resolveOnce analyses an expression when its value is first used. A self-reference adds nothing.
func (r *dependencyFinder) resolveOnce(expr ast.Expr, s *lexicalScope) func() inputPaths {
	var known inputPaths
	asked := false
	return func() inputPaths {
		if !asked {
			asked = true
			known = r.resolve(expr, s)
		}
		return known
	}
}

func (r *dependencyFinder) addComprehension(x *ast.Comprehension, s *lexicalScope) {
	nothing := func() inputPaths { return nil }
	for _, clause := range x.Clauses {
		switch c := clause.(type) {
		case *ast.ForClause:
			source := r.resolve(c.Source, s)
			r.addShape(source)
			if c.Key != nil {
				s = s.with(c.Key.Name, nothing)
			}
			items := source.withStep(anyItem)
			s = s.with(c.Value.Name, func() inputPaths { return items })
		case *ast.IfClause:
			r.addWholeValue(r.resolve(c.Condition, s))
		case *ast.LetClause:
			s = s.with(c.Ident.Name, r.resolveOnce(c.Expr, s))
		default:
			r.addAllNames(c, s)
		}
	}
	r.addWholeValue(r.resolve(x.Value, s))
	if x.Fallback != nil {
		r.addAllNames(x.Fallback, s)
	}
}

// addAllNames reads all names in a node.
func (r *dependencyFinder) addAllNames(node ast.Node, s *lexicalScope) {
	ast.Walk(node, func(n ast.Node) bool {
		if name, ok := n.(*ast.Ident); ok {
			r.addWholeValue(r.resolveName(name.Name, s))
		}
		return true
	}, nil)
}

// isOldNullCheck reports whether an expression compares the old object with null, which needs no
// reading of it.
func isOldNullCheck(e *ast.BinaryExpr) bool {
	isOld := func(x ast.Expr) bool { ident, ok := x.(*ast.Ident); return ok && ident.Name == "old" }
	isNull := func(x ast.Expr) bool { basic, ok := x.(*ast.BasicLit); return ok && basic.Kind == token.NULL }
	return isOld(e.X) && isNull(e.Y) || isNull(e.X) && isOld(e.Y)
}

// indexText returns the text of an index such as ["x"].
func indexText(expr ast.Expr) (string, bool) {
	basic, ok := expr.(*ast.BasicLit)
	if !ok {
		return "", false
	}
	text, err := literal.Unquote(basic.Value)
	return text, err == nil
}

// ruleDeclarations holds the declarations in the rule files of a kind.
type ruleDeclarations struct {
	// rules are in the order of the files.
	rules       []string
	ruleHeads   map[string]Rule
	expressions map[string][]ast.Expr // by id for rules, otherwise by name
}

func newRuleDeclarations() *ruleDeclarations {
	return &ruleDeclarations{ruleHeads: map[string]Rule{}, expressions: map[string][]ast.Expr{}}
}

// readHeads reads the fields of rules that evaluation needs, without compiling: id, severity and
// scope.
func (d *ruleDeclarations) readHeads(file *ast.File) error {
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
			d.ruleHeads[head.ID] = head
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
	text, ok := indexText(field.Value)
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
func (d *ruleDeclarations) read(file *ast.File) error {
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
			case !isInputName(name):
				d.add(name, x.Value)
			}
		default:
			return fmt.Errorf("%s: a file of rules declares only fields", x.Pos())
		}
	}
	return nil
}

func (d *ruleDeclarations) readRules(value ast.Expr) error {
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

func (d *ruleDeclarations) add(name string, expr ast.Expr) {
	d.expressions[name] = append(d.expressions[name], expr)
}

// dependenciesOf returns what a rule reads, directly or through declarations, and their names.
func (d *ruleDeclarations) dependenciesOf(id string) (inputDependencies, map[string]bool) {
	r := &dependencyFinder{declarations: d, dependencies: newInputDependencies(), resolved: map[string]inputPaths{}}
	r.addWholeValue(r.resolveName(id, nil))
	names := map[string]bool{}
	for name := range r.resolved {
		names[name] = name != id
	}
	delete(names, id)
	r.dependencies.object.merge()
	r.dependencies.old.merge()
	r.dependencies.landscape.merge()
	return r.dependencies, names
}
