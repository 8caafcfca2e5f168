package render

import (
	"fmt"
	"io/fs"
	"strings"

	"github.com/Masterminds/semver/v3"
	"sigs.k8s.io/yaml"
)

// ImageVectorFile is where the catalogue lists its images.
const ImageVectorFile = "imagevector.yaml"

// Image is an entry of the image vector, in upstream's format: an entry counts for a
// Kubernetes version when its constraints allow it.
type Image struct {
	Name       string `json:"name"`
	Repository string `json:"repository"`
	// Tag may be left out for images that are tagged with the Kubernetes version.
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

// ResolveImages picks, for each name, the entry that allows both versions;
// overrides (of a landscape) come before the catalogue. The most constrained entry wins.
func ResolveImages(vector, overrides []Image, runtimeVersion, targetVersion string) (map[string]string, error) {
	runtime, err := semver.NewVersion(runtimeVersion)
	if err != nil {
		return nil, fmt.Errorf("Kubernetes version %q: %w", runtimeVersion, err)
	}
	target, err := semver.NewVersion(targetVersion)
	if err != nil {
		return nil, fmt.Errorf("Kubernetes version %q: %w", targetVersion, err)
	}
	type candidate struct {
		image Image
		score int
	}
	best := map[string]candidate{}
	consider := func(images []Image, bonus int) error {
		for _, image := range images {
			ok, constrained, err := matches(image, runtime, target)
			if err != nil {
				return err
			}
			if !ok {
				continue
			}
			if score := constrained + bonus; score > best[image.Name].score || best[image.Name].image.Name == "" {
				base := best[image.Name].image
				if image.Repository == "" {
					image.Repository = base.Repository
				}
				if image.Tag == "" {
					image.Tag = base.Tag
				}
				best[image.Name] = candidate{image, score}
			}
		}
		return nil
	}
	if err := consider(vector, 0); err != nil {
		return nil, err
	}
	if err := consider(overrides, 10); err != nil {
		return nil, fmt.Errorf("image overrides of the landscape: %w", err)
	}
	out := make(map[string]string, len(best))
	for name, c := range best {
		out[name] = reference(c.image, target)
	}
	return out, nil
}

func matches(image Image, runtime, target *semver.Version) (ok bool, constrained int, err error) {
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

func reference(image Image, target *semver.Version) string {
	tag := image.Tag
	if tag == "" {
		tag = "v" + target.String()
	}
	if strings.HasPrefix(tag, "sha256:") {
		return image.Repository + "@" + tag
	}
	return image.Repository + ":" + tag
}
