// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestSyncViolations(t *testing.T) {
	quiet := map[string]int{"update leases": 6, "get leases": 1, "watch shoots": 1}
	polls := map[string]int{"update leases": 6, "git info/refs": 55}
	samples := map[string]Sample{"first": {PeakBytes: 499 << 20}, "idle": {Requests: quiet}, "polls": {Requests: polls}}
	assert.Empty(t, syncViolations(samples, memoryLimitShoots))

	samples["first"] = Sample{PeakBytes: 501 << 20}
	assert.Len(t, syncViolations(samples, memoryLimitShoots), 1)
	assert.Empty(t, syncViolations(samples, memoryLimitShoots+1), "a larger landscape may take more")

	samples = map[string]Sample{"idle": {Requests: polls}, "polls": {Requests: map[string]int{"git git-upload-pack": 1, "patch landscapes/status": 1}}}
	assert.Len(t, syncViolations(samples, memoryLimitShoots), 3)
}

func TestSyncRows(t *testing.T) {
	rows := syncRows(map[string]Sample{"first": {Seconds: 3}, "webhook": {Seconds: 2}, "floor": {Seconds: 1}}, "all")
	assert.Len(t, rows, 2)
	assert.Equal(t, "all: first sync", rows[0].Title)
	assert.InDelta(t, 2, rows[1].Results[1].Ratio, 1e-9)
}
