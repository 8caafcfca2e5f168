// SPDX-License-Identifier: Apache-2.0

package golden

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hexops/gotextdiff"
	"github.com/hexops/gotextdiff/myers"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/change/redact"
)

// Actions of a Difference.
const (
	Added   = "added"
	Changed = "changed"
	Removed = "removed"
)

// Difference between a record and a render, about one object or the head of a file.
type Difference struct {
	File string `json:"file"`
	// Line is the first different line of the record; it is 0 if the record does not have it.
	Line   int    `json:"line,omitempty"`
	Object string `json:"object"`
	Action string `json:"action"`
	// Fields are the fields with a different meaning; it is empty if only order or format differ.
	Fields []change.Field `json:"fields,omitempty"`
	// Diff is the YAML around the fields, as a unified diff.
	Diff string `json:"diff,omitempty"`
	// Origin is the source of the rendered object.
	Origin string `json:"origin,omitempty"`
}

// recordedDocument is a document of a recorded file.
type recordedDocument struct {
	object map[string]any
	text   string
	// line is the first line of the document.
	line int
}

// name of the object, or "" for the head of the file.
func (d recordedDocument) name() string {
	if d.object["apiVersion"] == nil || d.object["kind"] == nil {
		return ""
	}
	return change.RefOf(&unstructured.Unstructured{Object: d.object}).String()
}

// id identifies an object in a file, since objects of several groups may share a name.
func (d recordedDocument) id() string {
	if name := d.name(); name != "" {
		return fmt.Sprint(d.object["apiVersion"]) + " " + name
	}
	return ""
}

func documents(data []byte) []recordedDocument {
	var out []recordedDocument
	line := 1
	for _, text := range strings.SplitAfter(string(data), "\n---\n") {
		content := strings.TrimSuffix(text, "---\n")
		d := recordedDocument{text: content, line: line}
		// invalid YAML has no fields, and differs as text
		_ = yaml.Unmarshal([]byte(content), &d.object)
		out = append(out, d)
		line += strings.Count(text, "\n")
	}
	return out
}

// Compare returns the differences between a rendered file and the recorded one; nil is a missing
// file. It changes neither.
func Compare(file string, recorded, rendered []byte) []Difference {
	if bytes.Equal(recorded, rendered) && (recorded == nil) == (rendered == nil) {
		return nil
	}
	old, new := map[string]recordedDocument{}, map[string]recordedDocument{}
	if recorded != nil {
		for _, d := range documents(recorded) {
			old[d.id()] = d
		}
	}
	if rendered != nil {
		for _, d := range documents(rendered) {
			new[d.id()] = d
		}
	}
	all := maps.Clone(old)
	maps.Copy(all, new)
	var out []Difference
	for _, id := range slices.Sorted(maps.Keys(all)) {
		o, was := old[id]
		n, is := new[id]
		d := Difference{File: file, Object: all[id].name()}
		if d.Object == "" {
			d.Object = strings.TrimSuffix(file[strings.LastIndex(file, "/")+1:], ".yaml")
		}
		switch {
		case !was:
			d.Action = Added
		case !is:
			d.Action, d.Line = Removed, o.line
		case o.text == n.text:
			continue
		default:
			d.Action = Changed
			d.Fields = redact.Compare(o.object, n.object)
			d.Line = o.line + commonLines(o.text, n.text)
			if !slices.ContainsFunc(d.Fields, func(f change.Field) bool { return f.Hidden }) {
				d.Diff = lineDiff(o.text, n.text)
			}
		}
		out = append(out, d)
	}
	if len(out) == 0 { // only the order of the documents differs
		out = append(out, Difference{File: file, Line: 1 + commonLines(string(recorded), string(rendered)), Object: "order of the objects", Action: Changed, Diff: lineDiff(string(recorded), string(rendered))})
	}
	return out
}

// commonLines counts the common first lines of two texts.
func commonLines(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return strings.Count(a[:n], "\n")
}

const (
	// maxDiffBytes is the largest text to compare by line, in bytes: the work is quadratic.
	maxDiffBytes = 256 << 10
	// maxDiffLines is the largest number of lines to show.
	maxDiffLines = 60
)

// lineDiff returns a unified diff without file names.
func lineDiff(old, new string) string {
	if len(old)+len(new) > maxDiffBytes {
		return ""
	}
	out := fmt.Sprint(gotextdiff.ToUnified("recorded", "rendered", old, myers.ComputeEdits("", old, new)))
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	lines = lines[min(2, len(lines)):]
	if len(lines) > maxDiffLines {
		lines = append(lines[:maxDiffLines], fmt.Sprintf("… %d more lines", len(lines)-maxDiffLines))
	}
	return strings.Join(lines, "\n")
}
