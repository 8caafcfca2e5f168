package mutation

import (
	"fmt"
	"strings"

	"github.com/Masterminds/semver/v3"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

// fullParts is how many parts a version has that stays as it is.
const fullParts = 3

// RuleVersionsUsable and RuleImagesUsable are the rules about versions that a cloud profile lists
// and that cannot be used at the time.
const (
	RuleVersionsUsable = "shoot/versions-usable"
	RuleImagesUsable   = "shoot/images-usable"
)

// shortened says whether a version leaves something open, as 1.34 and an empty one do. A text that
// is no version leaves nothing open: validation speaks of it.
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

// Open says whether a version leaves something open, so that the API completes it from a cloud
// profile.
func Open(version string) bool { return shortened(version) }

// beginsWith says whether a full version is one of those that a shortened one stands for.
func beginsWith(full, short string) bool {
	full, short = strings.TrimPrefix(full, "v"), strings.TrimPrefix(short, "v")
	return short == "" || full == short || strings.HasPrefix(full, short+".")
}

// classAt is how a version stands at the time of the surroundings.
func (s *Surroundings) classAt(version gardencorev1beta1.ExpirableVersion) gardencorev1beta1.VersionClassification {
	class, _ := version.ClassificationAt(s.now)
	return class
}

// newest gives the highest version that wanted says yes to, "" for none.
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

// kubernetesVersions completes the version of the control plane and those of pools. Upstream takes
// the newest one again with every change that leaves it open; here the version from before stays as
// long as it is one of those that are meant, so that a declaration in Git does not raise it outside
// of the maintenance. Source: plugin/pkg/shoot/mutator (defaultKubernetes,
// defaultKubernetesVersionForWorkers).
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
	// Versions that are not offered, or not any more, are the matter of the rule about what a
	// profile offers.
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

// alive says whether a version can be used at all.
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
