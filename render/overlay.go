package render

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// bundleAnnotation carries the bundle of an object through an overlay build. An
// overlay that adds an object names the bundle with it.
const bundleAnnotation = "render.pergola.dev/bundle"

// indexAnnotation carries the origin of an object through an overlay build.
const indexAnnotation = "render.pergola.dev/index"

// Overlay is a kustomization that a landscape, or one of its layers, puts on top of a component.
type Overlay struct {
	// Component is "<owner kind>/<name>".
	Component string
	// FS and Dir are the folder.
	FS  fs.FS
	Dir string
	// Name of the folder for people: relative to the landscape.
	Name string
}

// applyOverlay builds the landscape's kustomization of a component on top of all
// its bundles. An overlay that changes nothing is an error: most likely a patch
// does not match what it was written for any more.
func applyOverlay(overlay Overlay, bundles []Bundle) error {
	memory, dir := filesys.MakeFsInMemory(), overlay.Name
	if err := copyInto(memory, overlay.FS, overlay.Dir, "/overlay"); err != nil {
		return fmt.Errorf("overlay %s: %w", dir, err)
	}
	manifest, index, err := overlayInput(bundles)
	if err != nil {
		return fmt.Errorf("overlay %s: %w", dir, err)
	}
	if err := memory.WriteFile("/overlay/zz-component/objects.yaml", manifest); err != nil {
		return err
	}
	if err := memory.WriteFile("/overlay/zz-component/kustomization.yaml", []byte("resources: [objects.yaml]\n")); err != nil {
		return err
	}
	if err := addResource(memory, "/overlay/kustomization.yaml", "zz-component"); err != nil {
		return fmt.Errorf("overlay %s: %w", dir, err)
	}
	place := func(p string) string { return path.Join(dir, strings.TrimPrefix(p, "/overlay")) }
	objects, err := kustomizeBuild(memory, "/overlay", place)
	if err != nil {
		return fmt.Errorf("overlay %s: %w", dir, err)
	}
	return distribute(dir, objects, index, bundles)
}

// overlayInput writes the objects of all bundles, marked with where they belong.
func overlayInput(bundles []Bundle) ([]byte, []Object, error) {
	var index, marked []Object
	for _, b := range bundles {
		for _, o := range b.Objects {
			c := o.DeepCopy()
			c.SetAnnotations(merged(c.GetAnnotations(), map[string]string{
				bundleAnnotation: b.Name, indexAnnotation: fmt.Sprint(len(index)),
			}))
			marked = append(marked, Object{Unstructured: c})
			index = append(index, o)
		}
	}
	manifest, err := ManifestYAML(marked)
	return manifest, index, err
}

func addResource(memory filesys.FileSystem, file, resource string) error {
	data, err := memory.ReadFile(file)
	if err != nil {
		return fmt.Errorf("kustomization.yaml is missing")
	}
	var k types.Kustomization
	if err := k.Unmarshal(data); err != nil {
		return err
	}
	k.Resources = append([]string{resource}, k.Resources...)
	out, err := yaml.Marshal(k)
	if err != nil {
		return err
	}
	return memory.WriteFile(file, out)
}

// distribute puts the objects of the overlay build back into their bundles.
func distribute(dir string, objects, index []Object, bundles []Bundle) error {
	byName := map[string]*Bundle{}
	for i := range bundles {
		byName[bundles[i].Name] = &bundles[i]
		bundles[i].Objects = nil
	}
	changed := len(objects) != len(index)
	for _, obj := range objects {
		annotations := obj.GetAnnotations()
		name, at := annotations[bundleAnnotation], annotations[indexAnnotation]
		delete(annotations, bundleAnnotation)
		delete(annotations, indexAnnotation)
		if len(annotations) == 0 {
			annotations = nil
		}
		obj.SetAnnotations(annotations)
		if at != "" {
			var i int
			if _, err := fmt.Sscan(at, &i); err != nil || i >= len(index) {
				return fmt.Errorf("overlay %s: annotation %s was changed", dir, indexAnnotation)
			}
			obj.Origin = index[i].Origin
			if !equality.Semantic.DeepEqual(obj.Object, index[i].Object) {
				obj.Origin = obj.Origin.overlaid(dir)
				changed = true
			}
		} else {
			obj.Origin = obj.Origin.overlaid(dir)
		}
		var before *unstructured.Unstructured
		if i, err := strconv.Atoi(at); err == nil {
			before = index[i].Unstructured
		}
		if setsSecretData(before, obj.Unstructured) {
			return fmt.Errorf("overlay %s sets data of Secret %s: a render is readable for everyone; declare the Secret in the landscape, encrypted with SOPS, and refer to it",
				dir, obj.GetName())
		}
		if name == "" && len(bundles) == 1 {
			name = bundles[0].Name
		}
		b, ok := byName[name]
		if !ok {
			return fmt.Errorf("overlay %s adds %s %s: say which bundle it belongs to by the annotation %s (one of %s)",
				dir, obj.GetKind(), obj.GetName(), bundleAnnotation, strings.Join(sortedKeys(byName), ", "))
		}
		b.Objects = append(b.Objects, obj)
	}
	if !changed {
		return fmt.Errorf("overlay %s changes nothing: its patches match no object of the component", dir)
	}
	return nil
}

// setsSecretData is true when an overlay adds a Secret with values or changes those of one.
func setsSecretData(before, obj *unstructured.Unstructured) bool {
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

// normalise makes sure that an object has an identity and holds only the types the API machinery copies.
func normalise(obj *unstructured.Unstructured) error {
	if obj.GetAPIVersion() == "" || obj.GetKind() == "" || obj.GetName() == "" {
		return errors.New("apiVersion, kind and metadata.name are required")
	}
	raw, err := obj.MarshalJSON()
	if err != nil {
		return err
	}
	return obj.UnmarshalJSON(raw)
}
