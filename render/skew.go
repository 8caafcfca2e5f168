// SPDX-License-Identifier: Apache-2.0

package render

import (
	"io/fs"
	"path"
	"strings"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/schemas"
)

// gardenerImage is the catalogue's image whose tag is the rendered version of Gardener.
const gardenerImage = "gardener-apiserver"

// maxGardenletSkew is the number of minor releases that a gardenlet may be behind the API server;
// it is never ahead (upstream: docs/deployment/version_skew_policy.md).
const maxGardenletSkew = 2

// GardenerVersion is the Gardener release of a catalogue's images, such as v1.150.0; it is empty if
// it has none.
func GardenerVersion(catalogue fs.FS) (string, error) {
	images, err := ReadImageVector(catalogue)
	if err != nil {
		return "", err
	}
	return gardenerTag(images), nil
}

func gardenerTag(images []Image) string {
	for _, image := range images {
		if image.Name == gardenerImage {
			return image.Tag
		}
	}
	return ""
}

// isOtherMinor reports whether a tag is a version of another minor release. It ignores digests and
// tags that are not a version.
func isOtherMinor(gardener *semver.Version, tag string) bool {
	version, err := semver.NewVersion(tag)
	return err == nil && (version.Major() != gardener.Major() || version.Minor() != gardener.Minor())
}

// checkGardenerImage warns of images of Gardener from a different minor release than the rendered
// objects.
func (c *landscapeCheck) checkGardenerImage(vector []Image, field string, override Image) {
	if name := path.Base(override.Repository); override.Repository != "" && name != override.Name {
		return // another program, with its own versions
	}
	tag := gardenerTag(vector)
	gardener, err := semver.NewVersion(tag)
	if err != nil || !isOtherMinor(gardener, override.Tag) {
		return
	}
	for _, image := range vector {
		if image.Name == override.Name && image.Tag == tag {
			c.configWarning(field+".tag", ruleImage, schemas.TypeInvalid,
				"%s is another minor release of Gardener than %s of the catalogue; use a patch release of v%d.%d, or another catalogue",
				override.Tag, tag, gardener.Major(), gardener.Minor())
			return
		}
	}
}

// checkGardenlets warns of gardenlets that are ahead of the API server or too far behind.
func (c *landscapeCheck) checkGardenlets(vector []Image) {
	gardener, err := semver.NewVersion(gardenerTag(vector))
	if err != nil {
		return
	}
	for i := range c.landscape.Declarations {
		d := &c.landscape.Declarations[i]
		var fields [][]string
		switch d.GroupVersionKind().Kind {
		case "Gardenlet":
			fields = [][]string{{"spec", "deployment", "image", "tag"}, {"spec", "deployment", "helm", "ociRepository", "tag"}, {"spec", "deployment", "helm", "ociRepository", "ref"}}
		case "ManagedSeed":
			fields = [][]string{{"spec", "gardenlet", "deployment", "image", "tag"}}
		}
		for _, field := range fields {
			text, _, err := unstructured.NestedString(d.Object().Object, field...)
			tag, _, _ := strings.Cut(text[strings.LastIndex(text, ":")+1:], "@")
			version, bad := semver.NewVersion(tag)
			if err != nil || bad != nil || strings.Contains(text, "@") {
				continue
			}
			behind := int64(gardener.Minor()) - int64(version.Minor())
			if version.Major() == gardener.Major() && behind >= 0 && behind <= maxGardenletSkew {
				continue
			}
			f := declaredFinding(d, strings.Join(field, "."), ruleSkew,
				tag+" is incompatible with Gardener "+gardener.Original()+" of the catalogue: a gardenlet is at most two minor releases older than the API server, and never newer")
			f.warning = true
			c.add(f)
		}
	}
}
