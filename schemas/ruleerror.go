// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"bytes"
	stderrors "errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/token"
)

// explainError rewrites an error of CUE about the schemas for authors of rules. Each fault gets one
// line with file, line, column and rule, as in
//
//	schemas/rules/shoot/names.cue:12:3: rule shoot/names: reference "objct" not found
//
// It does not change other errors.
func (s *sources) explainError(err error) error {
	var lines, unplaced []string
	for _, e := range errors.Errors(err) {
		line, placed := s.explainSingleError(e)
		switch {
		case placed && !slices.Contains(lines, line):
			lines = append(lines, line)
		case !placed:
			unplaced = append(unplaced, line)
		}
	}
	switch {
	case len(lines) > 0: // the others are headings, such as "2 errors in empty disjunction:"
		return stderrors.New(strings.Join(lines, "\n"))
	case len(unplaced) > 0:
		return stderrors.New(strings.Join(unplaced, "\n"))
	}
	return err
}

// ruleFailureMessage starts the message of a finding about a rule that cannot be evaluated.
const ruleFailureMessage = "cannot be checked, because the rule fails"

// ruleFailureFinding returns the finding about a rule that cannot be evaluated. CUE's error does
// not help the author of an object.
func (s *sources) ruleFailureFinding(rule Rule, err error) finding {
	place := ""
	for _, e := range errors.Errors(err) {
		if pos := s.errorPosition(e); pos.IsValid() {
			place = fmt.Sprintf(" (schemas/%s:%d:%d)", pos.Filename(), pos.Line(), pos.Column())
			break
		}
	}
	return finding{typ: TypeInvalid, rule: rule.ID, severity: SeverityError,
		message: ruleFailureMessage + place + ": a fault of Pergola, not of the object; please report it with the object"}
}

func (s *sources) explainSingleError(e errors.Error) (line string, placed bool) {
	format, args := e.Msg()
	words := fmt.Sprintf(format, args...)
	if pos := s.errorPosition(e); pos.IsValid() {
		place := fmt.Sprintf("schemas/%s:%d:%d: ", pos.Filename(), pos.Line(), pos.Column())
		if rule := s.ruleIDAt(pos.Filename(), pos.Line()); rule != "" {
			place += "rule " + rule + ": "
		}
		return place + words, true
	}
	steps := e.Path()
	if len(steps) == 2 && steps[0] == "rules" { // a rule lacks a field
		id := strings.Trim(steps[1], `"`)
		if place := s.rulePosition(id); place != "" {
			return place + ": rule " + id + ": " + words, true
		}
	}
	if len(steps) > 0 {
		words = strings.Join(steps, ".") + ": " + words
	}
	return words, false
}

// errorPosition prefers the position in a rule to that in the library whose constraint the rule
// breaks.
func (s *sources) errorPosition(e errors.Error) token.Pos {
	library := token.NoPos
	for _, pos := range append([]token.Pos{e.Position()}, e.InputPositions()...) {
		switch {
		case !pos.IsValid() || pos.Filename() == "":
		case path.Base(path.Dir(pos.Filename())) != "lib":
			return pos
		case !library.IsValid():
			library = pos
		}
	}
	return library
}

// ruleIDAt returns the id of the rule at a line. It reads the text, because a file with a fault has
// no syntax tree.
func (s *sources) ruleIDAt(name string, line int) string {
	id := ""
	for _, label := range s.ruleStarts(path.Base(path.Dir(name))) {
		if label.file == name && label.line <= line {
			id = label.id
		}
	}
	return id
}

// rulePosition returns the file and line where a rule begins, or "".
func (s *sources) rulePosition(id string) string {
	folder, _, _ := strings.Cut(id, "/")
	for _, label := range s.ruleStarts(folder) {
		if label.id == id {
			return fmt.Sprintf("schemas/%s:%d:1", label.file, label.line)
		}
	}
	return ""
}

// ruleStart is the position where a rule begins.
type ruleStart struct {
	id, file string
	line     int
}

var ruleLabelPattern = regexp.MustCompile(`^(?:rules:)?\s*"([a-z.]+/[a-z0-9-]+)"\s*:`)

func (s *sources) ruleStarts(folder string) []ruleStart {
	var labels []ruleStart
	for _, file := range s.rules[folder] {
		for i, line := range bytes.Split(file.data, []byte("\n")) {
			if found := ruleLabelPattern.FindSubmatch(bytes.TrimSpace(line)); found != nil {
				labels = append(labels, ruleStart{id: string(found[1]), file: file.name, line: i + 1})
			}
		}
	}
	return labels
}

// checkTypes reports violations whose type is not one of the API's, which CUE reports only when
// they occur. Any struct with a type and a message counts, even one that a rule converts later.
func (s *sources) checkTypes(file *ast.File) error {
	var faults []string
	ast.Walk(file, func(node ast.Node) bool {
		body, ok := node.(*ast.StructLit)
		if !ok {
			return true
		}
		fields := map[string]ast.Expr{}
		for _, element := range body.Elts {
			if field, ok := element.(*ast.Field); ok {
				fields[fieldName(field)] = field.Value
			}
		}
		typ := fields["type"]
		if typ == nil || fields["message"] == nil {
			return true
		}
		if words := typeProblem(typ); words != "" {
			pos := typ.Pos()
			place := fmt.Sprintf("schemas/%s:%d:%d: ", pos.Filename(), pos.Line(), pos.Column())
			if rule := s.ruleIDAt(pos.Filename(), pos.Line()); rule != "" {
				place += "rule " + rule + ": "
			}
			faults = append(faults, place+words)
		}
		return true
	}, nil)
	if len(faults) > 0 {
		return stderrors.New(strings.Join(faults, "\n"))
	}
	return nil
}

// typeProblem describes why the type of a violation is wrong, or returns "". The type is a literal
// or a field of another struct.
func typeProblem(typ ast.Expr) string {
	switch typ := typ.(type) {
	case *ast.BasicLit:
		text, err := literal.Unquote(typ.Value)
		if err == nil && slices.Contains(violationTypes[:], ViolationType(text)) {
			return ""
		}
		return fmt.Sprintf("%s is not a type of an error; write one of %s%s", typ.Value, quotedList(typeNames()), suggestionHint(text, typeNames()))
	case *ast.SelectorExpr:
		return ""
	}
	return "a type must be written as text, as in \"Invalid\", or be the field of another struct"
}

func typeNames() []string {
	names := make([]string, len(violationTypes))
	for i, typ := range violationTypes {
		names[i] = string(typ)
	}
	return names
}
