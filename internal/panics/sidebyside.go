package panics

import (
	"errors"
	"sync"
)

// SideBySide calls a function for all elements of a list at once, waits for all calls, and joins their errors. A panic becomes an error.
func SideBySide[T any](list []T, call func(int, T) error) error {
	problems := make([]error, len(list))
	var group sync.WaitGroup
	for i, of := range list {
		group.Go(func() { problems[i] = Safe(func() error { return call(i, of) })() })
	}
	group.Wait()
	return errors.Join(problems...)
}
