// SPDX-License-Identifier: Apache-2.0

// Package corpus finds the data of conformance tests: inputs and results of upstream and other
// tools. A clone does not contain it. The tests of each package decide which files they read.
package corpus

import (
	"os"
	"path/filepath"
	"testing"
)

// Dir returns the folder that PERGOLA_CORPUS names, or shared/corpus beside the repository. It
// skips the test if the folder does not exist, which `make test` reports.
func Dir(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("PERGOLA_CORPUS")
	if dir == "" {
		root, err := os.Getwd()
		if err != nil {
			t.Fatal(err)
		}
		for ; root != filepath.Dir(root); root = filepath.Dir(root) {
			if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
				break
			}
		}
		dir = filepath.Join(filepath.Dir(root), "shared", "corpus")
	}
	if _, err := os.Stat(dir); err != nil {
		t.Skip("the corpus does not exist: skipping conformance tests")
	}
	return dir
}
