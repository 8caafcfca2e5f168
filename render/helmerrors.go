// SPDX-License-Identifier: Apache-2.0

package render

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/pergola-dev/pergola/schemas"
)

// templatePositionPattern is a position as text/template and Helm write it:
// chart/templates/file.yaml:12:3
var templatePositionPattern = regexp.MustCompile(`([\w.-]+(?:/[\w.-]+)+):(\d+)(?::(\d+))?`)

// templateErrorPrefixPattern is the text that they write around it.
var templateErrorPrefixPattern = regexp.MustCompile(`^(?:(?:template|(?:parse|execution|values|function) error(?: at)?)[: ]+)?\(?([\w.-]+(?:/[\w.-]+)+:\d+(?::\d+)?)\)?: `)

// templateError begins with the position of a failing template, as a file of the catalogue. For
// nested templates this is the innermost one, which Helm names last.
func templateError(chartDir, chartName string, err error) error {
	text := err.Error()
	var file string
	var line, column int
	for _, match := range templatePositionPattern.FindAllStringSubmatch(text, -1) {
		name, inChart := strings.CutPrefix(match[1], chartName+"/")
		if !inChart {
			continue
		}
		file = cataloguePath(path.Join(chartDir, name))
		line, _ = strconv.Atoi(match[2])
		column, _ = strconv.Atoi(match[3])
	}
	if file == "" {
		return fmt.Errorf("helm: render chart %s: %w", cataloguePath(chartDir), err)
	}
	text = templateErrorPrefixPattern.ReplaceAllString(text, "")
	text = strings.ReplaceAll(text, chartName+"/templates/", cataloguePath(path.Join(chartDir, "templates"))+"/")
	return finding{
		// text/template columns start at 0.
		Position: schemas.Position{File: file, Line: line, Column: column + 1}, kind: schemas.TypeInvalid,
		message: "helm: " + text,
	}
}

// outputError is about the output of a template. Lines of output and template differ, so the
// message quotes the line. If exactly one line of the template is identical, its position is used.
func outputError(catalogue fs.FS, template, rendered string, err error) error {
	var f finding
	if !errors.As(err, &f) {
		return fmt.Errorf("helm: output of %w", err)
	}
	lines := strings.Split(rendered, "\n")
	if f.Line < 1 || f.Line > len(lines) {
		return fmt.Errorf("helm: output of %w", err)
	}
	wrong := lines[f.Line-1]
	f.message = fmt.Sprintf("helm: line %d of the output, %q: %s", f.Line, strings.TrimSpace(wrong), f.message)
	f.Line, f.Column = 1, 1
	source, err := fs.ReadFile(catalogue, template)
	if err != nil {
		return f
	}
	found := 0
	for i, text := range strings.Split(string(source), "\n") {
		if text == wrong && strings.TrimSpace(text) != "" {
			found++
			f.Line, f.Column = i+1, indentation(text)+1
		}
	}
	if found != 1 {
		f.Line, f.Column = 1, 1
	}
	return f
}
