// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/build"
	"cuelang.org/go/cue/cuecontext"
	"cuelang.org/go/cue/load"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
)

// evaluator evaluates folders of one catalogue. A CUE context is not safe for concurrent use and
// never frees memory. So each goroutine has its own evaluator and drops it after some time.
type evaluator struct {
	catalogue fs.FS
	ctx       *cue.Context
	// dirs are loaded together, because most of a package is in files that many folders share.
	dirs        []string
	instances   map[string]*build.Instance
	values      map[string]cue.Value
	evaluations int
	// encodedInputs caches encoded inputs.
	encodedInputs map[*Input]cue.Value
}

// maxComponentsPerContext is the number of components after which a context is dropped.
const maxComponentsPerContext = 200

func newEvaluator(catalogue fs.FS, dirs ...string) *evaluator {
	return &evaluator{
		catalogue: catalogue, dirs: dirs, ctx: cuecontext.New(),
		instances: map[string]*build.Instance{}, values: map[string]cue.Value{}, encodedInputs: map[*Input]cue.Value{},
	}
}

// build evaluates the CUE package of a folder without input; files of the same package in parent
// folders belong to it.
func (e *evaluator) build(dir, pkg string) (cue.Value, error) {
	if v, ok := e.values[dir]; ok {
		return v, nil
	}
	if e.instances[dir] == nil {
		e.load(pkg, dir)
	}
	instance := e.instances[dir]
	if instance == nil {
		return cue.Value{}, fmt.Errorf("load %s: no CUE package named %s", dir, pkg)
	}
	if err := instance.Err; err != nil {
		return cue.Value{}, cueError("load "+dir, err)
	}
	v := e.ctx.BuildInstance(instance)
	if err := v.Err(); err != nil {
		return cue.Value{}, cueError("evaluate "+dir, err)
	}
	e.values[dir] = v
	return v, nil
}

func (e *evaluator) load(pkg, dir string) {
	dirs := slices.DeleteFunc(slices.Clone(e.dirs), func(d string) bool { return e.instances[path.Clean(d)] != nil })
	if len(dirs) == 0 {
		dirs = []string{dir}
	}
	patterns := make([]string, 0, len(dirs))
	for _, d := range dirs {
		patterns = append(patterns, "./"+d+":"+pkg)
	}
	instances := load.Instances(patterns, &load.Config{FS: e.catalogue, Dir: "/", FromFSPath: cataloguePath})
	if len(instances) != len(dirs) {
		return
	}
	for i, instance := range instances {
		e.instances[path.Clean(dirs[i])] = instance
	}
}

// forgetComponents frees the memory of components that are not needed again.
func (e *evaluator) forgetComponents(tasks []*task) {
	for _, t := range tasks {
		delete(e.values, t.dir)
	}
}

// encodedInput is the input of every component of an owner: declarations, versions, images and
// facts.
func (e *evaluator) encodedInput(in *Input, images map[string]string) (cue.Value, error) {
	if v, ok := e.encodedInputs[in]; ok {
		return v, nil
	}
	values, err := commonInputValues(*in, images)
	if err != nil {
		return cue.Value{}, err
	}
	e.encodedInputs[in] = e.encode(values)
	return e.encodedInputs[in], nil
}

// encode converts input to CUE. A null stays null: removeNulls has removed empty fields of
// declarations, and in free-form parts null is a value. CUE's default, any value, cannot be
// rendered.
func (e *evaluator) encode(values map[string]any) cue.Value {
	return e.ctx.Encode(values, cue.NilIsAny(false))
}

// CommonInput returns the input of each component of an owner, except facts of requested secrets,
// for callers that evaluate components themselves.
func CommonInput(in Input, opts Options) (map[string]any, error) {
	images, err := imagesFor(in, opts)
	if err != nil {
		return nil, err
	}
	return commonInputValues(in, images)
}

func commonInputValues(in Input, images map[string]string) (map[string]any, error) {
	runtimeVersion := ""
	for _, role := range []string{ClusterRuntime, ClusterSeed} {
		if f, ok := in.Facts.Clusters[role]; ok && runtimeVersion == "" && (in.Owner.Kind == "garden") == (role == ClusterRuntime) {
			runtimeVersion = f.KubernetesVersion
		}
	}
	runtime, err := parseKubernetesVersion(runtimeVersion)
	if err != nil {
		return nil, err
	}
	target := runtime
	if in.TargetVersion != "" {
		if target, err = parseKubernetesVersion(in.TargetVersion); err != nil {
			return nil, err
		}
	}
	facts := map[string]any{}
	if len(in.Facts.Addresses) > 0 {
		facts["addresses"] = in.Facts.Addresses
	}
	if len(in.Facts.Extensions) > 0 {
		facts["extensions"] = in.Facts.Extensions
	}
	if in.Facts.WildcardCertificate != nil {
		facts["wildcardCertificate"] = in.Facts.WildcardCertificate
	}
	if len(in.Facts.Seeds) > 0 {
		facts["seeds"] = in.Facts.Seeds
	}
	if references := in.referenceValues(); len(references) > 0 {
		facts["references"] = references
	}
	values := map[string]any{
		"owner": in.Owner, "images": images, "facts": facts,
		"kubernetes": map[string]any{"runtime": runtime, "target": target},
	}
	for name, object := range in.declaredSettings() {
		values[name] = object
	}
	return values, nil
}

// declaredSettings are the declarations and settings of the landscape, which both components and
// flows see.
func (in Input) declaredSettings() map[string]any {
	values := map[string]any{"landscape": map[string]any{
		"gardenAPI": cmp.Or(in.GardenAPI, landscapev1alpha1.GardenAPICRD), "featureGates": in.FeatureGates.Values(), "seedIsGarden": in.SeedIsGarden,
	}}
	for name, object := range in.Objects {
		values[name] = object
	}
	if len(in.Extensions) > 0 {
		values["extensions"] = in.Extensions
	}
	return values
}
