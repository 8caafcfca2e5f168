package operator

import (
	"time"

	"github.com/pergola-dev/pergola/source"
)

// outcome of an attempt to apply a revision.
type outcome struct {
	commitAt
	revision string
	// head is what the source named it by; without a name where it was had by its commit alone.
	head source.Head
	// spec is the part of the object it was made with.
	spec specID
	// validErr is why the revision was refused, while the windows of the object were those that
	// windows is the digest of.
	validErr error
	windows  string
	// fetchErr is why the revision could not be had, with the Secrets that secrets is the digest
	// of.
	fetchErr  error
	secrets   string
	problems  []string
	permanent bool
	failures  int
	ended     time.Time
	open      leftOpen
}

// leftOpen is what a sync leaves to others.
type leftOpen struct {
	held int
	// waits is how much of it waits for an approval; the rest cannot be approved.
	waits int
	// heldText says what is held, operations which ones wait to be taken up.
	heldText   string
	operations []string
	// ranOut is how many of the operations wait for nothing, because their time was over.
	ranOut int
}

// outcome of the job's attempt, as far as it is the same whatever came of it.
func (j *job) outcome(ended time.Time) outcome {
	return outcome{commitAt: j.revision.at(), revision: j.revision.Revision(), head: j.attempt.head, spec: j.attempt.spec, ended: ended}
}

// failuresOf is how many attempts in a row have failed with one that just did.
func (s *syncer) failuresOf(at commitAt) int {
	if s.jobs.last.commitAt != at {
		return 1
	}
	return s.jobs.last.failures + 1
}
