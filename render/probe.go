// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/pergola-dev/pergola/internal/suggest"
	"github.com/pergola-dev/pergola/schemas"
)

// overlayUsage records, over several owners, which parts of an overlay have an effect.
type overlayUsage struct {
	overlay    Overlay
	applied    bool
	changed    bool
	selections []objectSelection
	matched    []bool
	// names are the names of the existing objects, by kind.
	names map[string][]string
	// descriptions describe an object further, by its kind and name.
	descriptions map[string]string
	// images are the images of the existing containers, without tag and digest.
	images []string
	// warnings are about possibly intended settings.
	warnings findings
	// openReferences are references of the current owner that nothing in the component satisfies.
	openReferences []openReference
}

// warn adds a warning, once for all owners.
func (p *overlayUsage) warn(f finding) {
	if !slices.Contains(p.warnings, f) {
		p.warnings = append(p.warnings, f)
	}
}

func (p *overlayUsage) addOpenReference(r openReference) {
	p.openReferences = append(p.openReferences, r)
}

// record records what the overlay matched and changed.
func (p *overlayUsage) record(memory filesys.FileSystem, k kustomization, selections []objectSelection, after resmap.ResMap, changed bool) error {
	p.applied, p.changed = true, p.changed || changed
	if p.selections == nil {
		p.selections, p.matched, p.names, p.descriptions = selections, make([]bool, len(selections)), map[string][]string{}, map[string]string{}
	}
	if p.isComplete() {
		return nil
	}
	plain := k.Kustomization
	plain.Patches, plain.Replacements, plain.Components, plain.Images, plain.Replicas = nil, nil, nil, nil, nil
	before, err := krustyBuild(memory, k.path, plain)
	if err != nil {
		return fmt.Errorf("overlay %s: %s", p.overlay.Name, redactError(err.Error()))
	}
	for _, r := range before.Resources() {
		p.names[r.GetKind()] = append(p.names[r.GetKind()], r.GetName())
		p.descriptions[r.GetKind()+" "+r.GetName()] = fmt.Sprintf("apiVersion %s in namespace %q", r.GetGvk().ApiVersion(), r.GetNamespace())
		if content, err := r.Map(); err == nil {
			p.images = append(p.images, imagesIn(content)...)
		}
	}
	for i, s := range p.selections {
		p.matched[i] = p.matched[i] || s.matches(before) || s.matches(after)
	}
	return nil
}

// isComplete reports whether all parts have matched and something changed.
func (p *overlayUsage) isComplete() bool {
	return p.applied && p.changed && !slices.Contains(p.matched, false)
}

// findings are the parts without effect for any owner.
func (p *overlayUsage) findings() findings {
	out := slices.Clone(p.warnings)
	for i, s := range p.selections {
		if !p.matched[i] {
			out = append(out, finding{Position: s.at, field: s.field, kind: schemas.TypeInvalid, message: "matches nothing: the component has no " + s.description + p.suggestObjects(s)})
		}
	}
	if len(out) == 0 && p.applied && !p.changed {
		out = append(out, finding{
			Position: schemas.Position{File: p.overlay.Name + "/kustomization.yaml", Line: 1, Column: 1}, kind: schemas.TypeInvalid,
			message: "the overlay changes nothing: the component is the same without it",
		})
	}
	return out
}

// suggestObjects names the objects that were probably meant.
func (p *overlayUsage) suggestObjects(s objectSelection) string {
	names := slices.Compact(slices.Sorted(slices.Values(p.names[s.kind])))
	switch {
	case s.image != "":
		images := slices.Compact(slices.Sorted(slices.Values(p.images)))
		if guess := suggest.Closest(s.image, images); guess != "" {
			return fmt.Sprintf("; did you mean %q?", guess)
		}
		if len(images) == 0 {
			return ""
		}
		return "; it has " + strings.Join(images, ", ")
	case s.kind == "":
		return ""
	}
	if len(names) == 0 {
		return "; its kinds are " + strings.Join(sortedKeys(p.names), ", ")
	}
	name := strings.ReplaceAll(s.name, `\`, "")
	if slices.Contains(names, name) {
		return "; the object with that name has " + p.descriptions[s.kind+" "+name]
	}
	if guess := suggest.Closest(name, names); guess != "" && s.name != "" {
		return fmt.Sprintf("; did you mean %q?", guess)
	}
	if len(names) > 8 {
		names = append(names[:8:8], "…")
	}
	return fmt.Sprintf("; of kind %s it has %s", s.kind, strings.Join(names, ", "))
}

// imageSelections are the images that a kustomization replaces.
func imageSelections(k kustomization) []objectSelection {
	var out []objectSelection
	for i, image := range k.Images {
		field := fmt.Sprintf("images[%d]", i)
		out = append(out, objectSelection{at: k.position(field), field: field, description: fmt.Sprintf("image %q", image.Name), image: image.Name, matches: func(objects resmap.ResMap) bool {
			for _, r := range objects.Resources() {
				content, err := r.Map()
				if err == nil && slices.Contains(imagesIn(content), image.Name) {
					return true
				}
			}
			return false
		}})
	}
	return out
}

// imagesIn are the images of all containers in a value, without tags and digests.
func imagesIn(v any) []string {
	var out []string
	switch x := v.(type) {
	case map[string]any:
		if image, ok := x["image"].(string); ok {
			out = append(out, imageName(image))
		}
		for _, inner := range x {
			out = append(out, imagesIn(inner)...)
		}
	case []any:
		for _, inner := range x {
			out = append(out, imagesIn(inner)...)
		}
	}
	return out
}

func imageName(image string) string {
	name, _, _ := strings.Cut(image, "@")
	if tag := strings.LastIndexByte(name, ':'); tag > strings.LastIndexByte(name, '/') {
		name = name[:tag]
	}
	return name
}
