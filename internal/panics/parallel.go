// SPDX-License-Identifier: Apache-2.0

package panics

import (
	"errors"

	"golang.org/x/sync/errgroup"
)

// RunParallel calls a function for each element of a list, at most limit at a time (negative: all).
// It waits for all calls and joins their errors in list order. A panic becomes an error.
func RunParallel[T any](limit int, list []T, call func(int, T) error) error {
	problems := make([]error, len(list))
	var group errgroup.Group
	group.SetLimit(limit)
	for i, of := range list {
		group.Go(func() error {
			problems[i] = AsError(func() error { return call(i, of) })()
			return nil
		})
	}
	_ = group.Wait() // problems has all errors
	return errors.Join(problems...)
}
