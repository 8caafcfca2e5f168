package managedresource

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// The end of a pass may take its time as long as nobody interrupts it, and little more when somebody has.
func TestOutlast(t *testing.T) {
	for name, test := range map[string]struct {
		ended, more time.Duration // the pass, and how much longer there is time to write
	}{
		"not interrupted":             {more: time.Hour},
		"interrupted before":          {ended: -1, more: finishTimeout},
		"interrupted while it writes": {ended: time.Minute, more: finishTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pass, end := context.WithCancel(t.Context())
				defer end()
				if test.ended < 0 {
					end()
				}
				writing, cancel := outlast(pass, finishTimeout)
				defer cancel()
				if test.ended > 0 {
					time.Sleep(test.ended)
					end()
				}
				time.Sleep(test.more - time.Millisecond)
				synctest.Wait()
				assert.NoError(t, writing.Err())
				if test.ended != 0 {
					time.Sleep(2 * time.Millisecond)
					synctest.Wait()
					assert.ErrorIs(t, writing.Err(), context.Canceled)
				}
			})
		})
	}
}
