// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"time"

	"github.com/pergola-dev/pergola/source"
)

// syncOutcome is the result of an attempt to apply a revision.
type syncOutcome struct {
	commitPath
	revision string
	// head is the source's name of the revision; without a name if it was fetched by commit.
	head source.Head
	// spec identifies the part of the object that the attempt used.
	spec specID
	// validErr is why the revision is invalid with the object's windows, whose digest is windows.
	validErr      error
	windowsDigest string
	// fetchErr is why the revision could not be fetched with the Secrets, whose digest is secrets.
	fetchErr      error
	secretsDigest string
	problems      []string
	isPermanent   bool
	failures      int
	endedAt       time.Time
	openItems     openItems
}

// openItems is the work that a sync leaves to others.
type openItems struct {
	heldCount int
	// awaitingApproval is how many of the held ones wait for an approval; the rest cannot be
	// approved.
	awaitingApproval int
	// heldText describes the held deletions, operations the pending operations.
	heldText   string
	operations []string
	// expiredOperations is how many operations expired.
	expiredOperations int
}

// baseOutcome returns the fields of the result that do not depend on success.
func (j *job) baseOutcome(ended time.Time) syncOutcome {
	return syncOutcome{commitPath: j.revision.commitPath(), revision: j.revision.Revision(), head: j.attempt.head, spec: j.attempt.spec, endedAt: ended}
}

// failuresInRow returns the failures in a row, with the current one.
func (s *landscapeReconciler) failuresInRow(at commitPath) int {
	if s.jobs.lastOutcome.commitPath != at {
		return 1
	}
	return s.jobs.lastOutcome.failures + 1
}
