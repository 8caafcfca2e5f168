// SPDX-License-Identifier: Apache-2.0

package render

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"cuelang.org/go/cue"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/schemas"
)

// originAnnotation is written by krusty if buildMetadata asks for origins.
const originAnnotation = "config.kubernetes.io/origin"

// kustomizeSource builds a folder of the catalogue.
func kustomizeSource(catalogue fs.FS, dir string, v cue.Value) ([]Object, error) {
	name, err := v.String()
	if err != nil {
		return nil, cueError("kustomize", err)
	}
	folder, err := resolveFolder(dir, name)
	if err != nil {
		return nil, findingAt(v, "kustomize: %s", err)
	}
	if info, err := fs.Stat(catalogue, folder); err != nil || !info.IsDir() {
		return nil, findingAt(v, "there is no folder %s", cataloguePath(folder))
	}
	// A folder inside the component sees the whole component, so that it can build on a base beside
	// it.
	root := folder
	if folder == dir || strings.HasPrefix(folder, dir+"/") {
		root = dir
	}
	memory := filesys.MakeFsInMemory()
	if err := copyInto(memory, catalogue, root, "/build"); err != nil {
		return nil, fmt.Errorf("kustomize: read %s: %w", cataloguePath(folder), err)
	}
	return kustomizeBuild(memory, path.Join("/build", strings.TrimPrefix(folder, root)), func(p string) string {
		return cataloguePath(path.Join(root, strings.TrimPrefix(p, "/build")))
	})
}

// kustomizeBuild runs krusty on an in-memory file system. Checks before the run report most errors.
func kustomizeBuild(memory filesys.FileSystem, dir string, place func(string) string) ([]Object, error) {
	check := kustomizationCheck{files: memory, root: buildRoot(dir), displayPath: place}
	if check.checkFolder(dir); len(check.findings) > 0 {
		return nil, check.findings.err()
	}
	k, found := readKustomization(memory, kustomizationFile(memory, dir), place)
	if len(found) > 0 {
		return nil, found.err()
	}
	k.targetedPatches, _ = patchesOf(memory, k, place) // for their positions
	k.Kustomization = withoutDeprecatedFields(memory, k.dir(), k.Kustomization)
	resources, err := krustyBuildOrFinding(memory, k, place)
	if err != nil {
		return nil, err
	}
	objects, err := decodeResources(memory, k, resources, place)
	if err != nil {
		return nil, unwritablePart(memory, k, place, err)
	}
	return objects, nil
}

// krustyBuildOrFinding runs krusty with k instead of the kustomization in memory, and finds the
// faulty part if krusty fails.
func krustyBuildOrFinding(memory filesys.FileSystem, k kustomization, place func(string) string) (resmap.ResMap, error) {
	root := buildRoot(k.path)
	if err := removeDeprecatedFields(memory, root, k.path); err != nil {
		return nil, err
	}
	resources, err := krustyBuild(memory, k.path, k.Kustomization)
	if err == nil {
		return resources, nil
	}
	return nil, failingPartFinding(memory, k, strings.ReplaceAll(err.Error(), "'"+root, "'"+place(root)))
}

// failingPartFinding finds the part of a kustomization at which krusty fails, by adding part after
// part.
func failingPartFinding(memory filesys.FileSystem, k kustomization, said string) finding {
	text := redactError(said)
	found := k.firstFailingPart(func(part types.Kustomization) bool {
		_, err := krustyBuild(memory, k.path, part)
		return err != nil
	})
	if found.replacement >= 0 {
		return failedReplacement(k, found.replacement, said)
	}
	if plain := k.explainError(memory, found, said); plain != nil {
		return *plain
	}
	return k.partFinding(found, text)
}

// partFinding is about a part of a kustomization.
func (k kustomization) partFinding(p kustomizationPart, message string) finding {
	if p.patch >= 0 && len(k.targetedPatches) == len(k.Patches) {
		return finding{Position: k.targetedPatches[p.patch].start, field: k.targetedPatches[p.patch].entry, kind: schemas.TypeInvalid, message: message}
	}
	return k.finding(p.field, schemas.TypeInvalid, "%s", message)
}

// unwritablePart finds the part of a kustomization that makes an object unwritable: krusty gives a
// value a type that its text does not have.
func unwritablePart(memory filesys.FileSystem, k kustomization, place func(string) string, err error) error {
	found := k.firstFailingPart(func(part types.Kustomization) bool {
		resources, err := krustyBuild(memory, k.path, part)
		if err == nil {
			_, err = decodeResources(memory, k, resources, place)
		}
		return err != nil
	})
	name := "an object"
	if of, ok := errors.AsType[*unwritableError](err); ok {
		name = of.kind + " " + of.name
	}
	return k.partFinding(found, "gives a field of "+name+" a value of a different type than before (the value is not shown)")
}

// unwritableError is about an object from krusty that cannot be written as YAML.
type unwritableError struct {
	kind, name string
	err        error
}

func (e *unwritableError) Error() string {
	return fmt.Sprintf("kustomize: %s %s: %s", e.kind, e.name, e.err)
}

// krustyBuild builds a folder with k instead of its kustomization.
func krustyBuild(memory filesys.FileSystem, file string, k types.Kustomization) (resmap.ResMap, error) {
	k.BuildMetadata = []string{types.OriginAnnotations}
	out, err := yaml.Marshal(k)
	if err != nil {
		return nil, err
	}
	before, err := memory.ReadFile(file)
	if err != nil {
		return nil, err
	}
	before = slices.Clone(before)
	if err := memory.WriteFile(file, out); err != nil {
		return nil, err
	}
	options := krusty.MakeDefaultOptions()
	options.LoadRestrictions = types.LoadRestrictionsRootOnly
	options.Reorder = krusty.ReorderOptionNone
	options.PluginConfig = types.DisabledPluginConfig()
	resources, err := runKrusty(krusty.MakeKustomizer(options), memory, path.Dir(file))
	if restored := memory.WriteFile(file, before); err == nil {
		err = restored
	}
	return resources, err
}

// decodeResources decodes objects from krusty, each with its origin.
func decodeResources(memory filesys.FileSystem, k kustomization, resources resmap.ResMap, place func(string) string) ([]Object, error) {
	var out []Object
	lines := objectLines{files: memory, known: map[string][]Object{}}
	for _, res := range resources.Resources() {
		doc, err := res.AsYAML()
		if err != nil {
			return nil, &unwritableError{res.GetKind(), res.GetName(), err}
		}
		content, err := decodeObject(doc)
		if err != nil {
			return nil, &unwritableError{res.GetKind(), res.GetName(), err}
		}
		obj := Object{Unstructured: &unstructured.Unstructured{Object: content}, Origin: Origin{File: k.name}}
		if file := removeOrigin(&obj); file != "" {
			file = path.Join(k.dir(), file)
			obj.Origin = Origin{File: place(file), Line: lines.lineOf(file, res.OrgId().Kind, res.OrgId().Name)}
		}
		out = append(out, obj)
	}
	return out, nil
}

// objectLines finds the line at which an object of a file begins; it is 0 if it is unknown.
type objectLines struct {
	files filesys.FileSystem
	known map[string][]Object
}

func (l objectLines) lineOf(file, kind, name string) int {
	objects, ok := l.known[file]
	if !ok {
		if data, err := l.files.ReadFile(file); err == nil {
			objects, _ = DecodeYAML(file, data)
		}
		l.known[file] = objects
	}
	for _, o := range objects {
		if o.GetKind() == kind && o.GetName() == name {
			return o.Origin.Line
		}
	}
	return 0
}

// buildRoot is the top folder of a path: one build is below it and reads nothing else.
func buildRoot(p string) string { return p[:1+strings.IndexByte(p[1:]+"/", '/')] }

// krustyLock serializes builds: krusty has the schema of the current build in package variables.
var krustyLock sync.Mutex

func runKrusty(k *krusty.Kustomizer, files filesys.FileSystem, dir string) (resmap.ResMap, error) {
	krustyLock.Lock()
	defer krustyLock.Unlock()
	return k.Run(files, dir)
}

// redactError removes quotes of patches and generator settings from errors of kustomize: they
// may be a Secret.
func redactError(text string) string {
	for _, quoted := range []string{" with config:", " from [", ": [", "\n", "`"} {
		if before, _, found := strings.Cut(text, quoted); found {
			text = before
		}
	}
	return strings.TrimRight(krustyInternalsPattern.ReplaceAllString(text, ""), " :") + " (the content is not shown; check its YAML and names)"
}

// removeOrigin removes krusty's origin annotation from the object and returns the file in it.
func removeOrigin(obj *Object) string {
	annotations := obj.GetAnnotations()
	text, ok := annotations[originAnnotation]
	if !ok {
		return ""
	}
	delete(annotations, originAnnotation)
	if len(annotations) == 0 {
		annotations = nil
	}
	obj.SetAnnotations(annotations)
	var origin struct {
		Path string `json:"path"`
	}
	if yaml.Unmarshal([]byte(text), &origin) != nil {
		return ""
	}
	return origin.Path
}

// copyInto copies a folder of an fs.FS to krusty's file system.
func copyInto(memory filesys.FileSystem, from fs.FS, dir, to string) error {
	return fs.WalkDir(from, dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(from, p)
		if err != nil {
			return err
		}
		rel := strings.TrimPrefix(strings.TrimPrefix(p, dir), "/")
		return memory.WriteFile(path.Join(to, rel), data)
	})
}
