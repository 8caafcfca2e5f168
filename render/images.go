// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"sigs.k8s.io/yaml"
)

// ImageVectorFile lists the images of the catalogue.
const ImageVectorFile = "imagevector.yaml"

// Image is an entry of the image vector in upstream's format. It applies to the Kubernetes versions
// that its constraints allow.
type Image struct {
	Name       string `json:"name"`
	Repository string `json:"repository"`
	// Tag may be empty for images that are tagged with the Kubernetes version.
	Tag string `json:"tag,omitempty"`
	// RuntimeVersion and TargetVersion are semantic version constraints.
	RuntimeVersion string `json:"runtimeVersion,omitempty"`
	TargetVersion  string `json:"targetVersion,omitempty"`
}

// ReadImageVector reads the image vector of a catalogue.
func ReadImageVector(catalogue fs.FS) ([]Image, error) {
	data, err := fs.ReadFile(catalogue, ImageVectorFile)
	if err != nil {
		return nil, fmt.Errorf("read the image vector: %w", err)
	}
	var vector struct {
		Images []Image `json:"images"`
	}
	if err := yaml.UnmarshalStrict(data, &vector); err != nil {
		return nil, fmt.Errorf("%s: %w", cataloguePath(ImageVectorFile), err)
	}
	return vector.Images, nil
}

// imageNames returns the sorted names in an image vector.
func imageNames(vector []Image) []string {
	names := make([]string, 0, len(vector))
	for _, image := range vector {
		names = append(names, image.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// ResolveImages picks, for each name, the most constrained entry of the vector that allows both
// versions. Overrides of a landscape replace the fields that they set; later ones win.
func ResolveImages(vector, overrides []Image, runtimeVersion, targetVersion string) (map[string]string, error) {
	runtime, err := semver.NewVersion(runtimeVersion)
	if err != nil {
		return nil, fmt.Errorf("version %q of Kubernetes: %w", runtimeVersion, err)
	}
	target, err := semver.NewVersion(targetVersion)
	if err != nil {
		return nil, fmt.Errorf("version %q of Kubernetes: %w", targetVersion, err)
	}
	best, scores, known := map[string]Image{}, map[string]int{}, map[string]bool{}
	for _, image := range vector {
		known[image.Name] = true
		ok, constrained, err := matchImage(image, runtime, target)
		if err != nil {
			return nil, err
		}
		if _, found := best[image.Name]; ok && (!found || constrained > scores[image.Name]) {
			best[image.Name], scores[image.Name] = image, constrained
		}
	}
	for _, image := range overrides {
		if !known[image.Name] {
			return nil, fmt.Errorf("image overrides of the landscape: no image %q in %s", image.Name, cataloguePath(ImageVectorFile))
		}
		ok, _, err := matchImage(image, runtime, target)
		if err != nil {
			return nil, fmt.Errorf("image overrides of the landscape: %w", err)
		}
		if ok {
			best[image.Name] = applyOverride(best[image.Name], image)
		}
	}
	out := make(map[string]string, len(best))
	for name, image := range best {
		out[name] = imageReference(image, target)
	}
	return out, nil
}

// applyOverride fills fields that the override leaves empty from the image.
func applyOverride(image, override Image) Image {
	if override.Repository == "" {
		override.Repository = image.Repository
	}
	if override.Tag == "" {
		override.Tag = image.Tag
	}
	return override
}

func matchImage(image Image, runtime, target *semver.Version) (ok bool, constrained int, err error) {
	for _, c := range []struct {
		constraint string
		version    *semver.Version
	}{{image.RuntimeVersion, runtime}, {image.TargetVersion, target}} {
		if c.constraint == "" {
			continue
		}
		constraint, err := semver.NewConstraint(c.constraint)
		if err != nil {
			return false, 0, fmt.Errorf("image %s: version constraint %q: %w", image.Name, c.constraint, err)
		}
		if !constraint.Check(c.version) {
			return false, 0, nil
		}
		constrained++
	}
	return true, constrained, nil
}

func imageReference(image Image, target *semver.Version) string {
	tag := image.Tag
	if tag == "" {
		tag = "v" + target.String()
	}
	if strings.HasPrefix(tag, "sha256:") {
		return image.Repository + "@" + tag
	}
	return image.Repository + ":" + tag
}
