// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"regexp"
	"slices"
	"time"

	"github.com/Masterminds/semver/v3"
)

// versionStages lists the classifications of a version in their order. Before the first one starts,
// the version is unavailable.
var versionStages = [...]string{"preview", "supported", "deprecated", "expired"}

var kubernetesVersionPattern = regexp.MustCompile(`^([0-9]+\.){2}[0-9]+$`)

func checkProfileKubernetesVersions(in ruleInput) []finding {
	r, versions := &findingCollector{}, fieldValue{value: in.object}.lookup("spec", "kubernetes", "versions")
	lifecycles := in.landscape.isGardenerGateOn("VersionClassificationLifecycle")
	var latest fieldValue
	var newest *semver.Version
	for _, version := range versions.items() {
		text := version.lookup("version").text()
		if !kubernetesVersionPattern.MatchString(text) {
			r.add(version.lookup("version").withPath(version.path), TypeInvalid, "the version %q does not have the form 1.34.1", text)
		}
		r.checkClassifications(version, lifecycles)
		parsed, err := semver.NewVersion(text)
		if err != nil {
			r.add(version.lookup("version").withPath(versions.path), TypeInvalid, "the newest version is unknown, because %q is not a version", text)
		} else if newest == nil || parsed.GreaterThan(newest) {
			newest, latest = parsed, version
		}
	}
	r.checkSingleSupportedVersion(versions.items())
	if date := latest.lookup("expirationDate"); date.isSet() {
		r.add(date.withPath(versions.path+"[].expirationDate"), TypeInvalid, "the newest version %s must not expire", newest)
	}
	if stages := latest.lookup("lifecycle").items(); len(stages) > 0 && stages[len(stages)-1].lookup("classification").text() == "expired" {
		r.add(stages[len(stages)-1].lookup("classification").withPath(versions.path+"[].lifecycle"), TypeInvalid, "the newest version %s must not expire", newest)
	}
	return r.findings
}

// checkProfileImageVersions checks the versions of machine images, which need not have the form of
// Kubernetes versions.
func checkProfileImageVersions(in ruleInput) []finding {
	r := &findingCollector{}
	lifecycles := in.landscape.isGardenerGateOn("VersionClassificationLifecycle")
	images := fieldValue{value: in.object}.lookup("spec", "machineImages")
	r.checkImageVersionsParse(images)
	for _, image := range images.items() {
		for _, version := range image.lookup("versions").items() {
			r.checkImageVersion(version)
			r.checkClassifications(version, lifecycles)
		}
		r.checkSingleSupportedVersion(image.lookup("versions").items())
	}
	return r.findings
}

// checkImageVersionsParse reports versions that do not parse, because the newest image is then
// unknown. Like upstream, it reports only the first one, at the list as a whole.
func (r *findingCollector) checkImageVersionsParse(images fieldValue) {
	for _, image := range images.items() {
		for _, version := range image.lookup("versions").items() {
			text := version.lookup("version").text()
			if _, err := semver.NewVersion(text); err != nil {
				r.add(version.lookup("version").withPath(images.path), TypeInvalid, "%q is not a version, so the newest version of the image %q is unknown", text, image.lookup("name").text())
				return
			}
		}
	}
}

// checkImageVersion checks the version of a machine image and the versions that it refers to.
func (r *findingCollector) checkImageVersion(version fieldValue) {
	name := version.lookup("version")
	if name.text() == "" {
		r.add(name, TypeRequired, "must be the version of the image")
	}
	if _, err := semver.NewVersion(name.text()); err != nil {
		r.add(name, TypeInvalid, "%q is not a semantic version such as 1.2.3; if the provider uses another version, map it in providerConfig", name.text())
	}
	if least := version.lookup("inPlaceUpdates", "minVersionForUpdate"); least.isSet() {
		if _, err := semver.NewVersion(least.text()); err != nil {
			r.add(least.withPath(version.lookup("minVersionForInPlaceUpdate").path), TypeInvalid, "inPlaceUpdates.minVersionForUpdate %q is not a semantic version such as 1.2.3", least.text())
		}
	}
	if constraint := version.lookup("kubeletVersionConstraint"); constraint.isSet() {
		if _, err := semver.NewConstraint(constraint.text()); err != nil {
			r.add(constraint, TypeInvalid, "%q is not a constraint such as \">= 1.33\"", constraint.text())
		}
	}
}

// checkClassifications checks the classifications of a version over time.
func (r *findingCollector) checkClassifications(version fieldValue, lifecycles bool) {
	lifecycle, classification := version.lookup("lifecycle"), version.lookup("classification")
	if len(lifecycle.items()) > 0 && !lifecycles {
		r.add(lifecycle, TypeForbidden, "needs the feature gate VersionClassificationLifecycle of gardener-apiserver, which is off; use classification and expirationDate")
		return
	}
	if classification.isSet() {
		r.requireOneOf(classification, versionStages[:]...)
	}
	if !lifecycle.isSet() && classification.text() == "expired" {
		r.add(classification, TypeForbidden, "must not be \"expired\"; set expirationDate instead")
	}
	for _, field := range []fieldValue{classification, version.lookup("expirationDate")} {
		if len(lifecycle.items()) > 0 && field.isSet() {
			r.add(field.withPath(version.path), TypeForbidden, "must not set classification or expirationDate together with lifecycle")
			break // upstream reports the version once
		}
	}
	seen, last, started := map[string]bool{}, -1, time.Time{}
	for i, stage := range lifecycle.items() {
		name := stage.lookup("classification")
		order := slices.Index(versionStages[:], name.text())
		r.requireOneOf(name, versionStages[:]...)
		if seen[name.text()] {
			r.add(name, TypeDuplicate, "the stage %q is already listed", name.text())
		}
		if order >= 0 && order < last {
			r.add(name, TypeInvalid, "%q is out of order: the stages are %s", name.text(), quotedList(versionStages[:]))
		}
		seen[name.text()], last = true, order
		start, err := time.Parse(time.RFC3339, stage.lookup("startTime").text())
		switch {
		case !stage.lookup("startTime").isSet() && i > 0:
			r.add(stage, TypeRequired, "must set startTime: only the first stage may begin without one")
		case err == nil && start.Before(started):
			r.add(stage.lookup("startTime").withPath(stage.path), TypeInvalid, "begins at %s, before the previous stage", stage.lookup("startTime").text())
		}
		if err == nil {
			started = start
		}
	}
}

// checkSingleSupportedVersion reports supported versions that share a minor version: the update
// target of Shoots would be ambiguous.
func (r *findingCollector) checkSingleSupportedVersion(versions []fieldValue) {
	supported := func(version fieldValue) bool {
		return len(version.lookup("lifecycle").items()) == 0 && version.lookup("classification").text() == "supported"
	}
	for i, version := range versions {
		parsed, err := semver.NewVersion(version.lookup("version").text())
		if err != nil || !supported(version) {
			continue
		}
		for j, other := range versions {
			against, err := semver.NewVersion(other.lookup("version").text())
			if i != j && err == nil && supported(other) && !against.Equal(parsed) && against.Major() == parsed.Major() && against.Minor() == parsed.Minor() {
				r.add(version.lookup("classification").withPath(version.path), TypeForbidden, "only one version of %d.%d may be supported, but %s is supported as well; deprecate the older one", parsed.Major(), parsed.Minor(), against)
				break
			}
		}
	}
}
