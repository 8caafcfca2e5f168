package schemas

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/token"
)

// reads are the parts of the object, of the one before and of the landscape that an expression looks at: the longest paths
// of fixed field names that it is written with. What it looks at below is in the part; nothing outside of the parts can
// change its value.
type reads struct {
	object, old, landscape parts
}

// parts are paths of field names, sorted, none below another one. An empty path is the whole.
type parts [][]string

func (p parts) with(path []string) parts {
	for _, known := range p {
		if isPrefix(known, path) {
			return p
		}
	}
	out := slices.DeleteFunc(slices.Clone(p), func(known []string) bool { return isPrefix(path, known) })
	out = append(out, slices.Clone(path))
	slices.SortFunc(out, slices.Compare)
	return out
}

func isPrefix(prefix, path []string) bool {
	return len(prefix) <= len(path) && slices.Equal(prefix, path[:len(prefix)])
}

func (p parts) String() string {
	paths := make([]string, len(p))
	for i, path := range p {
		paths[i] = fmt.Sprintf("%q", path)
	}
	return strings.Join(paths, " ")
}

// of gives a copy of an object with nothing but the parts. Where a path meets something that has no fields, that is kept.
func (p parts) of(object map[string]any) map[string]any {
	out := map[string]any{}
	for _, path := range p {
		from, to := object, out
		for i, name := range path {
			value, ok := from[name]
			if !ok {
				break
			}
			inner, isObject := value.(map[string]any)
			if !isObject || i == len(path)-1 {
				to[name] = value
				break
			}
			next, ok := to[name].(map[string]any)
			if !ok {
				next = map[string]any{}
				to[name] = next
			}
			from, to = inner, next
		}
		if len(path) == 0 {
			return object
		}
	}
	return out
}

func (r *reads) add(other reads) {
	for _, path := range other.object {
		r.object = r.object.with(path)
	}
	for _, path := range other.old {
		r.old = r.old.with(path)
	}
	for _, path := range other.landscape {
		r.landscape = r.landscape.with(path)
	}
}

// root gives the parts that a name at the beginning of a path belongs to, nil for other names.
func (r *reads) root(name string) *parts {
	switch name {
	case "object":
		return &r.object
	case "old":
		return &r.old
	case "landscape":
		return &r.landscape
	}
	return nil
}

// expression is what a declaration in a file of rules refers to.
type expression struct {
	reads reads
	// names are all other names in it: of declarations, of packages, of its own variables.
	names map[string]bool
}

// look adds what a node refers to.
func (e *expression) look(node ast.Node) {
	ast.Walk(node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr, *ast.IndexExpr:
			e.chain(n.(ast.Expr))
			return false
		case *ast.BinaryExpr:
			if asksForChange(n) {
				return false
			}
		case *ast.Field:
			switch n.Label.(type) {
			case *ast.Ident, *ast.BasicLit: // it names a field and refers to nothing
			default:
				e.look(n.Label)
			}
			e.look(n.Value)
			return false
		case *ast.Ident:
			e.name(n.Name, nil)
		}
		return true
	}, nil)
}

// asksForChange tells whether an expression compares the object before with null. Whether there is one is known without
// reading it.
func asksForChange(e *ast.BinaryExpr) bool {
	isOld := func(x ast.Expr) bool { ident, ok := x.(*ast.Ident); return ok && ident.Name == "old" }
	isNull := func(x ast.Expr) bool { basic, ok := x.(*ast.BasicLit); return ok && basic.Kind == token.NULL }
	return isOld(e.X) && isNull(e.Y) || isNull(e.X) && isOld(e.Y)
}

func (e *expression) name(name string, path []string) {
	if root := e.reads.root(name); root != nil {
		*root = root.with(path)
		return
	}
	e.names[name] = true
}

// chain follows object.spec["x"].y from its end to its beginning. An index that is computed ends the path.
func (e *expression) chain(expr ast.Expr) {
	var path []string
	for {
		switch x := expr.(type) {
		case *ast.SelectorExpr:
			name, _, err := ast.LabelName(x.Sel)
			if err != nil {
				path = nil
			} else {
				path = append(path, name)
			}
			expr = x.X
			continue
		case *ast.IndexExpr:
			name, ok := textOf(x.Index)
			if ok {
				path = append(path, name)
			} else {
				path = nil
				e.look(x.Index)
			}
			expr = x.X
			continue
		case *ast.Ident:
			slices.Reverse(path)
			e.name(x.Name, path)
			return
		}
		e.look(expr)
		return
	}
}

// textOf gives the text of an index such as ["x"].
func textOf(expr ast.Expr) (string, bool) {
	basic, ok := expr.(*ast.BasicLit)
	if !ok {
		return "", false
	}
	text, err := literal.Unquote(basic.Value)
	return text, err == nil
}

// declarations are what the files of rules of a kind declare.
type declarations struct {
	// rules are in the order of the files.
	rules       []string
	heads       map[string]Rule
	expressions map[string]*expression // of rules by id, of others by name
}

func newDeclarations() *declarations {
	return &declarations{heads: map[string]Rule{}, expressions: map[string]*expression{}}
}

// readHeads reads what has to be known of the rules of a file to evaluate them, without compiling them: id, severity and scope.
func (d *declarations) readHeads(file *ast.File) error {
	for _, declaration := range file.Decls {
		field, ok := declaration.(*ast.Field)
		if !ok || fieldName(field) != "rules" {
			continue
		}
		body, ok := field.Value.(*ast.StructLit)
		if !ok {
			continue // read says so
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

// readDeclarations adds those of a file.
func (d *declarations) read(file *ast.File) error {
	for _, declaration := range file.Decls {
		switch x := declaration.(type) {
		case *ast.Package, *ast.ImportDecl, *ast.CommentGroup, *ast.Attribute:
		case *ast.LetClause:
			d.of(x.Ident.Name).look(x.Expr)
		case *ast.Field:
			name := fieldName(x)
			switch {
			case name == "rules":
				if err := d.readRules(x.Value); err != nil {
					return err
				}
			case name == "":
				return fmt.Errorf("%s: a file of rules declares fields with fixed names", x.Pos())
			case (&reads{}).root(name) == nil:
				d.of(name).look(x.Value)
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
		d.of(id).look(rule.Value)
	}
	return nil
}

func (d *declarations) of(name string) *expression {
	if d.expressions[name] == nil {
		d.expressions[name] = &expression{names: map[string]bool{}}
	}
	return d.expressions[name]
}

// reach gives what a rule reads, also by the declarations that it refers to, and their names.
func (d *declarations) reach(id string) (reads, map[string]bool) {
	var all reads
	seen, open := map[string]bool{}, []string{id}
	for len(open) > 0 {
		e := d.expressions[open[0]]
		open = open[1:]
		all.add(e.reads)
		for _, name := range slices.Sorted(maps.Keys(e.names)) {
			if d.expressions[name] != nil && !seen[name] {
				seen[name] = true
				open = append(open, name)
			}
		}
	}
	return all, seen
}
