// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/internal/suggest"
	"github.com/pergola-dev/pergola/schemas"
)

// checkImages finds overrides of unknown images, invalid images, and overrides without effect or
// with an unlikely one.
func (c *landscapeCheck) checkImages() {
	vector, err := ReadImageVector(c.catalogue)
	if err != nil {
		return // rendering reports it; the landscape is not to blame
	}
	c.checkGardenlets(vector)
	names := imageNames(vector)
	overrides := c.landscape.Config.Spec.Images
	for i, image := range overrides {
		field := fmt.Sprintf("spec.images[%d]", i)
		if !slices.Contains(names, image.Name) {
			hint := ", which has " + strings.Join(names, ", ")
			if guess := suggest.Closest(image.Name, names); guess != "" {
				hint = fmt.Sprintf("; did you mean %q?", guess)
			}
			c.configError(field+".name", ruleImage, schemas.TypeNotSupported, "no image %q in %s%s", image.Name, cataloguePath(ImageVectorFile), hint)
		}
		if image.Repository != "" && !imageRepositoryPattern.MatchString(image.Repository) {
			c.configError(field+".repository", ruleImage, schemas.TypeInvalid, "%q is not an image repository such as registry.example.org/team/app, without scheme and tag", image.Repository)
		}
		if image.Tag != "" && !imageTagPattern.MatchString(image.Tag) {
			c.configError(field+".tag", ruleImage, schemas.TypeInvalid, "%q is neither a tag such as v1.2.3 nor a digest: sha256: and 64 hexadecimal digits, alone or after a tag and @", image.Tag)
		}
		if image.Tag == "latest" {
			c.configWarning(field+".tag", ruleImage, schemas.TypeInvalid, "latest can become another image without a change in Git; write the version, or a digest")
		}
		found := len(c.violations)
		c.checkGardenerImage(vector, field, Image{Name: image.Name, Repository: image.Repository, Tag: image.Tag})
		if len(c.violations) == found { // else a wrong version is already reported
			c.checkOverriddenImage(vector, field, image)
		}
		if image.Repository == "" && image.Tag == "" {
			c.configWarning(field, ruleImage, schemas.TypeRequired, "it changes nothing; give a repository or a tag, or remove it")
		} else if later := slices.IndexFunc(overrides[i+1:], func(other landscapev1alpha1.ImageOverride) bool { return isReplacement(other, image) }); later >= 0 {
			c.configWarning(field, ruleImage, schemas.TypeDuplicate, "it changes nothing, since spec.images[%d] replaces all of it; remove one of them", i+1+later)
		} else if later := slices.IndexFunc(overrides[i+1:], func(other landscapev1alpha1.ImageOverride) bool {
			return image.Tag != "" && isReplacement(other, landscapev1alpha1.ImageOverride{Name: image.Name, Version: image.Version, Tag: image.Tag})
		}); later >= 0 {
			c.configWarning(field+".tag", ruleImage, schemas.TypeDuplicate, "it has no effect, since spec.images[%d].tag replaces it; remove one of them", i+1+later)
		}
		if image.Version == "" {
			c.checkKubernetesImage(vector, field, image, nil)
		} else if allowed, err := semver.NewConstraint(image.Version); err != nil {
			c.configError(field+".version", ruleImage, schemas.TypeInvalid, "%q is not a version range such as >= 1.33", image.Version)
		} else if versions, all := c.possibleVersions(); all && !slices.ContainsFunc(versions, func(v *semver.Version) bool { return canMatch(allowed, v) }) {
			c.configWarning(field+".version", ruleImage, schemas.TypeInvalid, "it changes nothing, since no cluster has or can get such a Kubernetes version; the versions are %s", versionList(versions))
		} else {
			c.checkKubernetesImage(vector, field, image, allowed)
		}
	}
}

// checkOverriddenImage compares an override with the replaced image. It warns if both are equal, if
// the v prefix of the tag differs, and if the repository belongs to another image.
func (c *landscapeCheck) checkOverriddenImage(vector []Image, field string, override landscapev1alpha1.ImageOverride) {
	own, same := []Image{}, override.Repository != "" || override.Tag != ""
	other := ""
	for _, image := range vector {
		if image.Name == override.Name {
			own = append(own, image)
			same = same && (override.Repository == "" || override.Repository == image.Repository) && (override.Tag == "" || override.Tag == image.Tag)
		} else if override.Repository != "" && path.Base(image.Repository) == path.Base(override.Repository) {
			other = image.Name
		}
	}
	if len(own) == 0 {
		return
	}
	if same {
		c.configWarning(field, ruleImage, schemas.TypeInvalid, "it changes nothing, since %s has the same image; remove it", cataloguePath(ImageVectorFile))
		return
	}
	if other != "" && !slices.ContainsFunc(own, func(image Image) bool { return path.Base(image.Repository) == path.Base(override.Repository) }) {
		c.configWarning(field+".repository", ruleImage, schemas.TypeInvalid, "%q is the repository of the image %s, not of %s", override.Repository, other, override.Name)
	}
	for _, image := range own {
		if override.Repository != "" && path.Base(image.Repository) != path.Base(override.Repository) {
			continue // another program has its own tags
		}
		if _, err := semver.StrictNewVersion(override.Tag); err == nil && strings.HasPrefix(image.Tag, "v") {
			c.configWarning(field+".tag", ruleImage, schemas.TypeInvalid, "tags of this image begin with v, as %s does; did you mean v%s?", image.Tag, override.Tag)
			return
		}
		if version, has := strings.CutPrefix(override.Tag, "v"); has && image.Tag != "" && !strings.HasPrefix(image.Tag, "v") {
			if _, err := semver.StrictNewVersion(version); err == nil {
				c.configWarning(field+".tag", ruleImage, schemas.TypeInvalid, "tags of this image do not begin with v, as %s does not; did you mean %s?", image.Tag, version)
				return
			}
		}
	}
}

// isReplacement reports whether later replaces all of an earlier override.
func isReplacement(later, earlier landscapev1alpha1.ImageOverride) bool {
	return later.Name == earlier.Name && (later.Version == "" || later.Version == earlier.Version) &&
		(later.Repository != "" || earlier.Repository == "") && (later.Tag != "" || earlier.Tag == "")
}

// checkKubernetesImage warns if the minor release of a Kubernetes image differs from that of one of
// its clusters. Without a tag in the image vector, the tag is the version of the cluster.
func (c *landscapeCheck) checkKubernetesImage(vector []Image, field string, override landscapev1alpha1.ImageOverride, allowed *semver.Constraints) {
	if !slices.ContainsFunc(vector, func(image Image) bool { return image.Name == override.Name && image.Tag == "" }) {
		return
	}
	for _, version := range c.declaredVersions() {
		if (allowed == nil || canMatch(allowed, version)) && isOtherMinor(version, override.Tag) {
			c.configWarning(field+".tag", ruleImage, schemas.TypeInvalid,
				"%s is not the minor release of a cluster with Kubernetes %s; remove the tag to use each cluster's version, or set a version range",
				override.Tag, version.Original())
			return
		}
	}
}

// declaredVersions returns the Kubernetes versions of Gardens and Shoots.
func (c *landscapeCheck) declaredVersions() []*semver.Version {
	var texts []string
	for i := range c.landscape.Declarations {
		d := &c.landscape.Declarations[i]
		for kind, field := range map[string][]string{"Garden": {"spec", "virtualCluster", "kubernetes", "version"}, "Shoot": {"spec", "kubernetes", "version"}} {
			if d.GroupVersionKind().Kind == kind {
				text, _, _ := unstructured.NestedString(d.Object().Object, field...)
				texts = append(texts, text)
			}
		}
	}
	return parseVersions(texts)
}

// possibleVersions returns the declared versions, the versions in cloud profiles, and the versions
// of existing clusters. all is false if Shoots or cloud profiles are declared elsewhere.
func (c *landscapeCheck) possibleVersions() (versions []*semver.Version, all bool) {
	all = !slices.ContainsFunc(c.landscape.Config.Spec.External, func(e landscapev1alpha1.ExternalObject) bool {
		return slices.Contains([]string{"Shoot", "CloudProfile", "NamespacedCloudProfile"}, e.Kind)
	})
	texts := []string{DefaultKubernetesVersion}
	facts, _ := RecordedFacts(c.landscape) // owners report the errors
	for _, of := range facts {
		for _, cluster := range of.Clusters {
			texts = append(texts, cluster.KubernetesVersion)
		}
	}
	for i := range c.landscape.Declarations {
		if d := &c.landscape.Declarations[i]; strings.HasSuffix(d.GroupVersionKind().Kind, "CloudProfile") {
			offered, _, _ := unstructured.NestedSlice(d.Object().Object, "spec", "kubernetes", "versions")
			for _, item := range offered {
				entry, _ := item.(map[string]any)
				text, _ := entry["version"].(string)
				texts = append(texts, text)
			}
		}
	}
	return slices.SortedFunc(slices.Values(append(parseVersions(texts), c.declaredVersions()...)), (*semver.Version).Compare), all
}

// parseVersions skips invalid versions, which have their own rules.
func parseVersions(texts []string) []*semver.Version {
	known := map[string]*semver.Version{}
	for _, text := range texts {
		if version, err := semver.NewVersion(text); err == nil {
			known[text] = version
		}
	}
	return slices.SortedFunc(maps.Values(known), (*semver.Version).Compare)
}

// canMatch reports whether a version is in a range. A version without a patch level matches if any
// patch level does.
func canMatch(allowed *semver.Constraints, version *semver.Version) bool {
	if allowed.Check(version) {
		return true
	}
	newest := semver.New(version.Major(), version.Minor(), 999, "", "")
	return strings.Count(version.Original(), ".") < 2 && allowed.Check(newest)
}

func versionList(versions []*semver.Version) string {
	words := make([]string, 0, len(versions))
	for _, version := range versions {
		words = append(words, version.Original())
	}
	return strings.Join(slices.Compact(words), ", ")
}
