// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/pergola-dev/pergola/internal/suggest"
	"github.com/pergola-dev/pergola/schemas"
)

// kustomization is a kustomization.yaml with the positions of its fields.
type kustomization struct {
	types.Kustomization
	yamlFile
	// path is in the file system of the build.
	path string
	// targetedPatches are the patches with explicit targets; see aim.
	targetedPatches []patch
}

func (k kustomization) dir() string { return path.Dir(k.path) }

func (k kustomization) finding(field string, kind schemas.ViolationType, format string, args ...any) finding {
	return finding{Position: k.position(field), field: field, kind: kind, message: fmt.Sprintf(format, args...)}
}

// kustomizationCheck finds faults in the kustomizations of a folder before krusty builds it. krusty
// reports one error at a time, has no line numbers, and would use git and HTTP for names that look
// remote.
type kustomizationCheck struct {
	files filesys.FileSystem
	// root limits the readable files.
	root string
	// displayPath converts a path for messages.
	displayPath func(string) string
	// isOverlay rejects fields that an overlay must not have.
	isOverlay bool

	findings findings
	seen     map[string]bool
	// resources are the files of objects that were found.
	resources []string
}

// checkFolder checks the kustomization of a folder and the kustomizations that it includes.
func (c *kustomizationCheck) checkFolder(dir string) {
	if c.seen[dir] {
		return
	}
	if c.seen == nil {
		c.seen = map[string]bool{}
	}
	c.seen[dir] = true
	file := kustomizationFile(c.files, dir)
	for _, name := range kustomizationNames {
		if other := path.Join(dir, name); file != "" && other != file && c.files.Exists(other) {
			c.findings = append(c.findings, finding{Position: schemas.Position{File: c.displayPath(other), Line: 1, Column: 1}, kind: schemas.TypeDuplicate,
				message: fmt.Sprintf("the folder also has %s, and Kustomize rejects a folder with both; merge them into one file", path.Base(file))})
			return
		}
	}
	if file == "" {
		c.findings = append(c.findings, finding{Position: schemas.Position{File: c.displayPath(dir)}, kind: schemas.TypeRequired, message: "the folder has no kustomization.yaml"})
		return
	}
	k, found := readKustomization(c.files, file, c.displayPath)
	refused := c.refusedFields(k)
	c.findings = append(c.findings, refused...)
	for _, f := range found {
		if !refused.hasField(f.field) {
			c.findings = append(c.findings, f)
		}
	}
	if len(found) > 0 {
		return
	}
	for _, ref := range fileRefs(k) {
		c.checkReference(k, ref)
	}
	_, found = patchesOf(c.files, k, c.displayPath)
	c.findings = append(c.findings, found...)
	_, found = replacementsOf(c.files, k, c.displayPath)
	c.findings = append(c.findings, found...)
}

// kustomizationNames are the file names that Kustomize recognizes.
var kustomizationNames = konfig.RecognizedKustomizationFileNames()

// kustomizationFile is the file of a folder that krusty reads, or "" if it does not exist.
func kustomizationFile(files filesys.FileSystem, dir string) string {
	for _, name := range kustomizationNames {
		if file := path.Join(dir, name); files.Exists(file) && !files.IsDir(file) {
			return file
		}
	}
	return ""
}

func readKustomization(files filesys.FileSystem, file string, place func(string) string) (kustomization, findings) {
	k := kustomization{path: file}
	data, err := files.ReadFile(file)
	if err != nil {
		return k, findings{{Position: schemas.Position{File: place(file)}, kind: schemas.TypeInvalid, message: "cannot be read"}}
	}
	if k.yamlFile, err = readYAMLFile(place(file), data); err != nil {
		return k, findingsIn(err)
	}
	if found := k.checkShape(reflect.TypeFor[types.Kustomization]()); len(found) > 0 {
		return k, found
	}
	if err := k.Unmarshal(data); err != nil {
		return k, findings{k.finding("", schemas.TypeInvalid, "%s", firstLine(err.Error()))}
	}
	k.FixKustomization()
	for _, text := range k.EnforceFields() {
		field, _, _ := strings.Cut(text, " ")
		return k, findings{k.finding(field, schemas.TypeNotSupported, "%s", text)}
	}
	return k, nil
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// refusedFields finds fields that krusty would fetch or execute, and fields that are not allowed in
// a landscape.
func (c *kustomizationCheck) refusedFields(k kustomization) findings {
	const (
		helm   = "Helm is not supported here: a component of the catalogue uses a chart by source.helm"
		plugin = "generators, transformers and validators are plugins, which are not supported"
	)
	fields := []struct{ field, message string }{
		{"helmCharts", helm},
		{"helmChartInflationGenerator", helm},
		{"helmGlobals", helm},
		{"generators", plugin},
		{"transformers", plugin},
		{"validators", plugin},
		{"vars", "is deprecated by Kustomize: use replacements"},
		{"sortOptions", "has no effect here: objects have a fixed order; remove it"},
	}
	if c.isOverlay {
		fields = append(fields, struct{ field, message string }{
			"secretGenerator", "everyone can read a render: declare the Secret in the landscape, encrypted with SOPS, and refer to it",
		})
		// in other folders it applies to their own resources only
		if k.dir() == c.root || k.Kind == types.ComponentKind {
			for _, field := range []string{"namePrefix", "nameSuffix"} {
				fields = append(fields, struct{ field, message string }{field,
					"renames all objects of the component, which others refer to by name: for added objects, set it in the kustomization of a folder under resources"})
			}
		}
	}
	var out findings
	for _, refused := range fields {
		value := k.node(refused.field)
		if value == nil || value.ShortTag() == "!!null" || value.Kind == yamlv3.ScalarNode && value.Value == "" {
			continue
		}
		if isList := value.Kind == yamlv3.SequenceNode; !isList || len(value.Content) > 0 || refused.field == "vars" {
			out = append(out, k.finding(refused.field, schemas.TypeForbidden, "%s", refused.message))
		}
	}
	return out
}

// hasField reports whether path is a field in one of the findings, or below it.
func (f findings) hasField(path string) bool {
	return slices.ContainsFunc(f, func(one finding) bool {
		rest, inside := strings.CutPrefix(path, one.field)
		return inside && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

// fileRef is a field of a kustomization that names a file or folder.
type fileRef struct {
	field, path string
	// allowsFolder allows a folder with a kustomization; objects means a file of objects.
	allowsFolder, hasObjects bool
}

// fileRefs collects all fields of a kustomization that name a file or folder, except patches and
// replacements.
func fileRefs(k kustomization) []fileRef {
	var out []fileRef
	list := func(field string, paths []string, folders, objects bool) {
		for i, p := range paths {
			out = append(out, fileRef{field: fmt.Sprintf("%s[%d]", field, i), path: p, allowsFolder: folders, hasObjects: objects})
		}
	}
	resources := k.Resources
	if bases := k.node("bases"); bases != nil {
		// FixKustomization appended them to the resources, but their position differs.
		at := max(0, len(resources)-len(bases.Content))
		list("bases", resources[at:], true, false)
		resources = resources[:at]
	}
	list("resources", resources, true, true)
	list("components", k.Components, true, false)
	list("crds", k.Crds, false, false)
	list("configurations", k.Configurations, false, false)
	if p := k.OpenAPI["path"]; p != "" {
		out = append(out, fileRef{field: "openapi.path", path: p})
	}
	generator := func(field string, i int, sources types.KvPairSources) {
		files := slices.Clone(sources.FileSources)
		for j, f := range files {
			if _, p, named := strings.Cut(f, "="); named {
				files[j] = p
			}
		}
		list(fmt.Sprintf("%s[%d].files", field, i), files, false, false)
		list(fmt.Sprintf("%s[%d].envs", field, i), sources.EnvSources, false, false)
		if sources.EnvSource != "" {
			out = append(out, fileRef{field: fmt.Sprintf("%s[%d].env", field, i), path: sources.EnvSource})
		}
	}
	for i, g := range k.ConfigMapGenerator {
		generator("configMapGenerator", i, g.KvPairSources)
	}
	for i, g := range k.SecretGenerator {
		generator("secretGenerator", i, g.KvPairSources)
	}
	return out
}

// checkReference checks a fileRef and its target.
func (c *kustomizationCheck) checkReference(k kustomization, ref fileRef) {
	target, problem := resolveReference(c.files, c.root, k.dir(), ref.path)
	if problem != "" {
		c.findings = append(c.findings, k.finding(ref.field, schemas.TypeInvalid, "%s", problem))
		return
	}
	switch {
	case !c.files.IsDir(target):
		if ref.hasObjects {
			c.checkObjects(target)
		}
	case !ref.allowsFolder:
		c.findings = append(c.findings, k.finding(ref.field, schemas.TypeInvalid, "%q is a folder; a file is expected", ref.path))
	default:
		c.checkFolder(target)
	}
}

// resolveReference finds the target of a name in a kustomization, or describes its fault.
func resolveReference(files filesys.FileSystem, root, dir, name string) (target, problem string) {
	if !isLocalPath(name) {
		return "", fmt.Sprintf("%q is not in this folder: remote files are not supported", name)
	}
	target = path.Join(dir, name)
	switch {
	case path.IsAbs(name), target != root && !strings.HasPrefix(target, root+"/"):
		return "", fmt.Sprintf("%q leaves the folder: copy the file", name)
	case !files.Exists(target):
		hint := ""
		if names, err := files.ReadDir(path.Dir(target)); err == nil {
			if better := suggest.Closest(path.Base(target), names); better != "" {
				hint = fmt.Sprintf("; did you mean %q?", path.Join(path.Dir(name), better))
			}
		}
		return "", fmt.Sprintf("there is no file %q in this folder%s", name, hint)
	}
	return target, ""
}

// checkObjects checks that a file contains objects.
func (c *kustomizationCheck) checkObjects(file string) {
	c.resources = append(c.resources, file)
	data, err := c.files.ReadFile(file)
	var objects []Object
	if err == nil {
		objects, err = DecodeYAML(c.displayPath(file), data)
	}
	for _, o := range objects {
		c.findings = append(c.findings, checkObjectName(o)...)
	}
	for _, doc := range splitYAML(data) {
		if doc.isUnseparated {
			c.findings = append(c.findings, finding{Position: schemas.Position{File: c.displayPath(file), Line: doc.line, Column: 1}, kind: schemas.TypeInvalid,
				message: "Kustomize reads only the first value of a JSON stream: put a line with --- before each of the others"})
		}
	}
	if found := findingsIn(err); len(found) > 0 {
		c.findings = append(c.findings, found...)
	} else if err != nil {
		c.findings = append(c.findings, finding{Position: schemas.Position{File: c.displayPath(file)}, kind: schemas.TypeInvalid, message: err.Error()})
	}
}

// checkObjectName reports an object without a name.
func checkObjectName(o Object) findings {
	if o.GetName() != "" || strings.HasSuffix(o.GetKind(), "List") {
		return nil
	}
	message := fmt.Sprintf("%s has no metadata.name: set it", o.GetKind())
	if o.GetGenerateName() != "" {
		message = fmt.Sprintf("%s has metadata.generateName, so each apply would create a new object: set metadata.name", o.GetKind())
	}
	return findings{{Position: schemas.Position{File: o.Origin.File, Line: o.Origin.Line, Column: 1}, field: "metadata.name", kind: schemas.TypeRequired, message: message}}
}

// isLocalPath is stricter than krusty: it rejects possible URLs, user@host:path, and short forms of
// GitHub.
func isLocalPath(p string) bool {
	return p != "" && !strings.ContainsAny(p, ":@?") && !strings.Contains(p, "//") && !strings.HasPrefix(strings.ToLower(p), "github.com/")
}
