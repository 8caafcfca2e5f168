package why

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/pergola-dev/pergola/render"
	"github.com/pergola-dev/pergola/schemas/fieldpath"
)

// part is a value or subtree of a declaration that may influence the field.
type part struct {
	object string
	at     []any
	value  any
}

func (p part) path() string {
	var out fieldpath.Path
	for _, step := range p.at {
		if key, ok := step.(string); ok && strings.ContainsAny(key, "./ []") {
			step = fieldpath.Key(key)
		}
		out = append(out, step)
	}
	return out.String()
}

// children returns the parts of a part, in order.
func (p part) children() []part {
	var out []part
	switch v := p.value.(type) {
	case map[string]any:
		for _, key := range sortedKeys(v) {
			out = append(out, part{p.object, append(slices.Clone(p.at), key), v[key]})
		}
	case []any:
		for i, item := range v {
			out = append(out, part{p.object, append(slices.Clone(p.at), i), item})
		}
	}
	return out
}

// effect of changing a part.
type effect int

const (
	none effect = iota
	some
	// refused: it renders with no other value.
	refused
)

// influences finds the fields that determine the value by rendering with other values. A subtree is
// first changed as a whole and skipped if neither that nor its removal makes a difference.
func (e *explainer) influences(ctx context.Context, a *Answer, p *probe) error {
	base := p.with(*p.input)
	if base.failed {
		a.Notes = append(a.Notes, "what it follows from is not known: the component does not render by itself")
		return nil
	}
	left := e.opts.Renders
	var refusals []string
	level := roots(p.input)
	for len(level) > 0 {
		if cost := 3 * len(level); cost > left {
			a.Notes = append(a.Notes, fmt.Sprintf("what it follows from is not complete: more than %d renders would be needed", e.opts.Renders))
			break
		} else {
			left -= cost
		}
		effects, err := p.try(ctx, base, level)
		if err != nil {
			return err
		}
		var next []part
		for i, one := range level {
			children := one.children()
			switch {
			case effects[i] == none, len(children) == 0 && p.named(one.value):
			case len(children) > 0:
				next = append(next, children...)
			case effects[i] == refused:
				refusals = append(refusals, one.path())
			default:
				a.From = append(a.From, e.source(p.input, one))
			}
		}
		level = next
	}
	if err := e.clusterVersion(ctx, a, p, base); err != nil {
		return err
	}
	if len(p.list) > 0 && len(a.From) == 0 {
		a.Notes = append(a.Notes, "no field that the declarations have makes a difference to it")
	}
	slices.SortStableFunc(a.From, func(x, y Source) int { return strings.Compare(x.Object+" "+x.Field, y.Object+" "+y.Field) })
	if len(refusals) > 0 {
		a.Notes = append(a.Notes, fmt.Sprintf("not known is whether it follows from %s: with no other value there does the component render", strings.Join(refusals[:min(5, len(refusals))], ", ")))
	}
	return nil
}

// named reports whether a value only identifies the list item in question: another name would be
// another item.
func (p *probe) named(value any) bool {
	text, ok := value.(string)
	return ok && slices.ContainsFunc(p.list, func(s step) bool { return s.isItem() && s.name != "" && s.text == text })
}

// roots returns the parts of all input objects of an owner.
func roots(in *render.Input) []part {
	var out []part
	for _, object := range sortedKeys(in.Objects) {
		whole := part{object: object, value: in.Objects[object]}
		for _, child := range whole.children() {
			switch child.at[0] {
			case "spec", "metadata":
				for _, inner := range child.children() {
					if child.at[0] == "spec" || inner.at[1] == "annotations" || inner.at[1] == "labels" {
						out = append(out, inner)
					}
				}
			}
		}
	}
	return out
}

// fewParts are tried one by one: probably one of them matters, and halving would cost more renders.
const fewParts = 8

// try returns the effect of each part. Parts without an effect together have none alone, as in a
// subtree. So try changes groups and halves those that have an effect or are refused.
func (p *probe) try(ctx context.Context, base outcome, level []part) ([]effect, error) {
	effects := make([]effect, len(level))
	all := make([]int, len(level))
	for i := range all {
		all[i] = i
	}
	var single []int
	for groups := [][]int{all}; len(groups) > 0; {
		matters := make([]atomic.Bool, len(groups))
		group, inGroup := errgroup.WithContext(ctx)
		group.SetLimit(runtime.GOMAXPROCS(0))
		for i, members := range groups {
			if len(members) <= fewParts {
				single = append(single, members...)
				continue
			}
			for _, other := range []func(any) any{another, shortened, func(any) any { return absent{} }} {
				group.Go(func() error {
					if inGroup.Err() != nil || matters[i].Load() {
						return inGroup.Err()
					}
					in := *p.input
					// from the end, because removing an item moves later ones
					for _, member := range slices.Backward(members) {
						in = changed(in, level[member].object, level[member].at, other(level[member].value))
					}
					if found := p.with(in); found != base {
						matters[i].Store(true)
					}
					return nil
				})
			}
		}
		if err := group.Wait(); err != nil {
			return nil, err
		}
		var next [][]int
		for i, members := range groups {
			if matters[i].Load() {
				next = append(next, members[:len(members)/2], members[len(members)/2:])
			}
		}
		groups = next
	}
	parts := make([]part, len(single))
	for i, index := range single {
		parts[i] = level[index]
	}
	found, err := p.tryEach(ctx, base, parts)
	for i, index := range single[:len(found)] {
		effects[index] = found[i]
	}
	return effects, err
}

// tryEach returns the effect of each part alone.
func (p *probe) tryEach(ctx context.Context, base outcome, level []part) ([]effect, error) {
	effects := make([]effect, len(level))
	failed, tried := make([]atomic.Int64, len(level)), make([]int, len(level))
	differs := make([]atomic.Bool, len(level))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, one := range level {
		values := others(one.value)
		tried[i] = len(values)
		for _, value := range values {
			group.Go(func() error {
				if ctx.Err() != nil || differs[i].Load() {
					return ctx.Err()
				}
				switch found := p.with(changed(*p.input, one.object, one.at, value)); {
				case found.failed:
					failed[i].Add(1)
				case found.key != base.key:
					differs[i].Store(true)
				}
				return nil
			})
		}
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for i, one := range level {
		// A subtree is skipped only if nothing was refused: otherwise its parts can still have an
		// effect.
		whole, refusals := len(one.children()) > 0, int(failed[i].Load())
		switch {
		case differs[i].Load():
			effects[i] = some
		case refusals == 0, !whole && refusals < tried[i]:
			effects[i] = none
		default:
			effects[i] = refused
		}
	}
	return effects, nil
}

// source returns a part with an effect and its place in Git.
func (e *explainer) source(in *render.Input, one part) Source {
	out := Source{Object: e.nameOf(in, one.object), Field: one.path()}
	d := e.declarationOf(in, one.object)
	if d == nil {
		return out
	}
	list, value, err := locate(d.Object().Object, out.Field)
	if err != nil {
		list, value, err = locate(in.Objects[one.object], out.Field)
		if err == nil {
			out.Default = reasonOf(in, list)
			if one.object != in.Owner.Kind {
				out.Default = "the default of the API"
			}
			out.Value = shownValue(d.Object(), list, value)
		}
		return out
	}
	out.Value = shownValue(d.Object(), list, value)
	place := e.place(d, list.declared())
	place.Exact = true
	out.Place = &place
	return out
}

// clusterVersion reports whether the Kubernetes version of the components' cluster has an effect.
func (e *explainer) clusterVersion(ctx context.Context, a *Answer, p *probe, base outcome) error {
	role := render.ClusterSeed
	if p.input.Owner.Kind == "garden" {
		role = render.ClusterRuntime
	}
	fact, recorded := p.input.Facts.Clusters[role]
	if fact.KubernetesVersion == "" {
		fact.KubernetesVersion = render.DefaultKubernetesVersion
	}
	var differs atomic.Bool
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, other := range []string{"1.31.0", "1.33.0", "1.35.0", "1.36.1"} {
		group.Go(func() error {
			if ctx.Err() != nil || differs.Load() || other == fact.KubernetesVersion {
				return ctx.Err()
			}
			in := *p.input
			in.Facts.Clusters = map[string]render.ClusterFact{role: {KubernetesVersion: other, Identity: fact.Identity}}
			if found := p.with(in); !found.failed && found.key != base.key {
				differs.Store(true)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil || !differs.Load() {
		return err
	}
	source := Source{Object: "facts of " + p.input.Owner.String(), Field: "clusters." + role + ".kubernetesVersion", Value: &Value{Value: fact.KubernetesVersion}}
	if !recorded {
		source.Default = "assumed, since the landscape records no other (spec.facts)"
	} else if e.landscape.Config.Spec.Facts != "" {
		source.Place = &Place{What: whatFacts, File: e.landscape.Config.Spec.Facts}
	}
	a.From = append(a.From, source)
	return nil
}
