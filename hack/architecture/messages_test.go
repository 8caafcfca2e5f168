// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// parsingFunctions are the functions of package strings that decide by a text or split it.
var parsingFunctions = map[string]bool{"Contains": true, "ContainsAny": true, "Cut": true, "CutPrefix": true, "CutSuffix": true, "EqualFold": true, "Fields": true,
	"HasPrefix": true, "HasSuffix": true, "Index": true, "LastIndex": true, "Split": true, "SplitN": true, "SplitSeq": true, "TrimPrefix": true, "TrimSuffix": true}

func isParsing(call *ast.CallExpr) bool {
	fun, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	if of, ok := fun.X.(*ast.Ident); ok && of.Name == "strings" {
		return parsingFunctions[fun.Sel.Name]
	}
	return strings.HasPrefix(fun.Sel.Name, "Match") || strings.HasPrefix(fun.Sel.Name, "Find")
}

// isMessage reports whether an expression is the message of a condition, event, status or error,
// also as the argument of a function of package strings.
func isMessage(e ast.Expr) bool {
	switch x := e.(type) {
	case *ast.SelectorExpr:
		return x.Sel.Name == "Message"
	case *ast.CallExpr:
		if fun, ok := x.Fun.(*ast.SelectorExpr); ok {
			if fun.Sel.Name == "Error" && len(x.Args) == 0 {
				return true
			}
			if of, ok := fun.X.(*ast.Ident); ok && of.Name == "strings" && len(x.Args) > 0 {
				return isMessage(x.Args[0])
			}
		}
	}
	return false
}

// readExceptions returns the functions that may parse texts: `path function: why`.
func readExceptions(t *testing.T) map[string]bool {
	raw, err := os.ReadFile("texts.txt")
	require.NoError(t, err)
	out := map[string]bool{}
	for line := range strings.Lines(string(raw)) {
		name, why, found := strings.Cut(strings.TrimSpace(line), ": ")
		if name == "" || strings.HasPrefix(name, "#") {
			continue
		}
		require.True(t, found && why != "", "texts.txt: %s says no reason", line)
		out[name] = false
	}
	return out
}

// TestNoMessageIsParsed checks that no program decides by a text for people: better wording would
// change its behaviour.
func TestNoMessageIsParsed(t *testing.T) {
	allowed := readExceptions(t)
	require.NoError(t, filepath.WalkDir(repositoryRoot, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() && path != repositoryRoot && (strings.HasPrefix(name, ".") || name == "testdata" || path == filepath.Join(repositoryRoot, "hack")) {
			return fs.SkipDir
		}
		if entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(repositoryRoot, path)
		if err != nil {
			return err
		}
		for _, d := range file.Decls {
			function, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(function, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok || !isParsing(call) || len(call.Args) == 0 || !isMessage(call.Args[0]) {
					return true
				}
				key := filepath.ToSlash(relative) + " " + function.Name.Name
				if _, is := allowed[key]; is {
					allowed[key] = true
					return true
				}
				assert.Fail(t, "a text for people is parsed", "%s: give the program a code or a field, or say in hack/architecture/texts.txt why %q has to", set.Position(call.Pos()), key)
				return true
			})
		}
		return nil
	}))
	for key, used := range allowed {
		assert.True(t, used, "texts.txt: %s parses nothing any more", key)
	}
}

func TestIsMessage(t *testing.T) {
	for text, want := range map[string]bool{
		`strings.Contains(c.Message, "x")`: true, `strings.HasPrefix(strings.ToLower(err.Error()), "x")`: true, `pattern.FindString(c.Message)`: true,
		`strings.Contains(c.Reason, "x")`: false, `strings.ToLower(c.Message)`: false, `find(c.Message)`: false, `err.Error()`: false,
	} {
		e, err := parser.ParseExpr(text)
		require.NoError(t, err)
		call := e.(*ast.CallExpr)
		assert.Equal(t, want, isParsing(call) && len(call.Args) > 0 && isMessage(call.Args[0]), text)
	}
}
