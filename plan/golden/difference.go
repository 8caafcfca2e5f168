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

// Kinds of differences.
const (
	Added   = "added"
	Changed = "changed"
	Removed = "removed"
)

// Difference between a record and a render, about one object or what a file says as a whole.
type Difference struct {
	File string `json:"file"`
	// Line of the record where the difference begins; 0 if it is not in the record.
	Line   int    `json:"line,omitempty"`
	Object string `json:"object"`
	Action string `json:"action"`
	// Fields that differ in their meaning; none where only the order or the form is another one.
	Fields []change.Field `json:"fields,omitempty"`
	// Diff is the YAML around the fields, as a unified diff.
	Diff string `json:"diff,omitempty"`
	// Origin is the place that the object is rendered from.
	Origin string `json:"origin,omitempty"`
}

// document of a recorded file.
type document struct {
	object map[string]any
	text   string
	// line is the first one of the document.
	line int
}

// name of the object, or "" for what belongs to the file as a whole.
func (d document) name() string {
	if d.object["apiVersion"] == nil || d.object["kind"] == nil {
		return ""
	}
	return change.RefOf(&unstructured.Unstructured{Object: d.object}).String()
}

// id tells objects of a file apart, of which some can have one name in several groups.
func (d document) id() string {
	if name := d.name(); name != "" {
		return fmt.Sprint(d.object["apiVersion"]) + " " + name
	}
	return ""
}

func documents(data []byte) []document {
	var out []document
	line := 1
	for _, text := range strings.SplitAfter(string(data), "\n---\n") {
		content := strings.TrimSuffix(text, "---\n")
		d := document{text: content, line: line}
		// one that is no YAML has no fields, and differs as text
		_ = yaml.Unmarshal([]byte(content), &d.object)
		out = append(out, d)
		line += strings.Count(text, "\n")
	}
	return out
}

// Compare tells how a rendered file differs from the recorded one; nil is a file that there is not.
// Neither changes.
func Compare(file string, recorded, rendered []byte) []Difference {
	if bytes.Equal(recorded, rendered) && (recorded == nil) == (rendered == nil) {
		return nil
	}
	old, new := map[string]document{}, map[string]document{}
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
				d.Diff = unified(o.text, n.text)
			}
		}
		out = append(out, d)
	}
	if len(out) == 0 { // the order of the documents
		out = append(out, Difference{File: file, Line: 1 + commonLines(string(recorded), string(rendered)), Object: "order of the objects", Action: Changed, Diff: unified(string(recorded), string(rendered))})
	}
	return out
}

// commonLines counts the lines that two texts begin with alike.
func commonLines(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return strings.Count(a[:n], "\n")
}

const (
	// maxDiffed is how long a text may be to be compared line by line, in bytes: the work grows
	// with its square.
	maxDiffed = 256 << 10
	// maxDiff is how many lines of a difference are shown.
	maxDiff = 60
)

// unified is the difference as text, without names.
func unified(old, new string) string {
	if len(old)+len(new) > maxDiffed {
		return ""
	}
	out := fmt.Sprint(gotextdiff.ToUnified("recorded", "rendered", old, myers.ComputeEdits("", old, new)))
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	lines = lines[min(2, len(lines)):]
	if len(lines) > maxDiff {
		lines = append(lines[:maxDiff], fmt.Sprintf("… %d more lines", len(lines)-maxDiff))
	}
	return strings.Join(lines, "\n")
}
