package mutation

import (
	"fmt"
	"strings"

	"github.com/Masterminds/semver/v3"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

// fullParts is the number of parts of a complete version.
const fullParts = 3

// RuleVersionsUsable and RuleImagesUsable are rules about listed versions that are unusable now.
const (
	RuleVersionsUsable = "shoot/versions-usable"
	RuleImagesUsable   = "shoot/images-usable"
)

// shortened reports whether a version is incomplete, such as 1.34 or empty. Invalid text is not
// shortened; validation reports it.
func shortened(version string) bool {
	if version == "" {
		return true
	}
	parts := strings.Split(strings.TrimPrefix(version, "v"), ".")
	if len(parts) >= fullParts {
		return false
	}
	for _, part := range parts {
		if part == "" || strings.Trim(part, "0123456789") != "" {
			return false
		}
	}
	return true
}

// Open reports whether a version is incomplete, so that the API completes it from a cloud profile.
func Open(version string) bool { return shortened(version) }

// beginsWith reports whether a full version completes a shortened one.
func beginsWith(full, short string) bool {
	full, short = strings.TrimPrefix(full, "v"), strings.TrimPrefix(short, "v")
	return short == "" || full == short || strings.HasPrefix(full, short+".")
}

// classAt returns the classification of a version at the current time.
func (s *Surroundings) classAt(version gardencorev1beta1.ExpirableVersion) gardencorev1beta1.VersionClassification {
	class, _ := version.ClassificationAt(s.now)
	return class
}

// newest returns the highest version for which wanted is true, "" for none.
func newest(versions []gardencorev1beta1.ExpirableVersion, wanted func(gardencorev1beta1.ExpirableVersion) bool) string {
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

// kubernetesVersions completes the versions of control plane and pools. Upstream chooses the newest
// version in every change. Here a matching previous version stays, so that only maintenance updates
// it. Source: plugin/pkg/shoot/mutator (defaultKubernetes, defaultKubernetesVersionForWorkers).
func (m *shootMutator) kubernetesVersions() {
	if m.profile == nil || m.now.IsZero() {
		return
	}
	before := ""
	if m.old != nil {
		before = m.old.Spec.Kubernetes.Version
	}
	m.id = shootKubernetes
	m.kubernetesVersion("spec.kubernetes.version", &m.shoot.Spec.Kubernetes.Version, before)
	m.id = shootPools
	for i := range m.shoot.Spec.Provider.Workers {
		worker := &m.shoot.Spec.Provider.Workers[i]
		if worker.Kubernetes == nil || worker.Kubernetes.Version == nil {
			continue
		}
		before := ""
		if old := m.oldWorker(worker.Name); old != nil && old.Kubernetes != nil && old.Kubernetes.Version != nil {
			before = *old.Kubernetes.Version
		}
		m.kubernetesVersion(fmt.Sprintf("spec.provider.workers[%d].kubernetes.version", i), worker.Kubernetes.Version, before)
	}
}

func (m *shootMutator) kubernetesVersion(field string, version *string, before string) {
	written := *version
	if !shortened(written) {
		return
	}
	if before != "" && !shortened(before) && beginsWith(before, written) {
		*version = before
		m.filled(field, before, "the version from before")
		return
	}
	matches := func(v gardencorev1beta1.ExpirableVersion) bool { return beginsWith(v.Version, written) }
	found := newest(m.profile.spec.Kubernetes.Versions, func(v gardencorev1beta1.ExpirableVersion) bool {
		return matches(v) && m.classAt(v) == gardencorev1beta1.ClassificationSupported
	})
	if found != "" {
		*version = found
		m.filled(field, found, "the newest supported version%s of %s", likeness(written), m.profile.place)
		return
	}
	// Another rule reports versions that the profile does not offer or that have expired.
	usable := newest(m.profile.spec.Kubernetes.Versions, func(v gardencorev1beta1.ExpirableVersion) bool { return matches(v) && m.alive(v) })
	if written == "" || usable != "" {
		m.refusedNow(RuleVersionsUsable, field, "%s has no supported version%s: versions in preview and deprecated ones are not chosen by themselves%s",
			m.profile.place, likeness(written), example(usable))
	}
	if listed := newest(m.profile.spec.Kubernetes.Versions, matches); m.anyVersion && listed != "" {
		*version = listed
		m.filled(field, listed, "the newest version%s of %s; none of them can be chosen now", likeness(written), m.profile.place)
	}
}

// alive reports whether a version has not expired and is available.
func (s *Surroundings) alive(version gardencorev1beta1.ExpirableVersion) bool {
	class := s.classAt(version)
	return class != gardencorev1beta1.ClassificationExpired && class != gardencorev1beta1.ClassificationUnavailable
}

func likeness(short string) string {
	if short == "" {
		return ""
	}
	return " like " + strings.TrimPrefix(short, "v")
}

func example(version string) string {
	if version == "" {
		return ""
	}
	return fmt.Sprintf("; name it in full to use it, such as %q", version)
}
