// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"testing/fstest"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/commands/record"
	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/landscapes"
)

// TestLocalGolden: the recorded render of the demonstration landscape is current.
func TestLocalGolden(t *testing.T) {
	o := pergola(t, "golden", filepath.Join("..", "..", "landscapes", "local"))
	assert.Equal(t, 0, o.code, "run make golden and review what changed:\n%s%s", o.stdout, o.stderr)
}

func TestGolden(t *testing.T) {
	dir := t.TempDir()
	smallLandscape(t, dir)
	o := pergola(t, "golden", dir)
	assert.Equal(t, 2, o.code)
	assert.Contains(t, o.stderr, "nothing is recorded: run golden with --update first")

	o = pergola(t, "golden", dir, "--update")
	require.Equal(t, 0, o.code)
	assert.Regexp(t, `^Golden: \d+ files written, 0 removed, 0 unchanged in `+regexp.QuoteMeta(filepath.Join(dir, "golden"))+`\.\n$`, o.stdout)
	o = pergola(t, "golden", dir, "--dir", filepath.Join(dir, "goldn"))
	assert.Equal(t, 2, o.code)
	assert.Contains(t, o.stderr, "goldn has no golden files: nothing is recorded: "+filepath.Join(dir, "golden")+" has some: give --dir "+filepath.Join(dir, "golden")+", or run golden with --update first")
	o = pergola(t, "golden", dir, "--dir", filepath.Join(dir, "landscape.yaml"))
	assert.Equal(t, 2, o.code)
	assert.Contains(t, o.stderr, "landscape.yaml is a file: give the folder of the golden files")
	recorded := filepath.Join(dir, "golden", "local", "garden", "garden-namespace")
	require.FileExists(t, filepath.Join(recorded, "namespace-garden.yaml"))
	o = pergola(t, "golden", dir)
	assert.Equal(t, 0, o.code)
	assert.Regexp(t, `^Golden: \d+ files agree.\n$`, o.stdout)
	assert.Equal(t, 0, pergola(t, "validate", dir).code, "what is recorded is not read as declarations")

	writeFile(t, recorded, "extra.yaml", "a: b\n")
	require.NoError(t, os.Remove(filepath.Join(recorded, "namespace-garden.yaml")))
	replaceIn(t, recorded, "bundle.yaml", "garden-namespace", "garden-namespacf")
	o = pergola(t, "golden", dir)
	assert.Equal(t, 1, o.code)
	assert.Contains(t, o.stdout, "+ Namespace garden (from components/seed/namespace/component.cue:")
	assert.Contains(t, o.stdout, "- extra\n  local/garden/garden-namespace/extra.yaml\n")
	assert.Contains(t, o.stdout, "~ bundle\n")
	assert.Contains(t, o.stdout, "garden-namespacf → ")
	assert.Contains(t, o.stdout, "Golden: 3 files differ from the record: 1 added, 1 changed, 1 removed.\n")
	github := pergola(t, "golden", dir, "-o", "github")
	assert.Equal(t, 1, github.code)
	assert.Contains(t, github.stdout, "::error file="+filepath.ToSlash(filepath.Join(dir, "golden"))+"/local/garden/garden-namespace/bundle.yaml,line=")
	assert.Len(t, decode[record.Report](t, pergola(t, "golden", dir, "-o", "json")).Differences, 3)

	o = pergola(t, "golden", dir, "--update")
	assert.Equal(t, 2, o.code, "what no render wrote is not removed")
	assert.Contains(t, o.stderr, "contains files that are not from a recorded render (local/garden/garden-namespace/extra.yaml)")
	replaceIn(t, recorded, "bundle.yaml", "objects:\n", "objects:\n  - 'extra.yaml  # components/x.cue:1'\n")
	before, err := os.Stat(filepath.Join(dir, "golden", "local", "garden", "system", "bundle.yaml"))
	require.NoError(t, err)
	o = pergola(t, "golden", dir, "--update")
	require.Equal(t, 0, o.code)
	assert.Regexp(t, `^Golden: 2 files written, 1 removed, \d+ unchanged in `, o.stdout)
	after, err := os.Stat(filepath.Join(dir, "golden", "local", "garden", "system", "bundle.yaml"))
	require.NoError(t, err)
	assert.Equal(t, before.ModTime(), after.ModTime(), "what is the same is not written")
	assert.Regexp(t, `^Golden: 0 files written, 0 removed, \d+ unchanged in `, pergola(t, "golden", dir, "--update").stdout)
	assert.Equal(t, 0, pergola(t, "golden", dir).code)
	assert.NoFileExists(t, filepath.Join(recorded, "extra.yaml"), "what is not rendered any more goes")

	elsewhere := filepath.Join(t.TempDir(), "record")
	require.Equal(t, 0, pergola(t, "golden", dir, "--dir", elsewhere, "--update").code)
	assert.Equal(t, 0, pergola(t, "golden", dir, "--dir", elsewhere).code)
}

// TestGoldenComponents: the cases of the built-in catalogue match their records; cases of a changed
// catalogue do not, and can be recorded again.
func TestGoldenComponents(t *testing.T) {
	o := pergola(t, "golden", "--components", "seed/namespace", "components/seed/system/")
	assert.Equal(t, 0, o.code, o.stdout+o.stderr)
	assert.Regexp(t, `^Golden: \d+ cases of 2 components, all as recorded\.\n$`, o.stdout)
	assert.Equal(t, 2, pergola(t, "golden", "--components", "seed/nothing").code)
	assert.Contains(t, pergola(t, "golden", "--components", "--update").stderr, "--catalogue")
	assert.Contains(t, pergola(t, "golden").stderr, "give one landscape, or --components")

	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, components.FS))
	replaceIn(t, dir, "seed/namespace/component.cue", "privileged", "restricted")
	writeFile(t, dir, "seed/namespace/cases/old/bundle.yaml", "a: b\n")
	o = pergola(t, "--catalogue", dir, "golden", "--components", "seed/namespace")
	assert.Equal(t, 1, o.code)
	assert.Contains(t, o.stdout, "privileged → restricted")
	assert.Contains(t, o.stdout, "- seed/namespace/cases/old/bundle.yaml")
	o = pergola(t, "--catalogue", dir, "golden", "--components", "seed/namespace", "--update")
	assert.Equal(t, 0, o.code, o.stderr)
	assert.Regexp(t, `^Golden: 1 file written, 1 removed, \d+ unchanged in .*: review with git diff\.\n$`, o.stdout)
	assert.NoDirExists(t, filepath.Join(dir, "seed", "namespace", "cases", "old"))
	assert.Equal(t, 0, pergola(t, "--catalogue", dir, "golden", "--components", "seed/namespace").code)
}

// TestGoldenCatchesOneCharacter changes one character of the catalogue in each of its languages.
func TestGoldenCatchesOneCharacter(t *testing.T) {
	dir := t.TempDir()
	smallLandscape(t, dir)
	record := filepath.Join(t.TempDir(), "record")
	require.Equal(t, 0, pergola(t, "golden", dir, "--dir", record, "--update").code)
	l, violations, err := landscapes.Load(t.Context(), dir, landscapes.Options{})
	require.NoError(t, err)
	require.Empty(t, violations)

	for name, test := range map[string]struct{ file, before, after, differs string }{
		"nothing":      {},
		"Helm chart":   {"charts/etcd-druid/templates/deployment.yaml", "revisionHistoryLimit: 1", "revisionHistoryLimit: 2", "  local/garden/etcd-druid/deployment-garden-etcd-druid.yaml:"},
		"CUE":          {"seed/namespace/component.cue", "for Seed system", "for Sead system", "  local/garden/garden-namespace/priorityclass.scheduling.k8s.io-gardener-system-critical.yaml:"},
		"flow":         {"seed/flow.cue", `timeout: "2m"`, `timeout: "3m"`, "  _flows/seed/local.yaml:"},
		"image vector": {"imagevector.yaml", "etcd-druid\n  tag: v", "etcd-druid\n  tag: w", "  local/garden/etcd-druid/deployment-garden-etcd-druid.yaml:"},
	} {
		t.Run(name, func(t *testing.T) {
			catalogue := copyFS(t, components.FS)
			if test.file != "" {
				before := catalogue[test.file].Data
				catalogue[test.file].Data = bytes.Replace(before, []byte(test.before), []byte(test.after), 1)
				require.Equal(t, 1, countDifferentBytes(before, catalogue[test.file].Data), "%s is one character away in %s", test.after, test.file)
			}
			var out bytes.Buffer
			cmd := &cobra.Command{}
			files, err := goldenFiles(cmd, l, catalogue)
			require.NoError(t, err)
			cmd.SetOut(&out)
			err = compareGolden(cmd, record, files, "text")
			if test.file == "" {
				require.NoError(t, err, out.String())
				return
			}
			assert.Equal(t, errFinding, err)
			assert.Contains(t, out.String(), test.differs)
		})
	}
}

func copyFS(t *testing.T, from fs.FS) fstest.MapFS {
	t.Helper()
	out := fstest.MapFS{}
	require.NoError(t, fs.WalkDir(from, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(from, p)
		out[p] = &fstest.MapFile{Data: data}
		return err
	}))
	return out
}

// countDifferentBytes counts the bytes that differ between two texts of equal length.
func countDifferentBytes(a, b []byte) int {
	if len(a) != len(b) {
		return max(len(a), len(b))
	}
	n := 0
	for i := range a {
		if a[i] != b[i] {
			n++
		}
	}
	return n
}
