// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// maxFields limits the fields of a struct, including fields of embedded structs. No one can keep
// more of them in mind.
const maxFields = 15

// structType is a struct with its folder and file.
type structType struct {
	*ast.StructType
	folder string
	file   *ast.File
}

// readStructs returns the structs of the module by folder and name: `apply.Cluster`.
func readStructs(t *testing.T) map[string]structType {
	out := map[string]structType{}
	require.NoError(t, filepath.WalkDir(repositoryRoot, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && name != repositoryRoot && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata" || name == filepath.Join(repositoryRoot, "hack")) {
			return fs.SkipDir
		}
		if entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(repositoryRoot, filepath.Dir(name))
		if err != nil {
			return err
		}
		folder = filepath.ToSlash(folder)
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				if of, ok := spec.Type.(*ast.StructType); ok {
					out[folder+"."+spec.Name.Name] = structType{of, folder, file}
				}
			}
			return true
		})
		return nil
	}))
	return out
}

// embeddedName returns the name of the struct that a field embeds; it is empty if it is in another
// module.
func (s structType) embeddedName(e ast.Expr) string {
	switch x := e.(type) {
	case *ast.StarExpr:
		return s.embeddedName(x.X)
	case *ast.IndexExpr:
		return s.embeddedName(x.X)
	case *ast.Ident:
		return s.folder + "." + x.Name
	case *ast.SelectorExpr:
		for _, i := range s.file.Imports {
			imported, _ := strconv.Unquote(i.Path.Value)
			below, ours := strings.CutPrefix(imported, modulePrefix)
			name := path.Base(imported)
			if i.Name != nil {
				name = i.Name.Name
			}
			if of, ok := x.X.(*ast.Ident); ok && ours && of.Name == name {
				return below + "." + x.Sel.Name
			}
		}
	}
	return ""
}

// countFields counts the fields of a struct and of its embedded structs.
func countFields(all map[string]structType, of structType) int {
	n := 0
	for _, f := range of.Fields.List {
		inner, known := all[of.embeddedName(f.Type)]
		switch {
		case len(f.Names) > 0:
			n += len(f.Names)
		case known:
			n += countFields(all, inner)
		default:
			n++
		}
	}
	return n
}

// TestStructsStaySmall counts fields of controllers and commands. Decoded configuration and API
// types are in api.
func TestStructsStaySmall(t *testing.T) {
	all := readStructs(t)
	for name, of := range all {
		if top, _, _ := strings.Cut(name, "/"); top != "controllers" && top != "commands" {
			continue
		}
		n := countFields(all, of)
		assert.LessOrEqual(t, n, maxFields, "%s has %d fields, of at most %d: give what belongs together a type of its own", name, n, maxFields)
	}
}

func TestFieldsOfEmbeddedStructsCount(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "a.go", `package a
import other "github.com/pergola-dev/pergola/b"
type a struct { x, y int; inner; *other.Outer; sync.Mutex }
type inner struct { z int; generic[int] }
type generic[T any] struct { v, w T }`, parser.SkipObjectResolution)
	require.NoError(t, err)
	all := map[string]structType{"b.Outer": {StructType: &ast.StructType{Fields: &ast.FieldList{List: []*ast.Field{{Names: []*ast.Ident{{}, {}}}}}}}}
	for _, d := range file.Decls[1:] {
		spec := d.(*ast.GenDecl).Specs[0].(*ast.TypeSpec)
		all["a."+spec.Name.Name] = structType{spec.Type.(*ast.StructType), "a", file}
	}
	assert.Equal(t, 2+3+2+1, countFields(all, all["a.a"]))
}
