// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/render"
)

// kustomizationFile is the main file of an overlay.
const kustomizationFile = "kustomization.yaml"

// overlayPositions returns the component's overlays that change the field.
func (e *explainer) overlayPositions(p *probe, m objectMatch, list steps) []Position {
	named := strings.Split(m.origin.Overlay, ", ")
	var out []Position
	var all []render.Overlay
	for _, o := range e.renderOptions.Overlays {
		if o.Component == m.bundle.Component {
			all = append(all, o)
		}
	}
	before := p.renderWithOverlays(nil)
	for i, o := range all {
		after := p.renderWithOverlays(all[:i+1])
		if slices.Contains(named, o.Name) && after.valueKey != before.valueKey {
			out = append(out, e.overlayPosition(o, m, list))
		}
		before = after
	}
	return out
}

// addingOverlay returns the overlay that adds the object, if the catalogue does not render it.
// Files of both are below components/; only the catalogue has its own.
func (e *explainer) addingOverlay(m objectMatch) (render.Overlay, bool) {
	if m.origin.Overlay == "" {
		return render.Overlay{}, false
	}
	if _, err := fs.Stat(e.opts.Catalogue, strings.TrimPrefix(m.origin.File, "components/")); err == nil {
		return render.Overlay{}, false
	}
	for _, o := range e.renderOptions.Overlays {
		if o.Component == m.bundle.Component && strings.HasPrefix(m.origin.File, o.Name+"/") {
			return o, true
		}
	}
	return render.Overlay{}, false
}

// overlayPosition returns where an overlay writes a field: the first file by name that has the
// path. Otherwise it is a transformer of the kustomization, a field around it, or the kustomization
// as a whole.
func (e *explainer) overlayPosition(o render.Overlay, m objectMatch, list steps) Position {
	kustomization := path.Join(o.Dir, kustomizationFile)
	at := func(file string, line int, exact bool) Position {
		name := path.Join(o.Name, strings.TrimPrefix(file, o.Dir+"/"))
		return Position{Kind: positionOverlay, File: name, Layer: e.layerOf(o.Name + "/"), Line: line, IsExact: exact, Text: e.lineText(readLines(o.FS, file), line)}
	}
	ref := change.RefOf(m.object)
	var written, around *Position
	_ = fs.WalkDir(o.FS, o.Dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || written != nil || d.IsDir() || path.Ext(name) != ".yaml" && path.Ext(name) != ".yml" {
			return nil
		}
		lines := readLines(o.FS, name)
		line, exact := findInYAML(lines, ref, list)
		if patch := findInPatch(lines, list); patch > 0 {
			line, exact = patch, true
		}
		place := at(name, line, exact)
		switch {
		case exact:
			written = &place
		case line > 0 && around == nil:
			around = &place
		}
		return nil
	})
	if written != nil {
		return *written
	}
	value, _ := list.value(m.object.Object)
	if line, exact := findInTransformer(readLines(o.FS, kustomization), list, value); line > 0 {
		return at(kustomization, line, exact)
	}
	if around != nil {
		return *around
	}
	return at(kustomization, 1, false)
}

// transformersOf returns the fields of a kustomization that can set a field without naming its
// object.
func transformersOf(list steps) []string {
	names := list.keys()
	var out []string
	for _, t := range []struct {
		field        []string
		transformers []string
	}{
		{[]string{"labels"}, []string{"labels", "commonLabels"}},
		{[]string{"matchLabels"}, []string{"labels", "commonLabels"}},
		{[]string{"selector"}, []string{"labels", "commonLabels"}},
		{[]string{"annotations"}, []string{"commonAnnotations"}},
		{[]string{"image"}, []string{"images"}},
		{[]string{"spec", "replicas"}, []string{"replicas"}},
		{[]string{"metadata", "namespace"}, []string{"namespace"}},
		{[]string{"metadata", "name"}, []string{"namePrefix", "nameSuffix"}},
	} {
		for i := range names {
			if len(names)-i >= len(t.field) && slices.Equal(names[i:i+len(t.field)], t.field) {
				out = append(out, t.transformers...)
				break
			}
		}
	}
	return append(out, "replacements")
}

// findInTransformer finds the line of a kustomization that sets a field without naming the object;
// exact: the line has the field's name or value.
func findInTransformer(lines []string, list steps, value any) (line int, exact bool) {
	if len(list) == 0 {
		return 0, false
	}
	last := list[len(list)-1]
	for _, transformer := range transformersOf(list) {
		for i, text := range lines {
			if indentation(text) > 0 || !hasKey(text, transformer) {
				continue
			}
			for j, inner := range lines[i+1:] {
				if !isBlank(inner) && indentation(inner) == 0 {
					break
				}
				if !last.isItem() && hasKey(inner, last.key) || transformer == "images" && isImageLine(inner, fmt.Sprint(value)) {
					return i + 1 + j + 1, true
				}
			}
			return i + 1, false
		}
	}
	return 0, false
}

// isImageLine reports whether a line in the images of a kustomization matches an image.
func isImageLine(line, image string) bool {
	text := strings.TrimPrefix(strings.TrimSpace(line), "- ")
	for _, field := range []string{"newTag", "digest", "newName"} {
		if value, ok := strings.CutPrefix(text, field+":"); ok {
			value = strings.Trim(strings.TrimSpace(value), `"'`)
			if value != "" && (strings.HasSuffix(image, ":"+value) || strings.HasSuffix(image, "@"+value) || strings.HasPrefix(image, value)) {
				return true
			}
		}
	}
	return false
}

// findInPatch finds the JSON patch operation for a field or a field around it.
func findInPatch(lines []string, list steps) int {
	if len(list) == 0 {
		return 0
	}
	pointer := ""
	for _, s := range list {
		if s.isItem() {
			pointer += "/*"
		} else {
			pointer += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(s.key)
		}
	}
	for i, line := range lines {
		text := strings.TrimPrefix(strings.TrimSpace(line), "- ")
		value, ok := strings.CutPrefix(text, "path:")
		if !ok {
			continue
		}
		value = strings.Trim(strings.TrimSpace(value), `"'`)
		if isPointerTo(value, pointer) {
			return i + 1
		}
	}
	return 0
}

// isPointerTo reports whether a pointer leads to a path, whose items are stars, or to a field
// around it.
func isPointerTo(pointer, path string) bool {
	if !strings.HasPrefix(pointer, "/") {
		return false
	}
	have, want := strings.Split(pointer, "/")[1:], strings.Split(path, "/")[1:]
	if len(have) > len(want) {
		return false
	}
	for i := range have {
		if want[i] != "*" && have[i] != want[i] {
			return false
		}
	}
	return true
}
