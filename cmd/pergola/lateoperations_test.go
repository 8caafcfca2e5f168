// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/commands/preview"
	"github.com/pergola-dev/pergola/schemas"
)

// TestLateOperations: a new or changed operation whose time is over is never executed;
// diff and validate report it. An older one may have been executed in time.
func TestLateOperations(t *testing.T) {
	dir, commit := repositoryWithShoot(t)
	root := filepath.Dir(dir)
	operation := func(id, rest string) {
		writeFile(t, dir, "operations/"+id+".yaml", "apiVersion: landscape.pergola.dev/v1alpha1\nkind: Operation\nspec:\n  object: Shoot garden-local/local\n  operation: reconcile\n"+rest)
	}
	const over, ahead = "  notAfter: \"2001-01-01T00:00:00Z\"\n", "  notAfter: \"2999-01-01T00:00:00Z\"\n"
	operation("a-executed", over)
	operation("b-changed", ahead)
	before := commit()
	operation("b-changed", over)
	operation("c-late", over)
	operation("d-early", ahead)
	operation("e-any-time", "")

	late := func(paths ...string) []string {
		t.Helper()
		var out []string
		o := pergola(t, append([]string{"validate", "-o", "json"}, paths...)...)
		for _, v := range decode[[]schemas.Violation](t, o) {
			if v.Rule == preview.RuleLateOperation {
				assert.Equal(t, schemas.SeverityWarning, v.Severity)
				assert.Equal(t, "has passed: reconcile on Shoot garden-local/local has expired and is never executed; set a later time (with another file name, if this one was applied before), or remove the file", v.Message)
				out = append(out, v.Name)
			}
		}
		return out
	}
	assert.Equal(t, []string{"b-changed", "c-late"}, late(dir, "--from", before))
	assert.Empty(t, late(dir), "without --from nobody knows which is new")
	o := pergola(t, "validate", dir, "--from", before)
	assert.Equal(t, 0, o.code, "%+v", o)
	assert.Contains(t, o.stdout, filepath.Join(dir, "operations", "c-late.yaml")+":6:13: warning: Operation c-late: spec.notAfter: has passed: ")
	o = pergola(t, "validate", dir, "--from", before, "--strict")
	assert.Equal(t, 1, o.code, "%+v", o)

	const ranOut = ", reconcile, has expired and is never executed (notAfter 2001-01-01T00:00:00Z)"
	said := map[string]change.Action{}
	p := decode[change.Plan](t, pergola(t, "diff", dir, "-o", "json"))
	for _, item := range p.Items {
		assert.Equal(t, "Shoot garden-local/local", item.Object.String())
		assert.Equal(t, item.Action == change.Fail, len(item.Fields) == 0, "nothing changes with what is not executed")
		said[item.Origin+item.Reason] = item.Action
	}
	assert.Equal(t, map[string]change.Action{
		"operations/b-changed.yaml:5operation b-changed" + ranOut: change.Fail, "operations/c-late.yaml:5operation c-late" + ranOut: change.Fail,
		"operations/d-early.yaml:5": change.Change, "operations/e-any-time.yaml:5": change.Change,
	}, said)
	o = pergola(t, "diff", dir, "-o", "markdown")
	assert.Contains(t, o.stdout, "| would fail: operation c-late"+ranOut+" | virtual | Shoot garden-local/local |\n")
	assert.Contains(t, o.stdout, "after operation d-early, reconcile, on the same object has started", "the others wait for what is executed")
	assert.NotContains(t, o.stdout, "a-executed")
	o = pergola(t, "diff", dir)
	assert.Contains(t, o.stdout, "  ! would fail: operation b-changed"+ranOut+", on virtual: Shoot garden-local/local\n")
	assert.Contains(t, o.stdout, "✗ Shoot garden-local/local  (operation c-late"+ranOut+")\n")

	// A landscape in another folder stays the same; in a new landscape all operations are new.
	now := commit()
	require.NoError(t, os.Rename(dir, filepath.Join(root, "elsewhere")))
	assert.Equal(t, []string{"b-changed", "c-late"}, late(filepath.Join(root, "elsewhere"), "--from", before))
	assert.Empty(t, late(filepath.Join(root, "elsewhere"), "--from", now))
	replaceIn(t, filepath.Join(root, "elsewhere"), "landscape.yaml", "name: small", "name: other")
	assert.Equal(t, []string{"a-executed", "b-changed", "c-late"}, late(filepath.Join(root, "elsewhere"), "--from", now))
}
