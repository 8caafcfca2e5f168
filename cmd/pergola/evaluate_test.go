// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestCUEIsEvaluatedInLimits: an evaluation that exceeds its limits is stopped, and other findings
// are still reported.
func TestCUEIsEvaluatedInLimits(t *testing.T) {
	dir := t.TempDir()
	smallLandscape(t, dir)
	writeFile(t, dir, "a.cue", `ns: {apiVersion: "v1", kind: "Namespace", metadata: name: "of-cue"}`)
	o := pergola(t, "validate", dir)
	assert.Equal(t, 0, o.code, "%+v", o)
	writeFile(t, dir, "endless.cue", "import \"list\"\n_l: list.Range(0, 3000, 1)\nx: [for a in _l for b in _l for c in _l if a+b+c < 0 {a}]\n")
	writeFile(t, dir, "typo.cue", `ns: {apiVersion: "v1", knd: "Namespace", metadata: name: "typo"}`)
	o = pergola(t, "validate", dir, "--evaluation-timeout", "300ms")
	assert.Equal(t, 1, o.code)
	assert.Contains(t, o.stdout, filepath.Join(dir, "endless.cue")+":1:1: error: evaluating this took longer than 300ms: it was stopped")
	assert.Contains(t, o.stdout, filepath.Join(dir, "typo.cue")+":1:1: error: this is not a declaration")
	o = pergola(t, "validate", filepath.Join(dir, "endless.cue"), "--evaluation-timeout", "300ms")
	assert.Equal(t, 1, o.code)
	assert.Contains(t, o.stdout, "evaluating this took longer than 300ms")
}

func TestEvaluationFlags(t *testing.T) {
	for _, test := range []struct{ flag, value, want string }{
		{"--evaluation-memory", "lots", `--evaluation-memory "lots": want an amount of at least 128 MiB, such as 2Gi`},
		{"--evaluation-memory", "1Mi", "want an amount of at least 128 MiB"},
		{"--evaluation-timeout", "0s", "--evaluation-timeout 0s: want more than 0, such as 30s"},
	} {
		o := pergola(t, "validate", t.TempDir(), test.flag, test.value)
		assert.Equal(t, 2, o.code)
		assert.Contains(t, o.stderr, test.want)
	}
	assert.NotContains(t, pergola(t, "--help").stdout, "\n  evaluate ")
}
