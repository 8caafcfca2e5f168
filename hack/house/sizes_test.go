package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// mostFields is how many a struct of controllers has at most, embedded ones counted: more are no value that one can hold in the head.
const mostFields = 15

// TestStructsStaySmall: decoded configuration and what a command prints are excepted: structs of which a field has a tag for JSON.
func TestStructsStaySmall(t *testing.T) {
	for _, folder := range []string{"commands", "controllers"} {
		require.NoError(t, filepath.WalkDir(filepath.Join(root, folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			folder, err := filepath.Rel(root, filepath.Dir(path))
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				spec, ok := n.(*ast.TypeSpec)
				if !ok {
					return true
				}
				of, ok := spec.Type.(*ast.StructType)
				if !ok {
					return true
				}
				fields, tagged := count(of)
				if name := filepath.ToSlash(folder) + "." + spec.Name.Name; fields > mostFields && !tagged {
					t.Errorf("%s has %d fields, of at most %d: give what belongs together a type of its own", name, fields, mostFields)
				}
				return true
			})
			return nil
		}))
	}
}

func count(of *ast.StructType) (fields int, tagged bool) {
	for _, f := range of.Fields.List {
		fields += max(1, len(f.Names))
		tagged = tagged || f.Tag != nil && strings.Contains(f.Tag.Value, "json:")
	}
	return fields, tagged
}
