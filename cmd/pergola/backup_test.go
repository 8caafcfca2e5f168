// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/commands/recovery"
)

// writeSampleBackup writes a backup with one entry, and its key.
func writeSampleBackup(t *testing.T) (file, key string) {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	file, key = filepath.Join(t.TempDir(), "some.backup"), filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(key, []byte(id.String()+"\n"), 0o600))
	a := &recovery.Archive{
		Manifest: recovery.Manifest{
			Format: recovery.Format, Version: recovery.Version, ID: "20260102t030405-abcdef01", Created: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Program: "0.1.0", Catalogue: "0.1.0",
			Landscape: recovery.Landscape{Name: "small", Revision: "abc", Dirty: true}, Garden: recovery.Garden{Name: "g", UID: "u"}, Clusters: []recovery.Cluster{{Name: "runtime", UID: "c"}},
		},
		Entries: []*recovery.Entry{{Item: recovery.Item{Cluster: "runtime", Kind: "Secret", Namespace: "garden", Name: "ca-12345678", Origin: recovery.OriginGenerated}}},
	}
	require.NoError(t, recovery.WriteFile(file, a, id.Recipient()))
	return file, key
}

func TestBackupShow(t *testing.T) {
	file, key := writeSampleBackup(t)
	o := pergola(t, "backup", "show", file)
	assert.Equal(t, 2, o.code)
	assert.Contains(t, o.stderr, file+": no key opens it: give the age key of one of its recipients, in SOPS_AGE_KEY_FILE or SOPS_AGE_KEY")

	t.Setenv("SOPS_AGE_KEY_FILE", key)
	o = pergola(t, "backup", "show", file)
	require.Equal(t, 0, o.code, "%+v", o)
	assert.Contains(t, o.stdout, "Backup     20260102t030405-abcdef01, format 1, made 2026-01-02 03:04:05 UTC by Pergola 0.1.0")
	assert.Contains(t, o.stdout, "Landscape  small, abc, with uncommitted changes\n")
	assert.Regexp(t, `(?m)^runtime +Secret +garden/ca-12345678 +generated +[0-9a-f]{16} *$`, o.stdout)
	m := decode[recovery.Manifest](t, pergola(t, "backup", "show", file, "-o", "json"))
	assert.Equal(t, "small", m.Landscape.Name)

	o = pergola(t, "backup", "show", key)
	assert.Equal(t, 2, o.code)
	assert.Contains(t, o.stderr, "it is not a backup of Pergola: give an age-encrypted file that pergola backup LANDSCAPE --to FILE has written")
	assert.NotContains(t, o.stderr, "AGE-SECRET")
}

func TestBackupArguments(t *testing.T) {
	dir := t.TempDir()
	smallLandscape(t, dir)
	to := filepath.Join(t.TempDir(), "x.backup")
	id, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	for name, test := range map[string]struct {
		args   []string
		stderr string
	}{
		"no file":           {[]string{dir}, `--to (file to write; an existing file is replaced) is missing: pergola backup LANDSCAPE --to FILE [flags]; pergola backup --help has examples`},
		"nobody":            {[]string{dir, "--to", to}, "the landscape has no .sops.yaml, which would name the recipients: name those of the backup with --recipient"},
		"a wrong recipient": {[]string{dir, "--to", to, "--recipient", "bob"}, `--recipient: "bob" is not a public age key`},
		"a private key":     {[]string{dir, "--to", to, "--recipient", id.String()}, "this is a private age key"},
		"no such file":      {[]string{dir, "--to", to, "--recipients-file", to}, "--recipients-file: open "},
		"no landscape":      {[]string{filepath.Join(dir, "nope"), "--to", to}, "nope is not a landscape: there is no such folder"},
		"no access":         {[]string{dir, "--to", to, "--recipient", id.Recipient().String()}, "cluster runtime: no access"},
		"no such cluster":   {[]string{dir, "--to", to, "--recipient", id.Recipient().String(), "--cluster", "x"}, "--cluster x: there is no cluster of the landscape with a backup \"x\"; want one of runtime, local"},
	} {
		t.Run(name, func(t *testing.T) {
			o := pergola(t, append([]string{"backup"}, test.args...)...)
			assert.Equal(t, 2, o.code)
			assert.Contains(t, o.stderr, test.stderr)
			assert.NotContains(t, o.stderr, id.String())
			assert.NoFileExists(t, to)
		})
	}
}

func TestRestoreArguments(t *testing.T) {
	file, key := writeSampleBackup(t)
	dir := t.TempDir()
	smallLandscape(t, dir)
	o := pergola(t, "restore", dir, "--from", file)
	assert.Equal(t, 2, o.code)
	assert.Contains(t, o.stderr, "no key opens it")
	t.Setenv("SOPS_AGE_KEY_FILE", key)
	o = pergola(t, "restore", dir, "--from", file)
	assert.Equal(t, 2, o.code)
	assert.Contains(t, o.stderr, "cluster runtime: no access", "%+v", o)
	assert.Equal(t, 2, pergola(t, "restore", dir).code)
}
