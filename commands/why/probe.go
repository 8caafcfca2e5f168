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

func newProbe(e *explainer, m match, list steps) *probe {
	options := e.render.WithoutChecks()
	options.Only = []string{m.bundle.Component}
	return &probe{options: options, input: m.input, bundle: m.bundle.Name, ref: change.RefOf(m.object), list: list}
}

// outcome is the field after a render.
type outcome struct {
	// key is the same for equal outcomes.
	key string
	// failed: it does not render with these inputs.
	failed bool
}

const (
	noObject = "no object"
	noField  = "no field"
)

func (p *probe) withOverlays(overlays []render.Overlay) outcome {
	options := p.options
	options.Overlays = overlays
	return p.render(*p.input, options)
}

func (p *probe) with(in render.Input) outcome { return p.render(in, p.options) }

func (p *probe) render(in render.Input, options render.Options) outcome {
	result, err := render.Render(in, options)
	if err != nil {
		return outcome{failed: true}
	}
	for _, b := range result.Bundles {
		if b.Name != p.bundle {
			continue
		}
		for _, o := range b.Objects {
			if !p.same(change.RefOf(o.Unstructured)) {
				continue
			}
			if len(p.list) == 0 {
				return outcome{key: "there"}
			}
			value, ok := p.list.value(o.Object)
			if !ok {
				return outcome{key: noField}
			}
			text, err := json.Marshal(value)
			return outcome{key: "=" + string(text), failed: err != nil}
		}
	}
	return outcome{key: noObject}
}

// same compares names without the hash of the content, which may change.
func (p *probe) same(ref change.Ref) bool {
	if ref == p.ref {
		return true
	}
	was, hashed := unhashed(p.ref.Name)
	is, _ := unhashed(ref.Name)
	return hashed && was == is && ref.Kind == p.ref.Kind && ref.Namespace == p.ref.Namespace
}

// changed returns the input with another value at a path of an object; absent removes it. The
// target version of the components follows from the owner.
func changed(in render.Input, object string, at []any, value any) render.Input {
	in.Objects = maps.Clone(in.Objects)
	in.Objects[object] = put(in.Objects[object], at, value).(map[string]any)
	if path, ok := versionFields[object]; ok && object == in.Owner.Kind {
		if version, ok := lookup(in.Objects[object], path).(string); ok && version != "" {
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

type absent struct{}

// put returns a copy with another value at a path; the rest is shared.
func put(in any, at []any, value any) any {
	if len(at) == 0 {
		return value
	}
	switch step := at[0].(type) {
	case string:
		out := maps.Clone(in.(map[string]any))
		if _, gone := value.(absent); gone && len(at) == 1 {
			delete(out, step)
		} else {
			out[step] = put(out[step], at[1:], value)
		}
		return out
	case int:
		out := slices.Clone(in.([]any))
		if _, gone := value.(absent); gone && len(at) == 1 {
			return slices.Delete(out, step, step+1)
		}
		out[step] = put(out[step], at[1:], value)
		return out
	}
	return in
}

func lookup(in any, at []any) any {
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
