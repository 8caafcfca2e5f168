// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/build"
	"cuelang.org/go/cue/literal"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pergola-dev/pergola/schemas/structure"
)

// ruleUnit is the rules of a kind that read the same parts of an object. It is compiled on its own
// and sees only these parts. Its findings can be cached for every object with the same content
// there, and most Shoots of a landscape are alike in most parts.
type ruleUnit struct {
	// id identifies the unit among those of all kinds.
	id           string
	kind         schema.GroupVersionKind
	dependencies inputDependencies
	rules        []Rule
	// names are the rules and declarations of the unit; files are the files that have any of them.
	names map[string]bool
	files []sourceFile
}

// kindUnits holds all units of a kind.
type kindUnits struct {
	units []*ruleUnit
	// order is the order of the rules in the files.
	order map[string]int
}

// classes returns the classes of the rules, by id.
func (u *kindUnits) classes() map[string]RuleClass {
	out := map[string]RuleClass{}
	for _, unit := range u.units {
		for _, rule := range unit.rules {
			out[rule.ID] = rule.Class
		}
	}
	return out
}

// unitsOf returns the units of a kind.
func (s *sources) unitsOf(gvk schema.GroupVersionKind) (*kindUnits, error) {
	s.unitsLock.Lock()
	defer s.unitsLock.Unlock()
	if known := s.units[gvk]; known != nil {
		return known, nil
	}
	made, err := s.makeUnits(gvk)
	if err != nil {
		return nil, fmt.Errorf("reading the rules of %s: %w", gvk.Kind, err)
	}
	s.units[gvk] = made
	return made, nil
}

func (s *sources) makeUnits(gvk schema.GroupVersionKind) (*kindUnits, error) {
	all := newRuleDeclarations()
	byFile := map[string]*ruleDeclarations{}
	var files []sourceFile
	for _, folder := range ruleFolders(gvk) {
		for _, source := range s.rules[folder] {
			file, err := s.parse(source)
			if err != nil {
				return nil, err
			}
			if err := all.readHeads(file); err != nil {
				return nil, err
			}
			stripRules(file)
			byFile[source.name] = newRuleDeclarations()
			for _, d := range []*ruleDeclarations{all, byFile[source.name]} {
				if err := d.read(file); err != nil {
					return nil, err
				}
			}
			files = append(files, source)
		}
	}
	result := &kindUnits{order: map[string]int{}}
	bySignature := map[string]*ruleUnit{}
	for i, id := range all.rules {
		result.order[id] = i
		reads, names := all.dependenciesOf(id)
		head := all.ruleHeads[id]
		head.Class = ClassStatic // CUE has no clock
		if reads.old.hasReads() {
			head.Class = ClassChange
		}
		signature := fmt.Sprintf("%s %s", head.Scope, reads)
		u := bySignature[signature]
		if u == nil {
			u = &ruleUnit{id: gvk.String() + " " + signature, kind: gvk, dependencies: reads, names: map[string]bool{}}
			bySignature[signature] = u
			result.units = append(result.units, u)
		}
		u.rules = append(u.rules, head)
		u.names[id] = true
		for name := range names {
			u.names[name] = true
		}
	}
	for _, u := range result.units {
		for _, file := range files {
			if slices.ContainsFunc(byFile[file.name].names(), func(name string) bool { return u.names[name] }) || u.isRootFile(file) {
				u.files = append(u.files, file)
			}
		}
	}
	return result, nil
}

// isRootFile reports whether a file declares object, old and landscape.
func (u *ruleUnit) isRootFile(file sourceFile) bool {
	return file.name == path.Join("rules", commonRuleFolders[0], "rule.cue")
}

// names lists the declared names.
func (d *ruleDeclarations) names() []string {
	names := make([]string, 0, len(d.expressions))
	for name := range d.expressions {
		names = append(names, name)
	}
	return names
}

// compile compiles the rules of a unit. Its callers fill in the inputs.
func (u *ruleUnit) compile(s *sources, ctx *cue.Context) (cue.Value, error) {
	instance := build.NewContext().NewInstance("rules/"+strings.ToLower(structure.RulesName(u.kind)), nil)
	for _, source := range u.files {
		file, err := s.parse(source)
		if err != nil {
			return cue.Value{}, err
		}
		stripRules(file)
		u.stripUnrelated(file)
		if err := instance.AddSyntax(file); err != nil {
			return cue.Value{}, fmt.Errorf("adding a file of rules: %w", s.explainError(err))
		}
	}
	if err := instance.Complete(); err != nil {
		return cue.Value{}, fmt.Errorf("completing the rules of %s: %w", u.kind.Kind, s.explainError(err))
	}
	value := ctx.BuildInstance(instance)
	if err := value.Err(); err != nil {
		return cue.Value{}, fmt.Errorf("compiling the rules of %s: %w", u.kind.Kind, s.explainError(err))
	}
	return value, nil
}

// stripUnrelated removes everything from a file that does not belong to the unit.
func (u *ruleUnit) stripUnrelated(file *ast.File) {
	used := map[string]bool{}
	look := func(expr ast.Expr) {
		ast.Walk(expr, func(n ast.Node) bool {
			if name, ok := n.(*ast.Ident); ok {
				used[name.Name] = true
			}
			return true
		}, nil)
	}
	file.Decls = slices.DeleteFunc(file.Decls, func(declaration ast.Decl) bool {
		switch x := declaration.(type) {
		case *ast.Field:
			name := fieldName(x)
			if name == "rules" {
				if body, ok := x.Value.(*ast.StructLit); ok {
					body.Elts = slices.DeleteFunc(body.Elts, func(element ast.Decl) bool {
						rule, ok := element.(*ast.Field)
						return ok && !u.names[fieldName(rule)]
					})
				}
			} else if !isInputName(name) && !u.names[name] {
				return true
			}
			look(x.Value)
		case *ast.LetClause:
			if !u.names[x.Ident.Name] {
				return true
			}
			look(x.Expr)
		}
		return false
	})
	dropImports(file, used)
}

// dropImports removes unused imports, which CUE refuses.
func dropImports(file *ast.File, used map[string]bool) {
	keep := func(spec *ast.ImportSpec) bool {
		if spec.Name != nil {
			return used[spec.Name.Name]
		}
		name, err := literal.Unquote(spec.Path.Value)
		return err != nil || used[path.Base(name)]
	}
	file.Decls = slices.DeleteFunc(file.Decls, func(declaration ast.Decl) bool {
		imports, ok := declaration.(*ast.ImportDecl)
		if !ok {
			return false
		}
		imports.Specs = slices.DeleteFunc(imports.Specs, func(spec *ast.ImportSpec) bool { return !keep(spec) })
		return len(imports.Specs) == 0
	})
}
