// SPDX-License-Identifier: Apache-2.0

package landscapes

import "fmt"

// damageReportingFS is a file system that detects missing content, such as a damaged Git
// repository.
type damageReportingFS interface {
	// Damaged returns why content could not be read; it is nil if nothing is missing.
	Damaged() error
}

// UnreadableFileError is the panic value when the content of a Declaration is requested and its
// file, readable while loading, is unreadable now. The methods cannot return errors, and continuing
// would look like removed objects. Users of a landscape from a repository recover from it (package
// panics).
type UnreadableFileError struct {
	// File is relative to the landscape folder.
	File string
	// Err is the cause; it is nil if it is unknown.
	Err error
}

// Error implements error.
func (e *UnreadableFileError) Error() string {
	text := e.File + " existed a moment ago and can no longer be read"
	if e.Err != nil {
		return fmt.Sprintf("%s: %s", text, e.Err)
	}
	return text + ": is the repository damaged?"
}

// Unwrap returns the cause.
func (e *UnreadableFileError) Unwrap() error { return e.Err }

func (l *loader) newUnreadableFileError(name string) *UnreadableFileError {
	out := &UnreadableFileError{File: l.relative(name)}
	if kept, ok := l.fs.(damageReportingFS); ok {
		out.Err = kept.Damaged()
	}
	return out
}
