// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEngineViolations(t *testing.T) {
	kept := map[string]Sample{
		"empty":   {Units: 1000, Requests: map[string]int{"apply configmaps": 4000, "patch managedresources/status": 5000, "list secrets": 9}},
		"restart": {Units: 1000, Requests: map[string]int{"list configmaps": 3}},
		"again":   {Units: 1000},
	}
	assert.Empty(t, engineViolations(kept, 1000))

	broken := map[string]Sample{
		"empty":   {Units: 1000, Requests: map[string]int{"apply configmaps": 4000, "patch managedresources/status": 6000}},
		"restart": {Units: 1000, Requests: map[string]int{"get secrets": 1000}},
		"again":   {Units: 1000, Requests: map[string]int{"patch managedresources/status": 1000}},
	}
	found := engineViolations(broken, 1000)
	require.Len(t, found, 3)
	assert.Contains(t, found[0], "10.0 requests")
	assert.Contains(t, found[1], "1000 times get secrets")
	assert.Contains(t, found[2], "(again)")
}

// TestEngineRows checks that each contender is a line in each row, and a missing peer is left out.
func TestEngineRows(t *testing.T) {
	dir := t.TempDir()
	program := func(name, text string) string {
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, []byte("#!/bin/sh\n"+text), 0o755))
		return file
	}
	var log bytes.Buffer
	s := settings{work: dir, log: &log, bundles: 10, changes: 2, drift: 5,
		local: program("local", `echo '{"shared":[{"name":"etcd","pid":7}],"clusters":[{"name":"bench","kubeconfig":"k","parts":[{"name":"kube-apiserver","pid":8}]}]}'`),
		engine: program("engine", `echo "$@" >&2
case "$3" in pergola) s=2 ;; *) s=8 ;; esac
echo '{"empty":{"seconds":'$s',"cpuSeconds":1,"peakBytes":1048576,"serverCPUSeconds":3,"units":10,"requests":{"apply configmaps":40}},
"change":{"seconds":0.02,"units":2,"latency":{"median":0.02,"p95":0.03,"max":0.03,"count":2}}}'`)}
	var report Report
	require.NoError(t, measureEngine(t.Context(), s, &report))
	assert.Contains(t, log.String(), "-kubeconfig k -apiserver 8 -etcd 7")
	require.Len(t, report.Rows, 5)
	require.Len(t, report.Rows[0].Results, 2)
	assert.InDelta(t, 0.25, report.Rows[0].Results[1].Ratio, 1e-9)
	assert.Equal(t, []string{"Flux: the program is missing"}, report.MissingPeers)
	assert.Empty(t, report.BrokenContracts)

	var out bytes.Buffer
	require.NoError(t, report.print(&out, "text"))
	for _, want := range []string{"4.0 for each of 10: 40 apply configmaps", "CPU seconds of the API server and etcd: 3.00", "median 20, p95 30, max 30, of 2"} {
		assert.Contains(t, out.String(), want)
	}

	s.engine = program("fails", "exit 3")
	assert.ErrorContains(t, measureEngine(t.Context(), s, &report), "exit status 3")
}
