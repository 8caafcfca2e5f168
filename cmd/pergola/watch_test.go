package main

import (
	"bytes"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/owner/tally"
	"github.com/pergola-dev/pergola/controllers/permit"
	"github.com/pergola-dev/pergola/landscapes"
)

func TestStateOf(t *testing.T) {
	dir, commit := repository(t)
	write(t, dir, "one-more.yaml", "")
	hash := commit()
	state := func(dir string) string {
		t.Helper()
		l, _, err := landscapes.Load(t.Context(), dir, landscapes.Options{})
		require.NoError(t, err)
		return stateOf(dir, l)
	}
	assert.Equal(t, dir+" at "+hash[:7], state(dir))
	replaceIn(t, dir, "seed.yaml", "name: local", "name: other")
	assert.Equal(t, dir+" at "+hash[:7]+", with uncommitted changes in 1 file (seed.yaml)", state(dir))
	for _, name := range []string{"a.yaml", "b.yaml", "sub/c.yaml"} {
		write(t, dir, name, "")
	}
	assert.Equal(t, dir+" at "+hash[:7]+", with uncommitted changes in 4 files (a.yaml, b.yaml, seed.yaml …)", state(dir))
	// A layer beside the landscape is part of it, other folders are not.
	hash = commit()
	write(t, filepath.Dir(dir), "elsewhere/x.yaml", "")
	write(t, filepath.Dir(dir), "base/landscape.yaml", "apiVersion: landscape.pergola.dev/v1alpha1\nkind: Landscape\nmetadata:\n  name: base\nspec: {}\n")
	assert.Equal(t, dir+" at "+hash[:7], state(dir))
	replaceIn(t, dir, "landscape.yaml", "spec:\n", "spec:\n  layers: [../base]\n")
	assert.Equal(t, dir+" at "+hash[:7]+", with uncommitted changes in 2 files (../base/landscape.yaml, landscape.yaml)", state(dir))

	outside := t.TempDir()
	smallLandscape(t, outside)
	assert.Equal(t, outside+", which is in no Git repository", state(outside))
}

func TestHelpSaysExitCodesAndWhatIsApplied(t *testing.T) {
	assert.Contains(t, pergola(t, "--help").stdout, "130 interrupted")
	help := pergola(t, "apply", "--help").stdout
	assert.Contains(t, help, "What is applied are the files of the work tree as they are")
	assert.Contains(t, help, "Exit code 1 says that something failed or was held, or, with --dry-run, that there are differences")
}

func TestSummary(t *testing.T) {
	report := &landscape.Report{}
	assert.Equal(t, "Applied in 1.2s: nothing had to be written.", summary(report, 1234*time.Millisecond))
	report.Written = tally.Tally{Deleted: 2}
	assert.Equal(t, "Applied in 1s: 2 objects deleted.", summary(report, time.Second))
	report.Written = tally.Tally{Deleting: 1}
	assert.Equal(t, "Applied in 1s: 1 object is being deleted.", summary(report, time.Second), "it has a finalizer")
	report.Written = tally.Tally{Created: 260, Changed: 5, Carriers: 20}
	kept := &landscape.Report{Held: []permit.HeldObjects{{Cluster: "runtime", Approval: "abc", Objects: []apply.Held{
		{Ref: apply.Ref{Kind: "Service", Namespace: "a", Name: "b"}, Reason: change.Reason{Detail: "too many"}, Approval: "123"}, {Ref: apply.Ref{Kind: "Shoot", Namespace: "a", Name: "c"}, Reason: change.Reason{Detail: "a Shoot"}},
		{Ref: apply.Ref{Kind: "Role", Namespace: "a", Name: "d"}, Reason: change.Reason{Detail: "too many"}},
	}}}}
	assert.Equal(t, "Applied in 1s: nothing had to be written; 3 objects are held, see above.", summary(kept, time.Second))
	var b bytes.Buffer
	printHeld(&b, kept)
	assert.Equal(t, "Held on cluster runtime: 2 objects: too many\n  Service a/b, its approval is 123\n  Role a/d\nHeld on cluster runtime: 1 object: a Shoot\n  Shoot a/c\n  Approve all of them with: --approve abc\n", b.String())
	assert.Equal(t, "Applied in 1m21s: 265 objects (260 created, 5 changed), and 20 ManagedResources and data Secrets that carry them.", summary(report, 81*time.Second))
}
