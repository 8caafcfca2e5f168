// SPDX-License-Identifier: Apache-2.0

package golden

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"runtime"
	"slices"
	"testing/fstest"

	"golang.org/x/sync/errgroup"

	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/render"
	"github.com/pergola-dev/pergola/schemas"
)

// Run renders all cases of some components ("garden/vpa"; none: all) concurrently, and compares
// them with the records of the catalogue. The report has cases that cannot be rendered; an error
// means that the catalogue cannot be read.
func Run(ctx context.Context, catalogue fs.FS, only []string) (*Report, error) {
	dirs, err := componentsOf(catalogue, only)
	if err != nil {
		return nil, err
	}
	report := &Report{Components: make([]ComponentReport, len(dirs)), Files: map[string][]byte{}}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, dir := range dirs {
		cases, recorded, err := casesOf(catalogue, dir)
		if err != nil {
			return nil, fmt.Errorf("read the cases of %s: %w", dir, err)
		}
		report.Components[i] = ComponentReport{Name: dir, Cases: make([]CaseReport, len(cases)), recorded: recorded}
		for j, name := range cases {
			group.Go(func() error {
				report.Components[i].Cases[j] = runCase(ctx, catalogue, dir, name)
				return ctx.Err()
			})
		}
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	report.compare()
	return report, nil
}

// runCase renders one case.
func runCase(ctx context.Context, catalogue fs.FS, dir, name string) CaseReport {
	out := CaseReport{Name: name}
	c, err := readCase(catalogue, dir, name)
	if err == nil {
		out.Description = c.Description
		out.files, out.origins, err = c.render(ctx, catalogue)
	}
	if err != nil {
		out.Error = err.Error()
	}
	return out
}

// render returns the files to record for a case, and the origins of objects.
func (c Case) render(ctx context.Context, catalogue fs.FS) (files map[string][]byte, origins map[string]string, err error) {
	in, options, err := c.input(ctx, catalogue)
	if err != nil {
		return nil, nil, err
	}
	options.OnlyComponents = []string{c.component}
	result, err := render.Render(in, options)
	if err != nil {
		return nil, nil, err
	}
	return c.record(result)
}

// input makes a landscape from the base and the case, and returns its only owner.
func (c Case) input(ctx context.Context, catalogue fs.FS) (render.Input, render.Options, error) {
	owner := path.Dir(c.component)
	l, err := c.landscape(ctx, catalogue)
	if err != nil {
		return render.Input{}, render.Options{}, err
	}
	options, err := render.LandscapeOptions(catalogue, l)
	if err != nil {
		return render.Input{}, options, err
	}
	inputs, err := render.Owners(l)
	if err != nil {
		return render.Input{}, options, err
	}
	inputs = slices.DeleteFunc(inputs, func(in render.Input) bool { return in.Owner.Kind != owner })
	if len(inputs) != 1 {
		return render.Input{}, options, fmt.Errorf("the case has %d owners of kind %s to render for: want one", len(inputs), owner)
	}
	in := inputs[0]
	in.Facts = c.Facts
	return in, options, nil
}

func (c Case) landscape(ctx context.Context, catalogue fs.FS) (*landscapes.Landscape, error) {
	base, err := readFile(catalogue, path.Join(path.Dir(c.component), casesFolder, c.BaseName+".yaml"))
	if err != nil {
		return nil, err
	}
	spec := maps.Clone(c.Landscape)
	if spec == nil {
		spec = map[string]any{}
	}
	spec["layers"] = []string{"../base"}
	settings, err := json.Marshal(map[string]any{
		"apiVersion": "landscape.pergola.dev/v1alpha1", "kind": "Landscape", "metadata": map[string]any{"name": "case"}, "spec": spec,
	})
	if err != nil {
		return nil, err
	}
	// Despite its package, MapFS is suitable here: the standard library has no other file system in
	// memory.
	files := fstest.MapFS{"base/base.yaml": {Data: base}, "case/landscape.yaml": {Data: settings}}
	for i, d := range c.Declarations {
		text, err := json.Marshal(d)
		if err != nil {
			return nil, fmt.Errorf("declaration %d: %w", i+1, err)
		}
		files[fmt.Sprintf("case/declaration-%d.json", i+1)] = &fstest.MapFile{Data: text}
	}
	l, violations, err := landscapes.LoadFS(ctx, files, "case", landscapes.Options{})
	if err != nil {
		return nil, err
	}
	found, err := l.Validate(ctx, schemas.Options{})
	if err != nil {
		return nil, err
	}
	var problems []error
	for _, v := range append(violations, found...) {
		if v.Severity == schemas.SeverityError {
			problems = append(problems, errors.New(v.String()))
		}
	}
	return l, errors.Join(problems...)
}
