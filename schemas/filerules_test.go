// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fileRuleIDPattern matches the ids that packages landscapes and render give their findings.
var fileRuleIDPattern = regexp.MustCompile(`^landscape/[a-z][a-z-]*$`)

// findRuleIDs returns the rule ids in the sources of a package, with their positions.
func findRuleIDs(t *testing.T, folder string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	require.NoError(t, err)
	require.NotEmpty(t, files, folder)
	ids := map[string]string{}
	set := token.NewFileSet()
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, name, nil, 0)
		require.NoError(t, err)
		add := func(e ast.Expr, isID bool) {
			if literal, ok := e.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				if text, err := strconv.Unquote(literal.Value); err == nil && text != "" && (isID || fileRuleIDPattern.MatchString(text)) {
					ids[text] = set.Position(literal.Pos()).String()
				}
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.KeyValueExpr: // Violation{Rule: "…"}
				key, ok := n.Key.(*ast.Ident)
				add(n.Value, ok && strings.EqualFold(key.Name, "rule"))
			case *ast.ValueSpec: // const ruleImage = "…"
				for i, value := range n.Values {
					add(value, strings.HasPrefix(strings.ToLower(n.Names[i].Name), "rule"))
				}
			case *ast.CallExpr: // l.report(…, "…", …)
				for _, arg := range n.Args {
					add(arg, false)
				}
			}
			return true
		})
	}
	return ids
}

// TestEveryRuleIDListed checks that every rule id that other packages report is listed, and that
// every listed id is reported.
func TestEveryRuleIDListed(t *testing.T) {
	rules, err := Rules()
	require.NoError(t, err)
	listed, files := map[string]bool{}, map[string]bool{}
	for _, rule := range rules {
		listed[rule.ID] = true
	}
	for _, rule := range FileRules() {
		assert.False(t, listed[rule.ID] && !files[rule.ID], "%s is a rule of objects, too", rule.ID)
		listed[rule.ID], files[rule.ID] = true, true
	}
	named := map[string]bool{}
	folders, err := filepath.Glob(filepath.FromSlash("../commands/*"))
	require.NoError(t, err)
	for _, folder := range append(folders, "../landscapes", "../landscapes/evaluation", "../render", "../cmd/pergola") {
		if strings.HasSuffix(folder, ".go") {
			continue
		}
		for id, place := range findRuleIDs(t, filepath.FromSlash(folder)) {
			named[id] = true
			assert.True(t, listed[id], "%s: the rule %s is not listed: describe it in filerules.go", place, id)
		}
	}
	for id := range files {
		assert.True(t, named[id], "%s is listed in filerules.go, and nothing is reported by it", id)
	}
}

func TestFileRulesComplete(t *testing.T) {
	for _, rule := range FileRules() {
		assert.NotEmpty(t, rule.Title, rule.ID)
		assert.False(t, strings.HasSuffix(rule.Title, "."), rule.ID)
		assert.True(t, strings.HasSuffix(rule.Doc, "."), rule.ID)
		assert.NotEmpty(t, rule.Source, rule.ID)
		assert.NotEmpty(t, rule.Fields, rule.ID)
		_, err := os.Stat(filepath.Join("..", filepath.FromSlash(rule.File)))
		require.NoError(t, err, rule.ID)
	}
}
