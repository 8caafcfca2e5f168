package landscapes

import "fmt"

// damagedFS is a file system that knows that it lost something which it should have, such as a
// damaged Git repository.
type damagedFS interface {
	// Damaged is why something could not be read; nil if nothing is missing.
	Damaged() error
}

// LostError is what whoever asks for the content of a Declaration panics with when the file that it
// is in cannot be read any more, although it could be when the landscape was loaded: there is
// nobody to return it to, and to go on would look as if the objects were removed. Whoever lets
// something work with a landscape that is read from a repository catches it (package panics).
type LostError struct {
	// File as seen from the landscape.
	File string
	// Err is why; nil if that is not known.
	Err error
}

// Error implements error.
func (e *LostError) Error() string {
	text := e.File + " was there a moment ago and cannot be read any more"
	if e.Err != nil {
		return fmt.Sprintf("%s: %s", text, e.Err)
	}
	return text + ": is the repository damaged?"
}

// Unwrap gives the cause.
func (e *LostError) Unwrap() error { return e.Err }

func (l *loader) lost(name string) *LostError {
	out := &LostError{File: l.relative(name)}
	if kept, ok := l.fs.(damagedFS); ok {
		out.Err = kept.Damaged()
	}
	return out
}
