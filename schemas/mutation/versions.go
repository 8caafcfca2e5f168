// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"fmt"
	"strings"

	"github.com/Masterminds/semver/v3"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

// completeVersionParts is the number of parts of a complete version.
const completeVersionParts = 3

// RuleVersionsUsable and RuleImagesUsable are rules about listed versions that are unusable now.
const (
	RuleVersionsUsable = "shoot/versions-usable"
	RuleImagesUsable   = "shoot/images-usable"
)

// isIncompleteVersion reports whether a version is incomplete, such as 1.34 or empty. Invalid text
// is not shortened; validation reports it.
func isIncompleteVersion(version string) bool {
	if version == "" {
		return true
	}
	parts := strings.Split(strings.TrimPrefix(version, "v"), ".")
	if len(parts) >= completeVersionParts {
		return false
	}
	for _, part := range parts {
		if part == "" || strings.Trim(part, "0123456789") != "" {
			return false
		}
	}
	return true
}

// IsIncompleteVersion reports whether a version is incomplete, so the API completes it from a cloud
// profile.
func IsIncompleteVersion(version string) bool { return isIncompleteVersion(version) }

// hasVersionPrefix reports whether a full version completes a shortened one.
func hasVersionPrefix(full, short string) bool {
	full, short = strings.TrimPrefix(full, "v"), strings.TrimPrefix(short, "v")
	return short == "" || full == short || strings.HasPrefix(full, short+".")
}

// classifyVersion returns the classification of a version at the current time.
func (s *Mutator) classifyVersion(version gardencorev1beta1.ExpirableVersion) gardencorev1beta1.VersionClassification {
	class, _ := version.ClassificationAt(s.now)
	return class
}

// newestVersion returns the highest version for which wanted is true, or "" for none.
func newestVersion(versions []gardencorev1beta1.ExpirableVersion, wanted func(gardencorev1beta1.ExpirableVersion) bool) string {
	var highest *semver.Version
	name := ""
	for _, version := range versions {
		parsed, err := semver.NewVersion(version.Version)
		if err != nil || !wanted(version) || highest != nil && !parsed.GreaterThan(highest) {
			continue
		}
		highest, name = parsed, version.Version
	}
	return name
}

// setKubernetesVersions completes the versions of control plane and pools. Upstream chooses the
// newest version in every change. Here a matching previous version stays, so that only maintenance
// updates it. Source: plugin/pkg/shoot/mutator (defaultKubernetes,
// defaultKubernetesVersionForWorkers).
func (m *shootMutator) setKubernetesVersions() {
	if m.profile == nil || m.now.IsZero() {
		return
	}
	before := ""
	if m.oldShoot != nil {
		before = m.oldShoot.Spec.Kubernetes.Version
	}
	m.mutationID = shootKubernetesVersion
	m.setKubernetesVersion("spec.kubernetes.version", &m.shoot.Spec.Kubernetes.Version, before)
	m.mutationID = shootPoolVersions
	for i := range m.shoot.Spec.Provider.Workers {
		worker := &m.shoot.Spec.Provider.Workers[i]
		if worker.Kubernetes == nil || worker.Kubernetes.Version == nil {
			continue
		}
		before := ""
		if old := m.oldWorker(worker.Name); old != nil && old.Kubernetes != nil && old.Kubernetes.Version != nil {
			before = *old.Kubernetes.Version
		}
		m.setKubernetesVersion(fmt.Sprintf("spec.provider.workers[%d].kubernetes.version", i), worker.Kubernetes.Version, before)
	}
}

func (m *shootMutator) setKubernetesVersion(field string, version *string, before string) {
	written := *version
	if !isIncompleteVersion(written) {
		return
	}
	if before != "" && !isIncompleteVersion(before) && hasVersionPrefix(before, written) {
		*version = before
		m.recordChange(field, before, "the previous version")
		return
	}
	matches := func(v gardencorev1beta1.ExpirableVersion) bool { return hasVersionPrefix(v.Version, written) }
	found := newestVersion(m.profile.spec.Kubernetes.Versions, func(v gardencorev1beta1.ExpirableVersion) bool {
		return matches(v) && m.classifyVersion(v) == gardencorev1beta1.ClassificationSupported
	})
	if found != "" {
		*version = found
		m.recordChange(field, found, "the newest supported version%s of %s", versionHint(written), m.profile.displayName)
		return
	}
	// Another rule reports versions that the profile does not offer or that have expired.
	usable := newestVersion(m.profile.spec.Kubernetes.Versions, func(v gardencorev1beta1.ExpirableVersion) bool { return matches(v) && m.isUsable(v) })
	if written == "" || usable != "" {
		m.recordCurrentProblem(RuleVersionsUsable, field, "%s has no supported version%s: preview and deprecated versions are not chosen automatically%s",
			m.profile.displayName, versionHint(written), fullVersionHint(usable))
	}
	if listed := newestVersion(m.profile.spec.Kubernetes.Versions, matches); m.allowsUnusable && listed != "" {
		*version = listed
		m.recordChange(field, listed, "the newest version%s of %s; none of them can be chosen now", versionHint(written), m.profile.displayName)
	}
}

// isUsable reports whether a version has not expired and is available.
func (s *Mutator) isUsable(version gardencorev1beta1.ExpirableVersion) bool {
	class := s.classifyVersion(version)
	return class != gardencorev1beta1.ClassificationExpired && class != gardencorev1beta1.ClassificationUnavailable
}

func versionHint(short string) string {
	if short == "" {
		return ""
	}
	return " like " + strings.TrimPrefix(short, "v")
}

func fullVersionHint(version string) string {
	if version == "" {
		return ""
	}
	return fmt.Sprintf("; to use one, write the full version, such as %q", version)
}
