// SPDX-License-Identifier: Apache-2.0

package backoff

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestDelay(t *testing.T) {
	for _, c := range []struct {
		failures          int
		first, most, want time.Duration
	}{
		{0, time.Second, time.Minute, time.Second},
		{1, time.Second, time.Minute, time.Second},
		{2, time.Second, time.Minute, 2 * time.Second},
		{6, time.Second, time.Minute, 32 * time.Second},
		{7, time.Second, time.Minute, time.Minute},
		{math.MaxInt, time.Second, time.Minute, time.Minute},
		{math.MaxInt, time.Hour, math.MaxInt64, math.MaxInt64},
		{1, time.Hour, time.Minute, time.Minute},
	} {
		assert.Equal(t, c.want, Delay(c.failures, c.first, c.most), "%+v", c)
	}
}
