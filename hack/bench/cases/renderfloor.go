// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/cuecontext"
	"cuelang.org/go/cue/load"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/render"
)

// floorRenderer does the indispensable work of rendering, with the libraries alone. It evaluates
// the components once (their secrets are known before), runs Helm and krusty, and drops the
// results. It has no overlays, no names, no digests.
type floorRenderer struct {
	// requestedSecrets are the secrets that components ask for, by owner and component.
	requestedSecrets map[string][]string
	charts           []chartInput
	kustomizations   []string
	objects          int
}

type chartInput struct {
	dir, release, namespace string
	values                  map[string]any
}

func renderFloor(ctx context.Context, a arguments) (sample, error) {
	l, _, err := landscapes.Load(ctx, a.dir, landscapes.Options{})
	if err != nil {
		return sample{}, err
	}
	owners, err := render.Owners(l)
	if err != nil {
		return sample{}, err
	}
	if a.warm {
		if _, err := measureFloor(owners); err != nil {
			return sample{}, err
		}
	}
	return measureFloor(owners)
}

func measureFloor(owners []render.Input) (sample, error) {
	f, parts := &floorRenderer{requestedSecrets: map[string][]string{}}, map[string]float64{}
	if err := eachComponent(owners, func(owner, dir string, built, input cue.Value) error {
		asked, err := built.Unify(input).LookupPath(cue.ParsePath("component.secrets")).Fields()
		if err != nil {
			return nil // the component is not enabled
		}
		for asked.Next() {
			f.requestedSecrets[owner+dir] = append(f.requestedSecrets[owner+dir], asked.Selector().Unquoted())
		}
		return nil
	}); err != nil {
		return sample{}, err
	}
	all, err := measureTime(func() error {
		for _, step := range []struct {
			name string
			do   func() error
		}{{"CUE", func() error { return f.evaluate(owners) }}, {"Helm", f.runHelm}, {"krusty", f.runKrusty}} {
			took, err := measureTime(step.do)
			if err != nil {
				return fmt.Errorf("%s: %w", step.name, err)
			}
			parts[step.name] = took.Seconds
		}
		return nil
	})
	if err == nil && (f.objects == 0 || len(f.charts) == 0 || len(f.kustomizations) == 0) {
		err = errors.New("the floor found no work: has the form of components changed?")
	}
	all.Parts = parts
	return all, err
}

// evaluate evaluates all components of all owners.
func (f *floorRenderer) evaluate(owners []render.Input) error {
	return eachComponent(owners, func(owner, dir string, built, input cue.Value) error {
		secrets := map[string]render.SecretFact{}
		for _, name := range f.requestedSecrets[owner+dir] {
			secrets[name] = render.SecretFact{Name: name, Checksum: "c", Bundle: name + "-bundle", CABundle: "Y2E="}
		}
		return f.evaluateComponent(built.Unify(input.FillPath(cue.ParsePath("facts.secrets"), secrets)), dir)
	})
}

// eachComponent visits all components of all owners with their inputs, in one CUE context.
func eachComponent(owners []render.Input, visit func(owner, dir string, built, input cue.Value) error) error {
	ctx := cuecontext.New()
	for _, in := range owners {
		given, err := render.CommonInput(in, render.Options{Catalogue: components.FS})
		if err != nil {
			return err
		}
		dirs, err := fs.Glob(components.FS, in.Owner.Kind+"/*/component.cue")
		if err != nil {
			return err
		}
		var patterns []string
		for _, file := range dirs {
			patterns = append(patterns, "./"+path.Dir(file)+":component")
		}
		input := ctx.Encode(given, cue.NilIsAny(true))
		for i, instance := range load.Instances(patterns, &load.Config{FS: components.FS, Dir: "/"}) {
			if err := visit(in.Owner.String(), path.Dir(dirs[i]), ctx.BuildInstance(instance), input); err != nil {
				return fmt.Errorf("%s: %w", dirs[i], err)
			}
		}
	}
	return nil
}

func (f *floorRenderer) evaluateComponent(v cue.Value, dir string) error {
	enabled, err := v.LookupPath(cue.ParsePath("component.enabled")).Bool()
	if err != nil || !enabled {
		return err
	}
	for _, field := range []string{"component.images", "component.secrets"} {
		if asked := v.LookupPath(cue.ParsePath(field)); asked.Exists() {
			if _, err := asked.MarshalJSON(); err != nil {
				return err
			}
		}
	}
	bundles, err := v.LookupPath(cue.ParsePath("component.bundles")).Fields()
	if err != nil {
		return err
	}
	for bundles.Next() {
		if err := f.collectSource(bundles.Value(), dir); err != nil {
			return fmt.Errorf("bundle %s: %w", bundles.Selector(), err)
		}
	}
	return nil
}

// collectSource records the inputs of Helm and krusty, and takes the objects out of CUE.
func (f *floorRenderer) collectSource(bundle cue.Value, dir string) error {
	source := bundle.LookupPath(cue.ParsePath("source"))
	if v := source.LookupPath(cue.ParsePath("helm")); v.Exists() {
		var helm struct {
			Chart   string         `json:"chart"`
			Release string         `json:"release"`
			Values  map[string]any `json:"values"`
		}
		if err := v.Decode(&helm); err != nil {
			return err
		}
		namespace, err := bundle.LookupPath(cue.ParsePath("namespace")).String()
		f.charts = append(f.charts, chartInput{dir: resolvePath(dir, helm.Chart), release: helm.Release, namespace: namespace, values: helm.Values})
		return err
	}
	if v := source.LookupPath(cue.ParsePath("kustomize")); v.Exists() {
		folder, err := v.String()
		f.kustomizations = append(f.kustomizations, resolvePath(dir, folder))
		return err
	}
	if v := source.LookupPath(cue.ParsePath("cue")); v.Exists() {
		f.objects++
		_, err := v.MarshalJSON()
		return err
	}
	return nil
}

func resolvePath(dir, name string) string {
	if strings.HasPrefix(name, "/") {
		return path.Clean(name[1:])
	}
	return path.Join(dir, name)
}

func (f *floorRenderer) runHelm() error {
	for _, input := range f.charts {
		var files []*loader.BufferedFile
		err := eachFile(input.dir, func(name string, data []byte) error {
			files = append(files, &loader.BufferedFile{Name: name, Data: data})
			return nil
		})
		if err != nil {
			return err
		}
		chart, err := loader.LoadFiles(files)
		if err != nil {
			return fmt.Errorf("%s: %w", input.dir, err)
		}
		options := chartutil.ReleaseOptions{Name: input.release, Namespace: input.namespace, Revision: 1, IsInstall: true}
		values, err := chartutil.ToRenderValues(chart, input.values, options, chartutil.DefaultCapabilities.Copy())
		if err != nil {
			return fmt.Errorf("%s: %w", input.dir, err)
		}
		if _, err := (engine.Engine{Strict: true}).Render(chart, values); err != nil {
			return fmt.Errorf("%s: %w", input.dir, err)
		}
	}
	return nil
}

func (f *floorRenderer) runKrusty() error {
	for _, dir := range f.kustomizations {
		memory := filesys.MakeFsInMemory()
		if err := eachFile(dir, func(name string, data []byte) error { return memory.WriteFile("/"+name, data) }); err != nil {
			return err
		}
		if _, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(memory, "/"); err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
	}
	return nil
}

func eachFile(dir string, visit func(name string, data []byte) error) error {
	return fs.WalkDir(components.FS, dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(components.FS, p)
		if err != nil {
			return err
		}
		return visit(strings.TrimPrefix(p, dir+"/"), data)
	})
}
