// SPDX-License-Identifier: Apache-2.0

package panics

import (
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestRunParallelJoinsErrors: a failed call stops no other call. The errors are joined in
// list order.
func TestRunParallelJoinsErrors(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]int{}
	for _, limit := range []int{-1, 1, 2} {
		err := RunParallel(limit, []string{"a", "b", "c"}, func(i int, name string) error {
			mu.Lock()
			seen[name] += i
			mu.Unlock()
			switch name {
			case "a":
				return errors.New("first")
			case "c":
				panic("boom")
			}
			return nil
		})
		assert.ErrorContains(t, err, "first\na fault of Pergola (boom)")
	}
	assert.Equal(t, map[string]int{"a": 0, "b": 3, "c": 6}, seen)
	assert.NoError(t, RunParallel(1, nil, func(int, string) error { return errors.New("never called") }))
}

// TestRunParallelLimit: without a limit all calls run at once and wait for each other here.
func TestRunParallelLimit(t *testing.T) {
	var all sync.WaitGroup
	all.Add(3)
	assert.NoError(t, RunParallel(-1, []int{1, 2, 3}, func(int, int) error { all.Done(); all.Wait(); return nil }))

	turn := make(chan struct{}, 2)
	assert.NoError(t, RunParallel(2, make([]int, 50), func(int, int) error {
		select {
		case turn <- struct{}{}:
			<-turn
			return nil
		default:
			return errors.New("a third runs")
		}
	}))
}
