// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/build"
	"cuelang.org/go/cue/parser"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pergola-dev/pergola/schemas/structure"
)

// sources holds the schemas as text. Every worker parses them, because compiling changes a syntax
// tree.
type sources struct {
	kinds    *kindSet
	base     map[schema.GroupVersionKind]sourceFile
	rules    map[string][]sourceFile // by folder
	digest   string
	ruleMeta func() (map[string]Rule, error) // rules in CUE, by id

	unitsLock sync.Mutex
	units     map[schema.GroupVersionKind]*kindUnits
}

type sourceFile struct {
	name string
	data []byte
}

func (s *sources) parse(file sourceFile) (*ast.File, error) {
	syntax, err := parser.ParseFile(file.name, file.data)
	if err != nil {
		return nil, fmt.Errorf("parsing a schema: %w", s.explainError(err))
	}
	return syntax, nil
}

// commonRuleFolders lists the folders of rules that belong to every kind.
var commonRuleFolders = [...]string{"lib", "any"}

// sharedRuleFolders lists the folders that several kinds share, by the folder of the kind. They
// have no rules, only common parts of the rules of these kinds.
var sharedRuleFolders = map[string]string{
	"controllerdeployment": "charts", "controllerregistration": "charts", "extension": "charts", "gardenlet": "charts",
	"backupbucket": "references", "backupentry": "references", "credentialsbinding": "references", "secretbinding": "references",
}

// ruleFolders returns the folders of all rules of a kind.
func ruleFolders(gvk schema.GroupVersionKind) []string {
	own := strings.ToLower(structure.RulesName(gvk))
	folders := slices.Clone(commonRuleFolders[:])
	if shared, ok := sharedRuleFolders[own]; ok {
		folders = append(folders, shared)
	}
	if strings.HasPrefix(own, folderExtensions+".") {
		folders = append(folders, folderExtensions)
	}
	return append(folders, own)
}

// folderExtensions has the rules of all kinds of the group extensions.gardener.cloud.
const folderExtensions = "extensions"

// isForKind reports whether a rule is about a kind.
func (r Rule) isForKind(gvk schema.GroupVersionKind) bool {
	name := structure.RulesName(gvk)
	return r.Kind == "*" || r.Kind == name || r.Kind == kindAllExtensions && strings.HasPrefix(name, folderExtensions+".")
}

// newSources reads the files base/*.cue and rules/*/*.cue.
func newSources(kinds *kindSet, files fs.FS) (*sources, error) {
	s := &sources{kinds: kinds, base: map[schema.GroupVersionKind]sourceFile{}, rules: map[string][]sourceFile{}, units: map[schema.GroupVersionKind]*kindUnits{}}
	hash := sha256.New()
	read := func(name string) (sourceFile, error) {
		data, err := fs.ReadFile(files, name)
		if err != nil {
			return sourceFile{}, fmt.Errorf("reading the schema %s: %w", name, err)
		}
		fmt.Fprintf(hash, "%s\x00%d\x00%s", name, len(data), data)
		return sourceFile{name: name, data: data}, nil
	}
	for _, gvk := range kinds.gvks {
		file, err := read(path.Join("base", BaseFile(gvk)))
		if err != nil {
			return nil, err
		}
		s.base[gvk] = file
	}
	names, err := fs.Glob(files, "rules/*/*.cue")
	if err != nil {
		return nil, fmt.Errorf("listing the rules: %w", err)
	}
	for _, name := range names {
		file, err := read(name)
		if err != nil {
			return nil, err
		}
		folder := path.Base(path.Dir(name))
		s.rules[folder] = append(s.rules[folder], file)
	}
	s.ruleMeta = sync.OnceValues(s.readRuleMeta)
	s.digest = hex.EncodeToString(hash.Sum(nil))
	return s, nil
}

// BaseFile returns the name of the file of a kind in schemas/base.
func BaseFile(gvk schema.GroupVersionKind) string {
	// A leading underscore, which the core group adds, hides a file from CUE and from embedding.
	return strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%s_%s_%s.cue", gvk.Group, gvk.Version, gvk.Kind), "_"))
}

// compileBase compiles the structural definition of one kind.
func (s *sources) compileBase(ctx *cue.Context, kind *structure.Kind) (cue.Value, error) {
	gvk := kind.GVK
	file, err := s.parse(s.base[gvk])
	if err != nil {
		return cue.Value{}, err
	}
	value := ctx.BuildFile(file)
	if err := value.Err(); err != nil {
		return cue.Value{}, fmt.Errorf("compiling the structure of %s: %w", gvk.Kind, s.explainError(err))
	}
	definition := value.LookupPath(cue.MakePath(cue.Def(kind.CUEDefinition())))
	if err := definition.Err(); err != nil {
		return cue.Value{}, fmt.Errorf("looking up the structure of %s: %w", gvk.Kind, err)
	}
	return definition, nil
}

// compileRules compiles the rules of one kind and the rules for all kinds, as they are written, to
// read their descriptions. Objects are evaluated with units.
func (s *sources) compileRules(ctx *cue.Context, gvk schema.GroupVersionKind) (cue.Value, error) {
	instance := build.NewContext().NewInstance("rules/"+strings.ToLower(structure.RulesName(gvk)), nil)
	for _, folder := range ruleFolders(gvk) {
		for _, source := range s.rules[folder] {
			file, err := s.parse(source)
			if err != nil {
				return cue.Value{}, err
			}
			if folder != commonRuleFolders[0] {
				if err := s.checkTypes(file); err != nil {
					return cue.Value{}, fmt.Errorf("reading a rule: %w", err)
				}
			}
			if err := instance.AddSyntax(file); err != nil {
				return cue.Value{}, fmt.Errorf("adding a file of rules: %w", s.explainError(err))
			}
		}
	}
	if err := instance.Complete(); err != nil {
		return cue.Value{}, fmt.Errorf("completing the rules of %s: %w", gvk.Kind, s.explainError(err))
	}
	value := ctx.BuildInstance(instance)
	if err := value.Err(); err != nil {
		return cue.Value{}, fmt.Errorf("compiling the rules of %s: %w", gvk.Kind, s.explainError(err))
	}
	return value, nil
}

// stripRules prepares rules to be evaluated for many objects. It removes title, doc, source,
// fields, severity and scope of each rule, and the library's constraint on all. Callers must set
// old and landscape: a default is a disjunction, and CUE copies the whole landscape to decide it.
func stripRules(file *ast.File) {
	file.Decls = slices.DeleteFunc(file.Decls, func(declaration ast.Decl) bool {
		field, ok := declaration.(*ast.Field)
		if !ok {
			return false
		}
		switch fieldName(field) {
		case "old", "landscape":
			field.Value = ast.NewIdent("_")
			return false
		case "rules":
		default:
			return false
		}
		rules, ok := field.Value.(*ast.StructLit)
		if !ok {
			return false
		}
		for _, element := range rules.Elts {
			rule, ok := element.(*ast.Field)
			if !ok {
				continue
			}
			if _, pattern := rule.Label.(*ast.ListLit); pattern {
				return true
			}
			if body, ok := rule.Value.(*ast.StructLit); ok {
				body.Elts = slices.DeleteFunc(body.Elts, func(part ast.Decl) bool {
					meta, ok := part.(*ast.Field)
					return ok && slices.Contains([]string{"title", "doc", "source", "fields", "severity", "scope"}, fieldName(meta))
				})
			}
		}
		return false
	})
}

func fieldName(field *ast.Field) string {
	name, _, err := ast.LabelName(field.Label)
	if err != nil {
		return ""
	}
	return name
}
