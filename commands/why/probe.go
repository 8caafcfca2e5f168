// SPDX-License-Identifier: Apache-2.0

package why

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/render"
)

// probe renders the component of an object with other inputs and reads one field.
type probe struct {
	options render.Options
	input   *render.Input
	bundle  string
	ref     change.Ref
	list    steps
}

func newProbe(e *explainer, m objectMatch, list steps) *probe {
	options := e.renderOptions.WithoutChecks()
	options.OnlyComponents = []string{m.bundle.Component}
	return &probe{options: options, input: m.input, bundle: m.bundle.Name, ref: change.RefOf(m.object), list: list}
}

// renderOutcome is the field after a render.
type renderOutcome struct {
	// valueKey is the same for equal outcomes.
	valueKey string
	// isFailed means that it does not render with these inputs.
	isFailed bool
}

const (
	noObject = "no object"
	noField  = "no field"
)

func (p *probe) renderWithOverlays(overlays []render.Overlay) renderOutcome {
	options := p.options
	options.Overlays = overlays
	return p.render(*p.input, options)
}

func (p *probe) renderWith(in render.Input) renderOutcome { return p.render(in, p.options) }

func (p *probe) render(in render.Input, options render.Options) renderOutcome {
	result, err := render.Render(in, options)
	if err != nil {
		return renderOutcome{isFailed: true}
	}
	for _, b := range result.Bundles {
		if b.Name != p.bundle {
			continue
		}
		for _, o := range b.Objects {
			if !p.isSameObject(change.RefOf(o.Unstructured)) {
				continue
			}
			if len(p.list) == 0 {
				return renderOutcome{valueKey: "there"}
			}
			value, ok := p.list.value(o.Object)
			if !ok {
				return renderOutcome{valueKey: noField}
			}
			text, err := json.Marshal(value)
			return renderOutcome{valueKey: "=" + string(text), isFailed: err != nil}
		}
	}
	return renderOutcome{valueKey: noObject}
}

// isSameObject compares names without the hash of the content, which may change.
func (p *probe) isSameObject(ref change.Ref) bool {
	if ref == p.ref {
		return true
	}
	was, hashed := trimHash(p.ref.Name)
	is, _ := trimHash(ref.Name)
	return hashed && was == is && ref.Kind == p.ref.Kind && ref.Namespace == p.ref.Namespace
}

// changeInput returns the input with another value at a path of an object; absent removes it. The
// target version of the components follows from the owner.
func changeInput(in render.Input, object string, at []any, value any) render.Input {
	in.Objects = maps.Clone(in.Objects)
	in.Objects[object] = replaceAt(in.Objects[object], at, value).(map[string]any)
	if path, ok := versionFields[object]; ok && object == in.Owner.Kind {
		if version, ok := valueAt(in.Objects[object], path).(string); ok && version != "" {
			in.TargetVersion = version
		}
	}
	return in
}

// versionFields are the fields with the version of the API server that an owner's components serve.
var versionFields = map[string][]any{
	"garden": {"spec", "virtualCluster", "kubernetes", "version"},
	"shoot":  {"spec", "kubernetes", "version"},
}

type removedValue struct{}

// replaceAt returns a copy with another value at a path; the rest is shared.
func replaceAt(in any, at []any, value any) any {
	if len(at) == 0 {
		return value
	}
	switch step := at[0].(type) {
	case string:
		out := maps.Clone(in.(map[string]any))
		if _, gone := value.(removedValue); gone && len(at) == 1 {
			delete(out, step)
		} else {
			out[step] = replaceAt(out[step], at[1:], value)
		}
		return out
	case int:
		out := slices.Clone(in.([]any))
		if _, gone := value.(removedValue); gone && len(at) == 1 {
			return slices.Delete(out, step, step+1)
		}
		out[step] = replaceAt(out[step], at[1:], value)
		return out
	}
	return in
}

func valueAt(in any, at []any) any {
	for _, step := range at {
		switch s := step.(type) {
		case string:
			m, _ := in.(map[string]any)
			in = m[s]
		case int:
			list, _ := in.([]any)
			if s >= len(list) {
				return nil
			}
			in = list[s]
		}
	}
	return in
}
