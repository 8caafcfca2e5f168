// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestUnchangedViolations(t *testing.T) {
	tests := map[string]struct {
		requests map[string]int
		broken   bool
	}{
		"no request":                {requests: map[string]int{}},
		"one list and watch a kind": {requests: map[string]int{"list": 5, "watch": 5, "discovery": 3}},
		"a patch":                   {requests: map[string]int{"list": 5, "patch-apply": 1}, broken: true},
		"a read":                    {requests: map[string]int{"get": 1}, broken: true},
		"a dry run":                 {requests: map[string]int{"patch-apply-dry-run": 1}, broken: true},
		"a list for every object":   {requests: map[string]int{"list": 500}, broken: true},
		"requests were not counted": {broken: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			row := Row{Title: "again", Results: []Result{
				{Name: "engine", Subject: true, Sample: Sample{Requests: test.requests}},
				{Name: "floor", Sample: Sample{Requests: map[string]int{"patch-apply": 500}}},
			}}
			assert.Equal(t, test.broken, len(unchangedViolations(row, 500)) > 0)
		})
	}
}

func TestRatios(t *testing.T) {
	row := Row{Title: "work", Runs: 3, Results: []Result{
		{Name: "ours", Subject: true, Sample: Sample{Seconds: 3, CPUSeconds: 1, Requests: map[string]int{}}},
		{Name: "theirs", Sample: Sample{Seconds: 2, CPUSeconds: 4, PeakBytes: 5 << 20, Requests: map[string]int{"patch": 7, "list": 1}}},
	}}
	row.fillRatios()
	assert.Zero(t, row.Results[0].Ratio)
	assert.InDelta(t, 1.5, row.Results[1].Ratio, 1e-9)
	assert.InDelta(t, 0.25, row.Results[1].CPURatio, 1e-9)

	row.addResults(Result{Name: "of another row", Subject: true, Sample: Sample{Seconds: 6, CPUSeconds: 1}})
	assert.False(t, row.Results[2].Subject)
	assert.InDelta(t, 0.5, row.Results[2].Ratio, 1e-9)

	var text, data bytes.Buffer
	report := Report{Rows: []Row{row}, MissingPeers: []string{"a peer"}, BrokenContracts: []string{"a contract"}}
	require.NoError(t, report.print(&text, "text"))
	for _, want := range []string{"▸ ours", "requests: none", "requests: 1 list, 7 patch", "1.50    0.25", "Left out: a peer", "BROKEN: a contract"} {
		assert.Contains(t, text.String(), want)
	}
	require.NoError(t, report.print(&data, "json"))
	var read Report
	require.NoError(t, json.Unmarshal(data.Bytes(), &read))
	assert.Equal(t, report, read)
}

func TestMedians(t *testing.T) {
	r := medianResult(&Case{Name: "c"}, []Sample{{Seconds: 9, CPUSeconds: 1}, {Seconds: 2, CPUSeconds: 8}, {Seconds: 4, CPUSeconds: 3, Requests: map[string]int{"list": 1}}})
	assert.InDelta(t, 4, r.Seconds, 0)
	assert.InDelta(t, 3, r.CPUSeconds, 0)
	assert.Equal(t, []float64{9, 2, 4}, r.AllSeconds)
	assert.Equal(t, map[string]int{"list": 1}, r.Requests)
}
