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

// templatePlace is how text/template and Helm name a place: chart/templates/file.yaml:12:3
var templatePlace = regexp.MustCompile(`([\w.-]+(?:/[\w.-]+)+):(\d+)(?::(\d+))?`)

// templateNoise is what they put around it.
var templateNoise = regexp.MustCompile(`^(?:(?:template|(?:parse|execution|values|function) error(?: at)?)[: ]+)?\(?([\w.-]+(?:/[\w.-]+)+:\d+(?::\d+)?)\)?: `)

// templateError puts the place of a failing template first, as a file of the catalogue. Where
// templates include each other, it is the innermost: the last one that Helm names.
func templateError(chartDir, chartName string, err error) error {
	text := err.Error()
	var file string
	var line, column int
	for _, match := range templatePlace.FindAllStringSubmatch(text, -1) {
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
	text = templateNoise.ReplaceAllString(text, "")
	text = strings.ReplaceAll(text, chartName+"/templates/", cataloguePath(path.Join(chartDir, "templates"))+"/")
	return finding{
		// text/template counts the characters before the place.
		Position: schemas.Position{File: file, Line: line, Column: column + 1}, kind: schemas.TypeInvalid,
		message: "helm: " + text,
	}
}

// outputError is about what a template rendered to. Its lines are not those of the template, so the
// line is shown, and found in the template where it stands there as it was rendered.
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
