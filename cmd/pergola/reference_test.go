// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/schemas/rulebook"
)

var update = flag.Bool("update", false, "write the generated pages of docs/reference")

const (
	root      = "../.."
	reference = root + "/docs/reference"
	generated = "<!-- Written by `make generate` (cmd/pergola/reference_test.go). Do not edit. -->\n"
)

// page compares a generated page with the recorded one, or records it.
func page(t *testing.T, name string, text []byte) {
	t.Helper()
	file := filepath.Join(reference, name)
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, text, 0o644))
	}
	recorded, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(recorded), string(text), "docs/reference/%s is not current: run make generate", name)
}

// TestReferenceOfCommands checks that docs/reference/cli has one page for each command, with the
// text of its --help.
func TestReferenceOfCommands(t *testing.T) {
	pages := []string{}
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		if !cmd.IsAvailableCommand() && cmd.HasParent() {
			return
		}
		cmd.DisableAutoGenTag = true
		var b bytes.Buffer
		require.NoError(t, doc.GenMarkdown(cmd, &b))
		title, rest, _ := strings.Cut(b.String(), "\n")
		name := strings.ReplaceAll(cmd.CommandPath(), " ", "_") + ".md"
		page(t, filepath.Join("cli", name), []byte(strings.TrimPrefix(title, "#")+"\n\n"+generated+rest))
		pages = append(pages, name)
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(newRoot())
	recorded, err := os.ReadDir(filepath.Join(reference, "cli"))
	require.NoError(t, err)
	for _, entry := range recorded {
		assert.Contains(t, pages, entry.Name(), "no command has this page: delete it")
	}
}

// keyNames are the placeholders of map keys in the page of Landscapes, by the field of the map.
var keyNames = map[string]string{"spec.clusters.seeds": "NAME", "spec.components": "OWNER.COMPONENT"}

// lowerCaseKey matches a map key that is not a placeholder.
var lowerCaseKey = regexp.MustCompile(`\[[^]]*[a-z]`)

// TestReferenceOfLandscape checks the page of landscape.yaml and of the Landscape API: each field
// with its type, default and documentation.
func TestReferenceOfLandscape(t *testing.T) {
	var b bytes.Buffer
	fmt.Fprintf(&b, `# Landscape

%s
A file landscape.yaml and a Landscape object in a cluster have the same fields.
`+"`pergola explain Landscape.spec.FIELD`"+` also prints the rules about a field.

| field | type | default | meaning |
|---|---|---|---|
`, generated)
	cell := strings.NewReplacer("|", `\|`, "\n", " ", "<", `\<`)
	var visit func(path string)
	visit = func(path string) {
		e, err := rulebook.Explain("Landscape." + path)
		require.NoError(t, err, path)
		require.NotRegexp(t, lowerCaseKey, e.Field, "a field is read as the key of a map")
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", path, cell.Replace(e.Type), cell.Replace(defaultText(e.Default)), cell.Replace(e.Documentation))
		if strings.Contains(e.Type, "map of") && len(e.Fields) > 0 {
			require.Contains(t, keyNames, path, "name the keys of this map")
			path += "." + keyNames[path]
		}
		for _, field := range e.Fields {
			visit(path + "." + field.Name)
		}
	}
	visit("spec")
	visit("status")
	page(t, "landscape.md", b.Bytes())
}

// defaultText is a default as it is written in YAML; "" for none.
func defaultText(value any) string {
	if value == nil {
		return ""
	}
	text, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// TestReferenceOfMetrics checks the page of metrics: each name in the source with its help and
// labels.
func TestReferenceOfMetrics(t *testing.T) {
	metrics := map[string]string{}
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && path != root && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "hack" || entry.Name() == "testdata") {
			return fs.SkipDir
		}
		if entry.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		return readMetrics(path, metrics)
	}))
	require.NotEmpty(t, metrics)
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Metrics\n\n%s\n| metric | meaning |\n|---|---|\n", generated)
	for _, name := range slices.Sorted(maps.Keys(metrics)) {
		fmt.Fprintf(&b, "| `%s` | %s |\n", name, metrics[name])
	}
	page(t, "metrics.md", b.Bytes())
}

// readMetrics collects the metrics of a file: a string that begins with pergola_ is a name, the
// next string its help.
func readMetrics(path string, metrics map[string]string) error {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		return err
	}
	constants := map[string]string{}
	var text func(e ast.Expr) string
	text = func(e ast.Expr) string {
		switch x := e.(type) {
		case *ast.BasicLit:
			value, _ := strconv.Unquote(x.Value)
			return value
		case *ast.Ident:
			return constants[x.Name]
		case *ast.BinaryExpr:
			return text(x.X) + text(x.Y)
		case *ast.KeyValueExpr:
			return text(x.Value)
		}
		return ""
	}
	ast.Inspect(file, func(n ast.Node) bool {
		var values []ast.Expr
		switch x := n.(type) {
		case *ast.ValueSpec:
			for i, name := range x.Names {
				if i < len(x.Values) {
					constants[name.Name] = text(x.Values[i])
				}
			}
		case *ast.CallExpr:
			values = x.Args
		case *ast.CompositeLit:
			values = x.Elts
		}
		for i, value := range values {
			if name := text(value); strings.HasPrefix(name, "pergola_") && i+1 < len(values) {
				metrics[name] = text(values[i+1])
			}
		}
		return true
	})
	return nil
}
