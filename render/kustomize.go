package render

import (
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
)

// originAnnotation is written by krusty when buildMetadata asks for origins.
const originAnnotation = "config.kubernetes.io/origin"

// kustomizeSource builds a folder of the catalogue.
func kustomizeSource(catalogue fs.FS, dir string, v cue.Value) ([]Object, error) {
	name, err := v.String()
	if err != nil {
		return nil, cueError("kustomize", err)
	}
	folder, err := resolve(dir, name)
	if err != nil {
		return nil, fmt.Errorf("kustomize: %w", err)
	}
	// A folder inside the component sees the whole component, so that it can
	// build on a base beside it.
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

// kustomizeBuild runs krusty on an in-memory file system. Remote bases are
// refused beforehand, because krusty would run git for them.
func kustomizeBuild(memory filesys.FileSystem, dir string, place func(string) string) ([]Object, error) {
	if err := prepareKustomizations(memory, dir, place); err != nil {
		return nil, err
	}
	options := krusty.MakeDefaultOptions()
	options.LoadRestrictions = types.LoadRestrictionsRootOnly
	options.Reorder = krusty.ReorderOptionNone
	options.PluginConfig = types.DisabledPluginConfig()
	resources, err := runKrusty(krusty.MakeKustomizer(options), memory, dir)
	if err != nil {
		root := dir[:1+strings.IndexByte(dir[1:]+"/", '/')]
		return nil, fmt.Errorf("kustomize: build %s: %s", place(dir), withoutContent(strings.ReplaceAll(err.Error(), "'"+root, "'"+place(root))))
	}
	var out []Object
	for _, res := range resources.Resources() {
		doc, err := res.AsYAML()
		if err != nil {
			return nil, fmt.Errorf("kustomize: %s: %w", res.CurId(), err)
		}
		content, err := decodeObject(doc)
		if err != nil {
			return nil, fmt.Errorf("kustomize: %s: %w", res.CurId(), err)
		}
		obj := Object{Unstructured: &unstructured.Unstructured{Object: content}, Origin: Origin{File: place(dir + "/kustomization.yaml")}}
		takeOrigin(&obj, dir, place)
		out = append(out, obj)
	}
	return out, nil
}

// krustyRuns lets one build run at a time: krusty keeps the schema of the build it works on in variables of its package.
var krustyRuns sync.Mutex

func runKrusty(k *krusty.Kustomizer, files filesys.FileSystem, dir string) (resmap.ResMap, error) {
	krustyRuns.Lock()
	defer krustyRuns.Unlock()
	return k.Run(files, dir)
}

// withoutContent cuts what kustomize quotes of patches and generator settings off its errors: that may be a Secret.
func withoutContent(text string) string {
	for _, quoted := range []string{" with config:", " from [", ": [", "\n", "`"} {
		if before, _, found := strings.Cut(text, quoted); found {
			text = before
		}
	}
	return strings.TrimRight(text, " :") + " (the content is not shown; check its YAML and names)"
}

// takeOrigin moves krusty's origin annotation into the origin of the object.
func takeOrigin(obj *Object, dir string, place func(string) string) {
	annotations := obj.GetAnnotations()
	text, ok := annotations[originAnnotation]
	if !ok {
		return
	}
	delete(annotations, originAnnotation)
	if len(annotations) == 0 {
		annotations = nil
	}
	obj.SetAnnotations(annotations)
	var origin struct {
		Path string `json:"path"`
	}
	if yaml.Unmarshal([]byte(text), &origin) == nil && origin.Path != "" {
		obj.Origin.File = place(path.Join(dir, origin.Path))
	}
}

// prepareKustomizations checks every kustomization reachable by folder and asks
// for origins in the one that is built.
func prepareKustomizations(memory filesys.FileSystem, dir string, place func(string) string) error {
	return memory.Walk("/", func(p string, info fs.FileInfo, err error) error {
		if err != nil || info.IsDir() || !isKustomization(path.Base(p)) {
			return err
		}
		data, err := memory.ReadFile(p)
		if err != nil {
			return err
		}
		var k types.Kustomization
		if err := k.Unmarshal(data); err != nil {
			return fmt.Errorf("%s: %w", place(p), err)
		}
		if err := refuseRemote(k); err != nil {
			return fmt.Errorf("%s: %w", place(p), err)
		}
		if path.Dir(p) != dir {
			return nil
		}
		k.BuildMetadata = []string{types.OriginAnnotations}
		out, err := yaml.Marshal(k)
		if err != nil {
			return fmt.Errorf("%s: %w", place(p), err)
		}
		return memory.WriteFile(p, out)
	})
}

func isKustomization(base string) bool {
	return base == "kustomization.yaml" || base == "kustomization.yml" || base == "Kustomization"
}

// refuseRemote rejects everything that krusty would fetch or execute.
func refuseRemote(k types.Kustomization) error {
	for _, p := range pathsOf(k) {
		if !isLocal(p) {
			return fmt.Errorf("remote base %q: only files of this folder are allowed", p)
		}
	}
	if len(k.HelmCharts) > 0 || len(k.HelmChartInflationGenerator) > 0 {
		return fmt.Errorf("helmCharts: use source.helm of the component instead")
	}
	if len(k.Generators) > 0 || len(k.Transformers) > 0 || len(k.Validators) > 0 {
		return fmt.Errorf("generators, transformers and validators are plugins and not run here")
	}
	return nil
}

// isLocal allows less than krusty does: whatever may be a URL, user@host:path or a short form of GitHub is none.
func isLocal(p string) bool {
	return !strings.ContainsAny(p, ":@?") && !strings.Contains(p, "//") && !strings.HasPrefix(strings.ToLower(p), "github.com/")
}

// pathsOf collects every field of a kustomization that krusty reads a file or folder by.
func pathsOf(k types.Kustomization) []string {
	//lint:ignore SA1019 deprecated fields are read by krusty, too
	bases, jsonPatches, mergePatches := k.Bases, k.PatchesJson6902, k.PatchesStrategicMerge
	paths := slices.Concat(k.Resources, k.Components, k.Crds, bases, k.Configurations, []string{k.OpenAPI["path"]})
	for _, p := range slices.Concat(k.Patches, jsonPatches) {
		paths = append(paths, p.Path)
	}
	for _, p := range mergePatches {
		// Either a path or the patch itself, which has several lines or is an object in braces.
		if text := strings.TrimSpace(string(p)); !strings.Contains(text, "\n") && !strings.HasPrefix(text, "{") {
			paths = append(paths, text)
		}
	}
	for _, r := range k.Replacements {
		paths = append(paths, r.Path)
	}
	generators := []types.KvPairSources{}
	for _, g := range k.ConfigMapGenerator {
		generators = append(generators, g.KvPairSources)
	}
	for _, g := range k.SecretGenerator {
		generators = append(generators, g.KvPairSources)
	}
	for _, g := range generators {
		for _, f := range slices.Concat(g.FileSources, g.EnvSources, []string{g.EnvSource}) {
			if _, p, named := strings.Cut(f, "="); named {
				f = p
			}
			paths = append(paths, f)
		}
	}
	return paths
}

// copyInto copies a folder of an fs.FS into krusty's file system.
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
