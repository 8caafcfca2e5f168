// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// checkShootPoolVersions checks that a pool is not newer than the control plane, and at most three
// minor versions older.
func checkShootPoolVersions(r *findingCollector, s shoot) {
	control, ok := parseVersion(s.version)
	if !ok {
		return
	}
	for _, worker := range s.workers {
		field := worker.lookup("kubernetes", "version")
		if !field.isSet() {
			continue
		}
		pool, ok := parseVersion(field.text())
		switch {
		case !ok:
			r.add(field, TypeInvalid, "%q is not a version, such as %s", field.text(), s.version)
		case slices.Compare(pool[:], control[:]) > 0 && !isVersionPrefix(s.version, field.text()):
			r.add(field, TypeForbidden, "%s is above the version of the control plane, %s; raise that one first", field.text(), s.version)
		case control[0] == pool[0] && control[1] >= pool[1]+4:
			r.add(field, TypeForbidden, "%s is more than three minor versions behind the control plane, %s", field.text(), s.version)
		}
	}
}

// checkShootVersionUpdate checks that no version goes down, and that the control plane and pools
// that are updated in place skip no minor version.
func checkShootVersionUpdate(r *findingCollector, s shoot) {
	if !s.old.isSet() || s.isBeingDeleted() {
		return
	}
	before := s.old.lookup("spec", "kubernetes", "version").text()
	field := s.spec.lookup("kubernetes", "version")
	r.checkVersionUpdate(field, s.version, before, false, "")
	if s.hasWorkerlessChanged() {
		return
	}
	for _, worker := range s.workers {
		old := s.oldWorker(worker)
		// The field is optional: without it, the message names the origin of the version.
		was, is, cause := before, s.version, "; the pool names no version of its own, and has that of spec.kubernetes.version"
		if own := worker.lookup("kubernetes", "version").text(); own != "" {
			is, cause = own, ""
		}
		if own := old.lookup("kubernetes", "version").text(); own != "" {
			was = own
		} else if !old.isSet() && worker.lookup("kubernetes", "version").isSet() {
			was = is // a new pool begins with its own version
		}
		r.checkVersionUpdate(worker.lookup("kubernetes", "version"), is, was, !isUpdatedInPlace(worker), cause)
		if isUpdatedInPlace(worker) && old.isSet() && (s.spec.lookup("credentialsBindingName").isSet() || s.spec.lookup("secretBindingName").isSet()) {
			r.checkImageUpdate(worker, old)
		}
	}
}

// checkVersionUpdate checks that a version does not go back, and skips no minor one unless it may.
// The message ends with cause.
func (r *findingCollector) checkVersionUpdate(field fieldValue, is, was string, skip bool, cause string) {
	if isVersionPrefix(is, was) {
		return
	}
	now, okNow := parseVersion(is)
	before, okBefore := parseVersion(was)
	if !okNow || !okBefore {
		return
	}
	switch {
	case slices.Compare(now[:], before[:]) < 0:
		r.add(field, TypeForbidden, "Kubernetes cannot go back from %s to %s%s", was, is, cause)
	case !skip && (now[0] > before[0] || now[1] > before[1]+1):
		r.add(field, TypeForbidden, "Kubernetes cannot go from %s to %s at once; no minor version may be skipped, so go to 1.%d first%s", was, is, before[1]+1, cause)
	}
}

// isVersionPrefix reports whether an open version, such as 1.34, covers a full one, which the API
// then retains.
func isVersionPrefix(open, full string) bool {
	return strings.HasPrefix(strings.TrimPrefix(full, "v"), strings.TrimPrefix(open, "v")+".")
}

// checkImageUpdate checks that the image of machines that are updated in place does not go back.
// Like upstream, it compares without any v and without anything after the numbers.
func (r *findingCollector) checkImageUpdate(worker, old fieldValue) {
	field, before := worker.lookup("machine", "image", "version"), old.lookup("machine", "image", "version")
	numbers := func(text string) (*semver.Version, error) {
		text = strings.ReplaceAll(text, "v", "")
		if i := strings.IndexAny(text, "-+~"); i >= 0 {
			text = text[:i]
		}
		return semver.NewVersion(text)
	}
	is, err := numbers(field.text())
	was, errBefore := numbers(before.text())
	if err == nil && errBefore == nil && is.LessThan(was) {
		r.add(field, TypeForbidden, "machines that are updated in place cannot go back from image %s to %s", before.text(), field.text())
	}
}

// isBeingDeleted reports whether the Shoot is being deleted, which makes its spec immutable.
func (s shoot) isBeingDeleted() bool {
	return s.lookup("metadata", "deletionTimestamp").isSet()
}

// hasWorkerlessChanged reports whether the first workers were added, or the last ones removed.
func (s shoot) hasWorkerlessChanged() bool {
	return (len(s.workers) == 0) != (len(s.old.lookup("spec", "provider", "workers").items()) == 0)
}

// oldWorker returns the pool of the same name before the change; not set for a new pool.
func (s shoot) oldWorker(worker fieldValue) fieldValue {
	for _, old := range s.old.lookup("spec", "provider", "workers").items() {
		if old.lookup("name").text() == worker.lookup("name").text() {
			return old
		}
	}
	return fieldValue{}
}
