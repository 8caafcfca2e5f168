package schemas

import (
	"regexp"
	"slices"
	"time"

	"github.com/Masterminds/semver/v3"
)

// stages lists the classifications of a version in their order. Before the first one starts, the
// version is unavailable.
var stages = [...]string{"preview", "supported", "deprecated", "expired"}

var kubernetesVersionForm = regexp.MustCompile(`^([0-9]+\.){2}[0-9]+$`)

func profileKubernetesVersions(in ruleInput) []finding {
	r, versions := &report{}, tree{value: in.object}.at("spec", "kubernetes", "versions")
	lifecycles := in.landscape.gardenerGateOn("VersionClassificationLifecycle")
	var latest tree
	var newest *semver.Version
	for _, version := range versions.items() {
		text := version.at("version").text()
		if !kubernetesVersionForm.MatchString(text) {
			r.add(version.at("version").as(version.path), TypeInvalid, "the version %q has not the form 1.34.1", text)
		}
		r.expirable(version, lifecycles)
		parsed, err := semver.NewVersion(text)
		if err != nil {
			r.add(version.at("version").as(versions.path), TypeInvalid, "the newest version cannot be told, because %q is no version", text)
		} else if newest == nil || parsed.GreaterThan(newest) {
			newest, latest = parsed, version
		}
	}
	r.supportedOnce(versions.items())
	if date := latest.at("expirationDate"); date.set() {
		r.add(date.as(versions.path+"[].expirationDate"), TypeInvalid, "the newest version %s must not expire", newest)
	}
	if stages := latest.at("lifecycle").items(); len(stages) > 0 && stages[len(stages)-1].at("classification").text() == "expired" {
		r.add(stages[len(stages)-1].at("classification").as(versions.path+"[].lifecycle"), TypeInvalid, "the newest version %s must not expire", newest)
	}
	return r.findings
}

// profileImageVersions checks the versions of machine images, which need not have the form of
// Kubernetes versions.
func profileImageVersions(in ruleInput) []finding {
	r := &report{}
	lifecycles := in.landscape.gardenerGateOn("VersionClassificationLifecycle")
	images := tree{value: in.object}.at("spec", "machineImages")
	r.newestImages(images)
	for _, image := range images.items() {
		for _, version := range image.at("versions").items() {
			r.imageVersion(version)
			r.expirable(version, lifecycles)
		}
		r.supportedOnce(image.at("versions").items())
	}
	return r.findings
}

// newestImages reports versions that do not parse, because the newest image is then unknown. Like
// upstream, it reports only the first one, at the list as a whole.
func (r *report) newestImages(images tree) {
	for _, image := range images.items() {
		for _, version := range image.at("versions").items() {
			text := version.at("version").text()
			if _, err := semver.NewVersion(text); err != nil {
				r.add(version.at("version").as(images.path), TypeInvalid, "%q is no version, so that the newest version of the image %q cannot be told", text, image.at("name").text())
				return
			}
		}
	}
}

// imageVersion checks the version of a machine image and the versions that it refers to.
func (r *report) imageVersion(version tree) {
	name := version.at("version")
	if name.text() == "" {
		r.add(name, TypeRequired, "must be the version of the image")
	}
	if _, err := semver.NewVersion(name.text()); err != nil {
		r.add(name, TypeInvalid, "%q is no semantic version such as 1.2.3; where the provider knows the image by another one, map it in providerConfig", name.text())
	}
	if least := version.at("inPlaceUpdates", "minVersionForUpdate"); least.set() {
		if _, err := semver.NewVersion(least.text()); err != nil {
			r.add(least.as(version.at("minVersionForInPlaceUpdate").path), TypeInvalid, "inPlaceUpdates.minVersionForUpdate %q is no semantic version such as 1.2.3", least.text())
		}
	}
	if constraint := version.at("kubeletVersionConstraint"); constraint.set() {
		if _, err := semver.NewConstraint(constraint.text()); err != nil {
			r.add(constraint, TypeInvalid, "%q is no constraint such as \">= 1.33\"", constraint.text())
		}
	}
}

// expirable checks the classifications of a version over time.
func (r *report) expirable(version tree, lifecycles bool) {
	lifecycle, classification := version.at("lifecycle"), version.at("classification")
	if len(lifecycle.items()) > 0 && !lifecycles {
		r.add(lifecycle, TypeForbidden, "needs the feature gate VersionClassificationLifecycle of gardener-apiserver, which is off; use classification and expirationDate")
		return
	}
	if classification.set() {
		r.oneOf(classification, stages[:]...)
	}
	if !lifecycle.set() && classification.text() == "expired" {
		r.add(classification, TypeForbidden, "must not be \"expired\"; set expirationDate instead")
	}
	for _, field := range []tree{classification, version.at("expirationDate")} {
		if len(lifecycle.items()) > 0 && field.set() {
			r.add(field.as(version.path), TypeForbidden, "must not set classification or expirationDate together with lifecycle")
			break // upstream reports the version once
		}
	}
	seen, last, started := map[string]bool{}, -1, time.Time{}
	for i, stage := range lifecycle.items() {
		name := stage.at("classification")
		order := slices.Index(stages[:], name.text())
		r.oneOf(name, stages[:]...)
		if seen[name.text()] {
			r.add(name, TypeDuplicate, "the stage %q is listed already", name.text())
		}
		if order >= 0 && order < last {
			r.add(name, TypeInvalid, "%q is out of order: the stages are %s", name.text(), quotedList(stages[:]))
		}
		seen[name.text()], last = true, order
		start, err := time.Parse(time.RFC3339, stage.at("startTime").text())
		switch {
		case !stage.at("startTime").set() && i > 0:
			r.add(stage, TypeRequired, "must set startTime: only the first stage may begin without one")
		case err == nil && start.Before(started):
			r.add(stage.at("startTime").as(stage.path), TypeInvalid, "begins at %s, before the stage that stands before it", stage.at("startTime").text())
		}
		if err == nil {
			started = start
		}
	}
}

// supportedOnce reports supported versions that share a minor version: the update target of Shoots
// would be ambiguous.
func (r *report) supportedOnce(versions []tree) {
	supported := func(version tree) bool {
		return len(version.at("lifecycle").items()) == 0 && version.at("classification").text() == "supported"
	}
	for i, version := range versions {
		parsed, err := semver.NewVersion(version.at("version").text())
		if err != nil || !supported(version) {
			continue
		}
		for j, other := range versions {
			against, err := semver.NewVersion(other.at("version").text())
			if i != j && err == nil && supported(other) && !against.Equal(parsed) && against.Major() == parsed.Major() && against.Minor() == parsed.Minor() {
				r.add(version.at("classification").as(version.path), TypeForbidden, "only one version of %d.%d may be supported, but %s is, too; make the older one deprecated", parsed.Major(), parsed.Minor(), against)
				break
			}
		}
	}
}
