// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/token"

	"github.com/pergola-dev/pergola/internal/suggest"
	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/report"
)

// maxViolations limits the number of violations of one package.
const maxViolations = 100

func (r *objectReader) report(file string, line, column int, typ schemas.ViolationType, format string, args ...any) {
	v := schemas.Violation{Severity: schemas.SeverityError, File: file, Line: line, Column: column, Type: typ, Rule: RuleCUE, Message: fmt.Sprintf(format, args...)}
	// a comprehension repeats its fault in each value
	if !slices.Contains(r.result.Violations, v) {
		r.result.Violations = append(r.result.Violations, v)
	}
}

func (r *objectReader) reportAt(at position, typ schemas.ViolationType, format string, args ...any) {
	r.report(r.pkg.Files[at.file].Name, at.line, at.column, typ, format, args...)
}

// unclosedMessagePattern matches CUE's message about a file that ends inside brackets.
var unclosedMessagePattern = regexp.MustCompile(`^expected '([])}])', found 'EOF'$`)

// reportAll reports every error of an evaluation at its place.
func (r *objectReader) reportAll(file string, err error) {
	for _, e := range errors.Errors(err) {
		if len(r.result.Violations) >= maxViolations {
			return
		}
		name, line, column := file, 1, 1
		for _, pos := range append(append([]token.Pos{e.Position()}, e.InputPositions()...), r.fieldPosition(e.Path())) {
			if _, ours := r.index[pos.Filename()]; ours && pos.IsValid() {
				name, line, column = pos.Filename(), pos.Line(), pos.Column()
				break
			}
		}
		where := ""
		if steps := e.Path(); len(steps) > 0 {
			where = strings.Join(steps, ".") + ": "
		}
		message := r.undefinedFieldText(e)
		if message == "" {
			message = errorText(e, r.canQuote(name, line))
		}
		if missing := unclosedMessagePattern.FindStringSubmatch(message); missing != nil {
			message = fmt.Sprintf("the file ends before a bracket is closed: %s is missing", missing[1])
		}
		r.report(name, line, column, schemas.TypeInvalid, "%s%s", where, message)
	}
}

// fieldPosition finds where a field or its closest parent is written, for errors that name a field
// without its place.
func (r *objectReader) fieldPosition(path []string) token.Pos {
	best := token.NoPos
	for _, file := range r.syntax {
		depth := 0
		declarations := file.Decls
		for depth < len(path) {
			field := findField(declarations, path[depth])
			if field == nil {
				break
			}
			best, depth = field.Pos(), depth+1
			inner, ok := field.Value.(*ast.StructLit)
			if !ok {
				break
			}
			declarations = inner.Elts
		}
		if depth > 0 {
			return best
		}
	}
	return best
}

func findField(declarations []ast.Decl, name string) *ast.Field {
	for _, declaration := range declarations {
		if field, ok := declaration.(*ast.Field); ok {
			if label, _, err := ast.LabelName(field.Label); err == nil && label == strings.Trim(name, `"`) {
				return field
			}
		}
	}
	return nil
}

// undefinedFieldText describes a field that a value does not have, if the package has that field
// name elsewhere. Field names are not confidential. It suggests the field that is most likely
// misspelt. The text is empty for other errors.
func (r *objectReader) undefinedFieldText(e errors.Error) string {
	format, args := e.Msg()
	name, ok := strings.CutPrefix(fmt.Sprintf(format, args...), "undefined field: ")
	if !ok {
		return ""
	}
	labels := map[string]token.Pos{}
	for _, file := range r.syntax {
		ast.Walk(file, func(n ast.Node) bool {
			if field, isField := n.(*ast.Field); isField {
				if label, _, err := ast.LabelName(field.Label); err == nil {
					labels[label] = field.Pos()
				}
			}
			return true
		}, nil)
	}
	if _, known := labels[name]; !known {
		return ""
	}
	delete(labels, name)
	message := fmt.Sprintf("the value that it is taken from has no field %q", name)
	if better := suggest.Closest(name, slices.Sorted(maps.Keys(labels))); better != "" {
		message += fmt.Sprintf("; did you mean the field %q in line %d of %s?", better, labels[better].Line(), path.Base(labels[better].Filename()))
	}
	return message
}

// canQuote reports whether an error may quote names of a line: a name may be an unquoted value. Any
// file of the package may declare the value as part of a Secret.
func (r *objectReader) canQuote(name string, line int) bool {
	for _, file := range r.pkg.Files {
		text := string(file.Data)
		if report.CanHoldSecrets(text) || file.Name == name && !report.QuotableCUELines(text)(line) {
			return false
		}
	}
	return true
}

// quotedPattern matches unexpected tokens and unknown names in messages of CUE.
var quotedPattern = regexp.MustCompile(`found '([A-Z]+)' .*|^(undefined field|reference)\b.*|^(import|package|unexpected|illegal|unreferenced) .*`)

// removeNames removes quoted text from a message of CUE.
func removeNames(text string) string {
	return strings.TrimSpace(quotedPattern.ReplaceAllStringFunc(text, func(found string) string {
		parts := quotedPattern.FindStringSubmatch(found)
		switch {
		case parts[1] != "":
			return "found " + strings.ToLower(parts[1])
		case parts[2] != "":
			return "it refers to a name that does not exist in its package and file; declare the name there, or put text in quotes"
		}
		return "CUE cannot read this: " + parts[3]
	}))
}

// standardPackages are the packages that declarations may import (https://cuelang.org/go, pkg).
var standardPackages = []string{
	"crypto/hmac", "crypto/md5", "crypto/sha1", "crypto/sha256", "crypto/sha512", "encoding/base64", "encoding/csv", "encoding/hex", "encoding/json",
	"encoding/yaml", "html", "list", "math", "math/bits", "net", "path", "regexp", "strconv", "strings", "struct", "text/tabwriter", "text/template", "time", "uuid",
}

// errorText describes an error without values: CUE's messages quote them, and a file may hold a
// Secret. It repeats names only if names is set.
func errorText(e errors.Error, names bool) string {
	format, args := e.Msg()
	text := fmt.Sprintf(format, args...)
	for _, known := range []struct{ mark, sentence string }{
		{"conflicting values", "two places give it different values, or one gives a type that the other does not allow"},
		{"mismatched types", "it does not have the expected type"},
		{"out of bound", "a constraint does not allow the value"},
		{"invalid value", "a constraint does not allow the value"},
		{"incomplete value", "it has no concrete value"},
		{"field not allowed", "a definition does not allow the field"},
		{"structural cycle", "it contains itself infinitely"},
		{"cycle", "it refers to itself"},
		{"empty disjunction", "no alternative matches"},
		{"division by zero", "it divides by zero"},
		{"maximum nesting depth", "it is nested too deep"},
		{"cannot use", "an argument of a function has the wrong type"},
	} {
		if strings.Contains(text, known.mark) {
			return known.sentence
		}
	}
	// These messages contain only names and syntax.
	for _, harmless := range []string{
		"reference ", "undefined field", "expected ", "import", "package ", "missing ", "unexpected ", "unreferenced ", "illegal ",
		"string literal not terminated", "comment not terminated", "escape sequence ", "octal escape ", "hexadecimal escape ",
		"identifiers starting with ", "explicit error ", "non-matching whitespace", "invalid attribute", "attribute missing", "interpolation not allowed",
	} {
		if strings.HasPrefix(text, harmless) {
			if !names {
				return removeNames(text)
			}
			return text
		}
	}
	switch name, is := strings.CutPrefix(text, "builtin package "); {
	case is && names:
		hint := ""
		if meant := suggest.Closest(strings.Trim(strings.TrimSuffix(name, " undefined"), `"`), standardPackages); meant != "" {
			hint = fmt.Sprintf("; did you mean %q?", meant)
		}
		return "CUE has no package " + strings.TrimSuffix(name, " undefined") + hint
	case strings.Contains(e.Error(), "index out of range"):
		return "the list does not have this item; a field that the list is built from may be missing or have no concrete value"
	case text == "invalid interpolation":
		return "the text contains a value that is missing or cannot become text"
	}
	return "CUE cannot evaluate this"
}
