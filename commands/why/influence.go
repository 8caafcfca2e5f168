// SPDX-License-Identifier: Apache-2.0

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

// declarationPart is a value or subtree of a declaration that may influence the field.
type declarationPart struct {
	object   string
	location []any
	value    any
}

func (p declarationPart) path() string {
	var out fieldpath.Path
	for _, step := range p.location {
		if key, ok := step.(string); ok && strings.ContainsAny(key, "./ []") {
			step = fieldpath.Key(key)
		}
		out = append(out, step)
	}
	return out.String()
}

// children returns the parts of a part, in order.
func (p declarationPart) children() []declarationPart {
	var out []declarationPart
	switch v := p.value.(type) {
	case map[string]any:
		for _, key := range sortedKeys(v) {
			out = append(out, declarationPart{p.object, append(slices.Clone(p.location), key), v[key]})
		}
	case []any:
		for i, item := range v {
			out = append(out, declarationPart{p.object, append(slices.Clone(p.location), i), item})
		}
	}
	return out
}

// effect is the effect of changing a part.
type effect int

const (
	effectNone effect = iota
	effectSome
	// effectRefused means that it renders with no other value.
	effectRefused
)

// addInfluences finds the fields that determine the value by rendering with other values. A subtree
// is first changed as a whole and skipped if neither that nor its removal makes a difference.
func (e *explainer) addInfluences(ctx context.Context, a *Answer, p *probe) error {
	base := p.renderWith(*p.input)
	if base.isFailed {
		a.Notes = append(a.Notes, "its origin is unknown: the component does not render without the others")
		return nil
	}
	left := e.opts.MaxRenders
	var refusals []string
	level := rootParts(p.input)
	for len(level) > 0 {
		if cost := 3 * len(level); cost > left {
			a.Notes = append(a.Notes, fmt.Sprintf("its origin is incomplete: more than %d renders would be needed", e.opts.MaxRenders))
			break
		} else {
			left -= cost
		}
		effects, err := p.testParts(ctx, base, level)
		if err != nil {
			return err
		}
		var next []declarationPart
		for i, one := range level {
			children := one.children()
			switch {
			case effects[i] == effectNone, len(children) == 0 && p.isItemName(one.value):
			case len(children) > 0:
				next = append(next, children...)
			case effects[i] == effectRefused:
				refusals = append(refusals, one.path())
			default:
				a.DerivedFrom = append(a.DerivedFrom, e.influenceSource(p.input, one))
			}
		}
		level = next
	}
	if err := e.addClusterVersion(ctx, a, p, base); err != nil {
		return err
	}
	if len(p.list) > 0 && len(a.DerivedFrom) == 0 {
		a.Notes = append(a.Notes, "no declared field affects it")
	}
	slices.SortStableFunc(a.DerivedFrom, func(x, y SourceField) int { return strings.Compare(x.Object+" "+x.Field, y.Object+" "+y.Field) })
	if len(refusals) > 0 {
		a.Notes = append(a.Notes, fmt.Sprintf("its dependency on %s is unknown: the component renders with no other value there", strings.Join(refusals[:min(5, len(refusals))], ", ")))
	}
	return nil
}

// isItemName reports whether a value only identifies the list item: another name would be another
// item.
func (p *probe) isItemName(value any) bool {
	text, ok := value.(string)
	return ok && slices.ContainsFunc(p.list, func(s step) bool { return s.isItem() && s.name != "" && s.text == text })
}

// rootParts returns the parts of all input objects of an owner.
func rootParts(in *render.Input) []declarationPart {
	var out []declarationPart
	for _, object := range sortedKeys(in.Objects) {
		whole := declarationPart{object: object, value: in.Objects[object]}
		for _, child := range whole.children() {
			switch child.location[0] {
			case "spec", "metadata":
				for _, inner := range child.children() {
					if child.location[0] == "spec" || inner.location[1] == "annotations" || inner.location[1] == "labels" {
						out = append(out, inner)
					}
				}
			}
		}
	}
	return out
}

// maxSingleParts are tried one by one: probably one of them matters, and halving would cost more
// renders.
const maxSingleParts = 8

// testParts returns the effect of each part. Parts without an effect together have none alone, as
// in a subtree. So try changes groups and halves those that have an effect or are refused.
func (p *probe) testParts(ctx context.Context, base renderOutcome, level []declarationPart) ([]effect, error) {
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
			if len(members) <= maxSingleParts {
				single = append(single, members...)
				continue
			}
			for _, other := range []func(any) any{alternativeValue, withoutLastItem, func(any) any { return removedValue{} }} {
				group.Go(func() error {
					if inGroup.Err() != nil || matters[i].Load() {
						return inGroup.Err()
					}
					in := *p.input
					// from the end, because removing an item moves later ones
					for _, member := range slices.Backward(members) {
						in = changeInput(in, level[member].object, level[member].location, other(level[member].value))
					}
					if found := p.renderWith(in); found != base {
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
	parts := make([]declarationPart, len(single))
	for i, index := range single {
		parts[i] = level[index]
	}
	found, err := p.testEachPart(ctx, base, parts)
	for i, index := range single[:len(found)] {
		effects[index] = found[i]
	}
	return effects, err
}

// testEachPart returns the effect of each part alone.
func (p *probe) testEachPart(ctx context.Context, base renderOutcome, level []declarationPart) ([]effect, error) {
	effects := make([]effect, len(level))
	failed, tried := make([]atomic.Int64, len(level)), make([]int, len(level))
	differs := make([]atomic.Bool, len(level))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, one := range level {
		values := alternativeValues(one.value)
		tried[i] = len(values)
		for _, value := range values {
			group.Go(func() error {
				if ctx.Err() != nil || differs[i].Load() {
					return ctx.Err()
				}
				switch found := p.renderWith(changeInput(*p.input, one.object, one.location, value)); {
				case found.isFailed:
					failed[i].Add(1)
				case found.valueKey != base.valueKey:
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
			effects[i] = effectSome
		case refusals == 0, !whole && refusals < tried[i]:
			effects[i] = effectNone
		default:
			effects[i] = effectRefused
		}
	}
	return effects, nil
}

// influenceSource returns a part with an effect and its place in Git.
func (e *explainer) influenceSource(in *render.Input, one declarationPart) SourceField {
	out := SourceField{Object: e.inputName(in, one.object), Field: one.path()}
	d := e.inputDeclaration(in, one.object)
	if d == nil {
		return out
	}
	list, value, err := followPath(d.Object().Object, out.Field)
	if err != nil {
		list, value, err = followPath(in.Objects[one.object], out.Field)
		if err == nil {
			out.Default = defaultReason(in, list)
			if one.object != in.Owner.Kind {
				out.Default = "the default of the API"
			}
			out.Value = redactedValue(d.Object(), list, value)
		}
		return out
	}
	out.Value = redactedValue(d.Object(), list, value)
	place := e.declaredPosition(d, list.declaredPath())
	place.IsExact = true
	out.Position = &place
	return out
}

// addClusterVersion reports whether the Kubernetes version of the components' cluster has an
// effect.
func (e *explainer) addClusterVersion(ctx context.Context, a *Answer, p *probe, base renderOutcome) error {
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
			if found := p.renderWith(in); !found.isFailed && found.valueKey != base.valueKey {
				differs.Store(true)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil || !differs.Load() {
		return err
	}
	source := SourceField{Object: "facts of " + p.input.Owner.String(), Field: "clusters." + role + ".kubernetesVersion", Value: &Value{Value: fact.KubernetesVersion}}
	if !recorded {
		source.Default = "assumed, because the landscape records none (spec.facts)"
	} else if e.landscape.Config.Spec.Facts != "" {
		source.Position = &Position{Kind: positionFacts, File: e.landscape.Config.Spec.Facts}
	}
	a.DerivedFrom = append(a.DerivedFrom, source)
	return nil
}
