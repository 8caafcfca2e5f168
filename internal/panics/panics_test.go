// SPDX-License-Identifier: Apache-2.0

package panics

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var errDamaged = errors.New("the repository is damaged")

func TestCatch(t *testing.T) {
	for name, test := range map[string]struct {
		panics func()
		says   string
		is     error
	}{
		"an error":             {func() { panic(errDamaged) }, "the repository is damaged", errDamaged},
		"a fault":              {func() { none := []int{}; _ = none[len(none)] }, "a fault of Pergola (runtime error: index out of range [0] with length 0)", nil},
		"a text":               {func() { panic("no") }, "a fault of Pergola (no)", nil},
		"one of another group": {func() { panic(&Error{Value: errDamaged}) }, "the repository is damaged", errDamaged},
	} {
		t.Run(name, func(t *testing.T) {
			err := AsError(func() error { test.panics(); return nil })()
			require.ErrorContains(t, err, test.says)
			assert.ErrorAs(t, err, new(*Error))
			if test.is != nil {
				assert.ErrorIs(t, err, test.is)
			}
		})
	}
	require.NoError(t, AsError(func() error { return nil })())
	require.ErrorIs(t, AsError(func() error { return errDamaged })(), errDamaged)
}

// TestGroup checks that a panic in a group becomes a panic of Wait, after all other functions have
// ended.
func TestGroup(t *testing.T) {
	for name, group := range map[string]func() (*Group, context.Context){
		"zero":         func() (*Group, context.Context) { return &Group{}, t.Context() },
		"with context": func() (*Group, context.Context) { return WithContext(t.Context()) },
	} {
		t.Run(name, func(t *testing.T) {
			g, ctx := group()
			g.SetLimit(2)
			ended := false
			g.Go(func() error {
				if name == "with context" {
					<-ctx.Done() // the panic ends it
				}
				ended = true
				return nil
			})
			g.Go(func() error { panic(errDamaged) })
			err := AsError(g.Wait)()
			require.ErrorIs(t, err, errDamaged)
			assert.True(t, ended)
			var caught *Error
			require.ErrorAs(t, err, &caught)
			assert.Contains(t, string(caught.Stack), "TestGroup", "it is the stack of where it happened")

			g, _ = group()
			g.Go(func() error { return errDamaged })
			assert.Equal(t, errDamaged, g.Wait())
		})
	}
}
