// Package corpus finds the data of conformance tests: what upstream and other tools accept, render
// and report. It is no part of a clone. What is read from it, and how, is the matter of the tests
// of each package.
package corpus

import (
	"os"
	"path/filepath"
	"testing"
)

// Dir is the folder that PERGOLA_CORPUS names, or shared/corpus beside the repository. Without it
// the test is left out, which `make test` says.
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
		t.Skip("corpus not present: conformance left out")
	}
	return dir
}
