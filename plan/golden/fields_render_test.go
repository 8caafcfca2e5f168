// SPDX-License-Identifier: Apache-2.0

package golden

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/render"
)

// changesOf returns for each case the names of changed objects. Cases without an expected change
// share one declaration, unless they set the same fields. If that declaration changes an object,
// each case is rendered alone.
func changesOf(ctx context.Context, cases []fieldCase) (changes [][]string, problems []error) {
	changes, problems = make([][]string, len(cases)), make([]error, len(cases))
	var alone []int
	var shared [][]int
	for i, c := range cases {
		if c.Unread == "" || len(c.Changes) > 0 || os.Getenv("PERGOLA_FIELDS_ALONE") != "" {
			alone = append(alone, i)
			continue
		}
		at := slices.IndexFunc(shared, func(group []int) bool {
			return !slices.ContainsFunc(group, func(other int) bool { return !cases[other].canShareRender(c) })
		})
		if at < 0 {
			shared, at = append(shared, nil), len(shared)
		}
		shared[at] = append(shared[at], i)
	}
	f := fieldTest{rendered: map[string]*renderedDeclaration{}}
	asked := make([]fieldCase, 0, len(alone)+len(shared))
	for _, i := range alone {
		asked = append(asked, cases[i])
	}
	for _, group := range shared {
		together := fieldCase{GardenAPI: cases[group[0]].GardenAPI, With: cases[group[0]].With, Set: map[string]any{}}
		for _, i := range group {
			maps.Copy(together.Set, cases[i].otherFields())
		}
		asked = append(asked, together)
	}
	f.prepare(ctx, asked)
	for n, i := range alone {
		changes[i], problems[i] = f.changes(asked[n])
	}
	var again []int
	for n, group := range shared {
		found, err := f.changes(asked[len(alone)+n])
		for _, i := range group {
			changes[i] = found
		}
		if err != nil || len(found) > 0 {
			again = append(again, group...)
			problems[group[0]] = errors.Join(err, fmt.Errorf("together with others that should change nothing it changes %s", strings.Join(found, ", ")))
		}
	}
	if len(again) > 0 {
		asked = asked[:0]
		for _, i := range again {
			asked = append(asked, cases[i])
		}
		f.prepare(ctx, asked)
		blamed := false
		for n, i := range again {
			found, err := f.changes(asked[n])
			changes[i] = found
			if err != nil || len(found) > 0 {
				problems[i], blamed = err, true
			}
		}
		for _, i := range again {
			if blamed && len(changes[i]) == 0 {
				problems[i] = nil // another case caused it
			}
		}
	}
	return changes, problems
}

// otherFields returns the fields that the other value sets.
func (c fieldCase) otherFields() map[string]any {
	if c.Set != nil {
		return c.Set
	}
	return map[string]any{c.Field: c.Value}
}

// canShareRender reports whether two cases have the same initial declaration and set independent
// fields.
func (c fieldCase) canShareRender(other fieldCase) bool {
	if c.GardenAPI != other.GardenAPI || contentKey(c.With) != contentKey(other.With) {
		return false
	}
	for one := range c.otherFields() {
		for two := range other.otherFields() {
			if strings.HasPrefix(one+".", two+".") || strings.HasPrefix(two+".", one+".") {
				return false
			}
		}
	}
	return true
}

// contentKey is equal for equal content.
func contentKey(content any) string {
	text, err := json.Marshal(content)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// fieldTest renders each declaration once.
type fieldTest struct {
	rendered map[string]*renderedDeclaration
}

type renderedDeclaration struct {
	declared Case
	input    render.Input
	options  render.Options
	objects  map[string]string
	err      error
}

// changes returns the names of changed objects from prepared renders.
func (f fieldTest) changes(c fieldCase) ([]string, error) {
	before, after := f.rendered[declaredBy(c.GardenAPI, c.With).key()], f.rendered[declaredBy(c.GardenAPI, c.With, c.otherFields()).key()]
	if before.err != nil {
		return nil, fmt.Errorf("without: %w", before.err)
	}
	if after.err != nil {
		return nil, fmt.Errorf("with: %w", after.err)
	}
	out := []string{}
	for name, text := range before.objects {
		if after.objects[name] != text {
			out = append(out, name)
		}
	}
	for name := range after.objects {
		if _, has := before.objects[name]; !has {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out, nil
}

// batchSize is the number of declarations to render at once. It is small enough for one evaluation
// of a component.
const batchSize = 6

// prepare renders missing declarations of the cases.
func (f fieldTest) prepare(ctx context.Context, cases []fieldCase) {
	var open []*renderedDeclaration
	for _, c := range cases {
		for _, declared := range []Case{declaredBy(c.GardenAPI, c.With), declaredBy(c.GardenAPI, c.With, c.otherFields())} {
			if key := declared.key(); f.rendered[key] == nil {
				f.rendered[key] = &renderedDeclaration{declared: declared}
				open = append(open, f.rendered[key])
			}
		}
	}
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, r := range open {
		group.Go(func() error {
			r.input, r.options, r.err = r.declared.input(ctx, components.FS)
			return nil
		})
	}
	_ = group.Wait()
	open = slices.DeleteFunc(open, func(r *renderedDeclaration) bool { return r.err != nil })
	for some := range slices.Chunk(open, batchSize) {
		inputs := make([]render.Input, len(some))
		for i, r := range some {
			inputs[i] = r.input
		}
		results, errs := render.RenderEach(inputs, some[0].options) // the landscape is the same
		for i, r := range some {
			if r.err = errs[i]; r.err == nil {
				r.objects, r.err = objectsOf(results[i])
			}
			r.input = render.Input{}
		}
	}
}

func nestedMap(path []string, value any) map[string]any {
	if len(path) == 1 {
		return map[string]any{path[0]: value}
	}
	return map[string]any{path[0]: nestedMap(path[1:], value)}
}

// declaredBy returns the Garden with some fields merged onto it, in the given order.
func declaredBy(gardenAPI string, over ...map[string]any) Case {
	c := Case{BaseName: "default", component: "garden/none", name: "field", Landscape: map[string]any{"external": externals}}
	if gardenAPI != "" {
		c.Landscape["gardenAPI"] = gardenAPI
	}
	declaration := map[string]any{"apiVersion": "operator.gardener.cloud/v1alpha1", "kind": "Garden", "metadata": map[string]any{"name": "local"}}
	for _, fields := range over {
		for _, path := range slices.Sorted(maps.Keys(fields)) {
			declaration = mergeMaps(declaration, nestedMap(strings.Split(path, "."), fields[path]))
		}
	}
	c.Declarations = []map[string]any{declaration, exampleExtension}
	return c
}

// key is equal for equal declarations.
func (c Case) key() string { return contentKey([]any{c.Landscape, c.Declarations}) }

// hashInName matches a content hash, which is redundant: the content is compared anyway.
var hashInName = regexp.MustCompile(`-[0-9a-f]{8}$`)

// objectsOf returns digests of objects and of requests to the secrets manager, by name.
func objectsOf(result render.Result) (map[string]string, error) {
	requests, err := result.Secrets()
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for name, request := range requests {
		out["secret "+name] = string(request)
	}
	for _, b := range result.Bundles {
		for _, o := range b.Objects {
			ref := change.RefOf(o.Unstructured)
			name := hashInName.ReplaceAllString(ref.Name, "-HASH")
			if ref.Namespace != "" {
				name = ref.Namespace + "/" + name
			}
			text, err := json.Marshal(o.Object)
			if err != nil {
				return nil, err
			}
			out[b.Cluster+" "+ref.Kind+" "+name] += fmt.Sprintf("%x\n", sha256.Sum256(text))
		}
	}
	return out, nil
}
