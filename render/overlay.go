// SPDX-License-Identifier: Apache-2.0

package render

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/schemas"
)

// bundleAnnotation is the bundle of an object during an overlay build. An overlay names the bundle
// of an added object with it.
const bundleAnnotation = "render.pergola.dev/bundle"

// indexAnnotation identifies the original object during an overlay build.
const indexAnnotation = "render.pergola.dev/index"

// Overlay is a kustomization that a landscape, or one of its layers, applies to a component.
type Overlay struct {
	// Component is "<owner kind>/<name>".
	Component string
	// FS and Dir are the folder.
	FS  fs.FS
	Dir string
	// Name is the folder in messages: relative to the landscape.
	Name string
}

// applyOverlay builds the landscape's kustomization of a component on top of all its bundles. It
// skips patches that match nothing, because they may match objects of another owner. probe, if set,
// records them.
func applyOverlay(overlay Overlay, bundles []Bundle, check objectCheck, probe *overlayUsage) error {
	return withRule(buildOverlay(overlay, bundles, check, probe), ruleOverlay)
}

func buildOverlay(overlay Overlay, bundles []Bundle, objects objectCheck, probe *overlayUsage) error {
	files, err := overlay.loadFiles()
	if err != nil {
		return err
	}
	dir := overlay.Name
	manifest, index, err := overlayInput(bundles)
	if err != nil {
		return fmt.Errorf("overlay %s: %w", dir, err)
	}
	if err := errors.Join(
		files.memory.WriteFile("/overlay/"+componentFolder+"/objects.yaml", manifest),
		files.memory.WriteFile("/overlay/"+componentFolder+"/kustomization.yaml", []byte("resources: [objects.yaml]\n")),
	); err != nil {
		return err
	}
	k, aimed, err := files.targetedKustomization()
	if err != nil {
		return err
	}
	check := overlayCheck{objectCheck: objects, overlayFiles: files, k: k, objects: slices.Clone(index), ownCount: len(index)}
	if probe != nil {
		check.warn, check.addOpenReference = probe.warn, probe.addOpenReference
	}
	if err := check.checkSources(aimed.patches); err != nil {
		return err
	}
	resources, err := krustyBuildOrFinding(files.memory, k, files.displayPath)
	if err != nil {
		return err
	}
	made, err := decodeResources(files.memory, k, resources, files.displayPath)
	if err != nil {
		return unwritablePart(files.memory, k, files.displayPath, err)
	}
	if found := check.checkBuilt(k, made, bundles); len(found) > 0 {
		return found.err()
	}
	if probe != nil {
		check.checkReferences(k, made, bundles)
		check.warnOfMovedObjects(k, made, index)
		check.warnOfChanges(k, made, index)
	}
	changed, err := distributeToBundles(dir, made, index, bundles)
	if err != nil || probe == nil {
		return err
	}
	return probe.record(files.memory, k, aimed.selections, resources, changed)
}

// warnOfMovedObjects warns of objects that get another namespace. Their Secrets, policies and
// certificates stay in the old one, and other objects still use the old name.
func (c *overlayCheck) warnOfMovedObjects(k kustomization, made, before []Object) {
	var first string
	others := 0
	for _, o := range made {
		i, err := strconv.Atoi(o.GetAnnotations()[indexAnnotation])
		if err != nil || i >= len(before) || before[i].GetNamespace() == "" || before[i].GetNamespace() == o.GetNamespace() {
			continue
		}
		if first != "" {
			others++
			continue
		}
		first = fmt.Sprintf("%s %s/%s moves to namespace %s", o.GetKind(), before[i].GetNamespace(), before[i].GetName(), o.GetNamespace())
	}
	if first == "" {
		return
	}
	if others > 0 {
		first += fmt.Sprintf(", as %d more do", others)
	}
	c.warn(finding{Position: k.position("namespace"), field: "namespace", kind: schemas.TypeInvalid, rule: ruleOverlayReference, warning: true,
		message: first + ": the component's Secrets and network policies stay in the old namespace, and others use its old name; keep the namespace"})
}

// componentFolder contains the objects of the component during an overlay build.
const componentFolder = "zz-component"

// overlayFiles are the files of an overlay during its build.
type overlayFiles struct {
	memory filesys.FileSystem
	// displayPath converts a path for messages.
	displayPath func(string) string
	// resources are the files of objects.
	resources []string
	// namedFiles are the files that a kustomization names.
	namedFiles map[string]bool
}

// loadFiles loads the files of an overlay into memory and makes the checks that do not need the
// component.
func (o Overlay) loadFiles() (overlayFiles, error) {
	f := overlayFiles{memory: filesys.MakeFsInMemory()}
	if err := copyInto(f.memory, o.FS, o.Dir, "/overlay"); err != nil {
		return f, fmt.Errorf("overlay %s: %w", o.Name, err)
	}
	f.displayPath = func(p string) string { return path.Join(o.Name, strings.TrimPrefix(p, "/overlay")) }
	f.namedFiles = map[string]bool{}
	check := kustomizationCheck{files: fileRecorder{f.memory, f.namedFiles}, root: "/overlay", displayPath: f.displayPath, isOverlay: true}
	check.checkFolder("/overlay")
	f.resources = check.resources
	return f, withRule(check.findings.err(), ruleOverlay)
}

// overlayTargets are the selections of an overlay, in the order in which krusty applies them.
type overlayTargets struct {
	selections []objectSelection
	patches    []patch
}

// targetedKustomization reads the kustomization of an overlay, adds the objects of the component,
// and gives each patch an explicit target. Nested components of Kustomize patch the same objects:
// their files get explicit targets, too.
func (f overlayFiles) targetedKustomization() (kustomization, overlayTargets, error) {
	memory, place := f.memory, f.displayPath
	k, found := readKustomization(memory, "/overlay/kustomization.yaml", place)
	if len(found) > 0 {
		return k, overlayTargets{}, found.err()
	}
	all := overlayTargets{selections: imageSelections(k)}
	nested := append([]string(nil), k.Components...)
	err := setPatchTargets(memory, &k, &all.selections, place)
	for i := 0; i < len(nested) && err == nil && i < maxDepth; i++ {
		var component kustomization
		file := kustomizationFile(memory, path.Join(k.dir(), nested[i]))
		if component, found = readKustomization(memory, file, place); len(found) > 0 {
			return k, all, found.err()
		}
		for _, inner := range component.Components {
			nested = append(nested, path.Join(nested[i], inner))
		}
		if err = setPatchTargets(memory, &component, &all.selections, place); err == nil {
			all.patches = append(all.patches, component.targetedPatches...)
			var text []byte
			if text, err = yaml.Marshal(component.Kustomization); err == nil {
				err = memory.WriteFile(file, text)
			}
		}
	}
	all.patches = append(all.patches, k.targetedPatches...)
	k.Resources = append([]string{componentFolder}, k.Resources...)
	k.Kustomization = withoutDeprecatedFields(memory, k.dir(), k.Kustomization)
	return k, all, err
}

// setPatchTargets gives every patch of a kustomization its target and records the selections.
func setPatchTargets(memory filesys.FileSystem, k *kustomization, selections *[]objectSelection, place func(string) string) error {
	patches, found := patchesOf(memory, *k, place)
	replacements, more := replacementsOf(memory, *k, place)
	if found = append(found, more...); len(found) > 0 {
		return found.err()
	}
	k.Patches, k.targetedPatches = nil, nil
	//lint:ignore SA1019 deprecated fields are read by krusty, too
	k.PatchesStrategicMerge, k.PatchesJson6902 = nil, nil
	for _, p := range patches {
		*selections = append(*selections, p.objectSelection)
		k.Patches, k.targetedPatches = append(k.Patches, p.Patch), append(k.targetedPatches, p)
	}
	*selections = append(*selections, replacements...)
	return nil
}

// overlayInput writes the objects of all bundles, marked with bundle and index.
func overlayInput(bundles []Bundle) ([]byte, []Object, error) {
	var index, marked []Object
	for _, b := range bundles {
		for _, o := range b.Objects {
			c := o.DeepCopy()
			c.SetAnnotations(mergeMaps(c.GetAnnotations(), map[string]string{
				bundleAnnotation: b.Name, indexAnnotation: fmt.Sprint(len(index)),
			}))
			marked = append(marked, Object{Unstructured: c})
			index = append(index, o)
		}
	}
	manifest, err := ManifestYAML(marked)
	return manifest, index, err
}

// distributeToBundles moves the built objects back into their bundles and reports whether an object
// was added, removed or changed.
func distributeToBundles(dir string, objects, index []Object, bundles []Bundle) (changed bool, err error) {
	byName := map[string]*Bundle{}
	for i := range bundles {
		byName[bundles[i].Name] = &bundles[i]
		bundles[i].Objects = nil
	}
	changed = len(objects) != len(index)
	var problems findings
	defined := definedScopes(objects)
	for _, obj := range objects {
		annotations := obj.GetAnnotations()
		name, at := annotations[bundleAnnotation], annotations[indexAnnotation]
		delete(annotations, bundleAnnotation)
		delete(annotations, indexAnnotation)
		if len(annotations) == 0 {
			annotations = nil
		}
		obj.SetAnnotations(annotations)
		var before *unstructured.Unstructured
		written := obj.Origin
		if at != "" {
			i, err := strconv.Atoi(at)
			if err != nil || i < 0 || i >= len(index) {
				return false, fmt.Errorf("overlay %s: annotation %s was changed", dir, indexAnnotation)
			}
			before, obj.Origin = index[i].Unstructured, index[i].Origin
			written = Origin{File: path.Join(dir, "kustomization.yaml")}
		}
		if before == nil || !equality.Semantic.DeepEqual(obj.Object, before.Object) {
			obj.Origin = obj.Origin.withOverlay(dir)
			changed = true
		}
		if hasNewSecretData(before, obj.Unstructured) {
			problems = append(problems, overlayFinding(written, schemas.TypeForbidden,
				"the overlay sets data of Secret %s, but everyone can read a render; declare the Secret in the landscape, encrypted with SOPS", obj.GetName()))
			continue
		}
		if name == "" && len(bundles) == 1 {
			name = bundles[0].Name
		}
		b, ok := byName[name]
		if !ok && name != "" {
			problems = append(problems, overlayFinding(written, schemas.TypeNotSupported, "the overlay adds %s %s by the annotation %s to bundle %q, which the component does not have%s",
				obj.GetKind(), obj.GetName(), bundleAnnotation, name, suggestName(name, sortedKeys(byName))))
			continue
		}
		if !ok {
			problems = append(problems, overlayFinding(written, schemas.TypeRequired, "the overlay adds %s %s without a bundle: set the annotation %s to one of %s",
				obj.GetKind(), obj.GetName(), bundleAnnotation, strings.Join(sortedKeys(byName), ", ")))
			continue
		}
		if before == nil {
			if twin := b.existingObject(obj, defined); twin != nil {
				problems = append(problems, overlayFinding(written, schemas.TypeDuplicate, "the overlay adds %s %s, which is in bundle %s already (%s): patch that one, or choose another name",
					obj.GetKind(), obj.GetName(), b.Name, twin.Origin))
			} else if wrong := b.shootCollision(obj, defined); wrong != "" {
				problems = append(problems, overlayFinding(written, schemas.TypeDuplicate, "%s", wrong))
			}
		}
		b.Objects = append(b.Objects, obj)
	}
	return changed, problems.err()
}

func overlayFinding(at Origin, kind schemas.ViolationType, format string, args ...any) finding {
	return finding{Position: schemas.Position{File: at.File, Line: at.Line, Column: 1}, kind: kind, message: fmt.Sprintf(format, args...)}
}

// hasNewSecretData reports whether an overlay adds a Secret with values or changes its values.
func hasNewSecretData(before, obj *unstructured.Unstructured) bool {
	if kind := obj.GetKind(); kind != "Secret" && kind != "InternalSecret" {
		return false
	}
	for _, field := range []string{"data", "stringData"} {
		values, ok := obj.Object[field]
		if !ok || values == nil {
			continue
		}
		if before == nil || !equality.Semantic.DeepEqual(before.Object[field], values) {
			return true
		}
	}
	return false
}

// normaliseObject checks the identity of an object and converts its values to the types of the API
// machinery.
func normaliseObject(obj *unstructured.Unstructured) error {
	if obj.GetAPIVersion() == "" || obj.GetKind() == "" || obj.GetName() == "" {
		return errors.New("apiVersion, kind and metadata.name are required")
	}
	if isPlain(obj.Object) {
		return nil
	}
	raw, err := obj.MarshalJSON()
	if err != nil {
		return err
	}
	return obj.UnmarshalJSON(raw)
}
