package operator

import (
	"time"

	"github.com/pergola-dev/pergola/source"
)

// outcome is the result of an attempt to apply a revision.
type outcome struct {
	commitAt
	revision string
	// head is the source's name of the revision; without a name if it was fetched by commit.
	head source.Head
	// spec identifies the part of the object that the attempt used.
	spec specID
	// validErr is why the revision is invalid with the object's windows, whose digest is windows.
	validErr error
	windows  string
	// fetchErr is why the revision could not be fetched with the Secrets, whose digest is secrets.
	fetchErr  error
	secrets   string
	problems  []string
	permanent bool
	failures  int
	ended     time.Time
	open      leftOpen
}

// leftOpen is the work that a sync leaves to others.
type leftOpen struct {
	held int
	// waits is how many of the held ones wait for an approval; the rest cannot be approved.
	waits int
	// heldText describes the held deletions, operations the pending operations.
	heldText   string
	operations []string
	// ranOut is how many operations expired.
	ranOut int
}

// outcome returns the fields of the result that do not depend on success.
func (j *job) outcome(ended time.Time) outcome {
	return outcome{commitAt: j.revision.at(), revision: j.revision.Revision(), head: j.attempt.head, spec: j.attempt.spec, ended: ended}
}

// failuresOf returns the failures in a row, with the current one.
func (s *syncer) failuresOf(at commitAt) int {
	if s.jobs.last.commitAt != at {
		return 1
	}
	return s.jobs.last.failures + 1
}
