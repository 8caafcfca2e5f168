// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/schemas"
)

// TestErrorsAsJSON: without a result the reason is JSON on standard output and text on standard
// error.
func TestErrorsAsJSON(t *testing.T) {
	dir := t.TempDir()
	smallLandscape(t, dir)
	invalid := t.TempDir()
	smallLandscape(t, invalid)
	replaceIn(t, invalid, "seed.yaml", "    region: local\n", "    regoin: local\n")
	nope := filepath.Join(dir, "nope")

	for name, test := range map[string]struct {
		args     []string
		code     int
		message  string
		findings int
	}{
		"validate, nothing there":     {[]string{"validate", nope}, 2, "no such file or directory: ", 0},
		"validate, no argument":       {[]string{"validate"}, 2, "PATH is missing: pergola validate PATH… [flags]; pergola validate --help has examples", 0},
		"render, two landscapes":      {[]string{"render", "a", "b"}, 2, `"b" is one argument too many: pergola render LANDSCAPE [flags]; pergola render --help has examples`, 0},
		"operate, no operation":       {[]string{"operate", ".", "Garden local"}, 2, "OPERATION is missing: pergola operate LANDSCAPE OBJECT OPERATION [flags]; pergola operate --help has examples", 0},
		"validate, unknown flag":      {[]string{"validate", "--nonsense"}, 2, "unknown flag: --nonsense", 0},
		"validate, old":               {[]string{"validate", filepath.Join(dir, "seed.yaml"), "--old", filepath.Join(invalid, "nope")}, 2, "--old: ", 0},
		"diff, no repository":         {[]string{"diff", dir}, 2, "is not in a Git repository", 0},
		"diff, live, no clusters":     {[]string{"diff", dir, "--live"}, 2, "cluster runtime: ", 0},
		"diff, live, invalid":         {[]string{"diff", invalid, "--live"}, 1, "the landscape is not valid: nothing was done", 1},
		"render, no landscape":        {[]string{"render", nope}, 2, "nope is not a landscape: there is no such folder", 0},
		"render, invalid":             {[]string{"render", invalid}, 1, "the landscape is not valid: nothing was done", 1},
		"render, no bundle":           {[]string{"render", dir, "--owner", "nobody"}, 2, `there is no owner "nobody"`, 0},
		"status, no clusters":         {[]string{"status", dir}, 2, "cluster runtime: ", 0},
		"status, invalid":             {[]string{"status", invalid}, 1, "the landscape is not valid: nothing was done", 1},
		"apply, no key":               {[]string{"apply", dir}, 2, "nothing was applied, because there is no key for encrypted Secrets: Secret garden/seed-dns-local (secrets.yaml:2), ", 0},
		"apply, invalid":              {[]string{"apply", invalid}, 1, "the landscape is not valid: nothing was done", 1},
		"apply, dry run, no clusters": {[]string{"apply", dir, "--dry-run"}, 2, "cluster runtime: ", 0},
		"apply, timeout":              {[]string{"apply", dir, "--dry-run", "--timeout", "0s"}, 2, "--timeout 0s: ", 0},
		"health, no object":           {[]string{"health"}, 2, "no objects read from <stdin>", 0},
		"flow, no owner":              {[]string{"flow", "moon"}, 2, `owner "moon": want one of garden, seed, shoot`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			for _, form := range [][]string{{"-o", "json"}, {"--output=json"}, {"-ojson"}} {
				o := pergola(t, append(test.args, form...)...)
				assert.Equal(t, test.code, o.code, "%+v", o)
				got := decode[errorResult](t, o)
				assert.Contains(t, got.Error.Message, test.message)
				assert.Contains(t, o.stderr, "Error: "+got.Error.Message+"\n")
				assert.Len(t, got.Error.Findings, test.findings)
			}
			if test.args[0] != "health" {
				o := pergola(t, test.args...)
				assert.Equal(t, test.code, o.code)
				assert.Empty(t, o.stdout, "without -o json")
				assert.Contains(t, o.stderr, test.message)
			}
		})
	}
}

// TestNoErrorBesideAResult: problems in the result are not repeated as an error.
func TestNoErrorBesideAResult(t *testing.T) {
	dir := t.TempDir()
	smallLandscape(t, dir)
	replaceIn(t, dir, "seed.yaml", "    region: local\n", "    regoin: local\n")
	o := pergola(t, "validate", dir, "-o", "json")
	assert.Equal(t, 1, o.code)
	assert.Len(t, decode[[]schemas.Violation](t, o), 1, "a misspelt field is read as the one that was meant")

	// If the clusters do not answer, the plan contains that, in one document.
	writeFile(t, dir, "config", `{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}],
  users: [{name: a, user: {}}], clusters: [{name: a, cluster: {server: "https://127.0.0.1:1"}}]}`)
	config := filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.Rename(filepath.Join(dir, "config"), config))
	replaceIn(t, dir, "seed.yaml", "    regoin: local\n", "    region: local\n")
	dry := []string{"apply", dir, "--dry-run"}
	for _, cluster := range []string{"runtime", "virtual", "local"} {
		dry = append(dry, "--kubeconfig", cluster+"="+config)
	}
	o = pergola(t, append(dry, "-o", "json")...)
	assert.Equal(t, 2, o.code, "%+v", o)
	p := decode[struct{ Notes []string }](t, o)
	assert.Contains(t, strings.Join(p.Notes, "\n"), "Secret garden/seed-dns-local is encrypted, and no key opens it: left out of the comparison\n")
	assert.NotContains(t, o.stdout, `"error"`)

	o = pergola(t, dry...)
	assert.Equal(t, 2, o.code)
	assert.Contains(t, o.stdout, "\nNote: Secret garden/seed-dns-local is encrypted, and no key opens it: left out of the comparison\n")
	assert.NotContains(t, o.stdout, "- Secret")
}

// TestFindingsAreReportedAlike: all commands print findings with their source line and a summary.
func TestFindingsAreReportedAlike(t *testing.T) {
	dir, commit := repository(t)
	file := filepath.Join(dir, "project.yaml")
	replaceIn(t, dir, "project.yaml", "  description: The", "  descriptoin: The")
	commit()
	replaceIn(t, dir, "project.yaml", "  descriptoin: The", "  description: Another")
	o := pergola(t, "diff", dir)
	assert.Equal(t, 1, o.code)
	assert.Contains(t, o.stderr, "HEAD: "+file+":16:3: error: Project local: spec.descriptoin: ")
	assert.Contains(t, o.stderr, "\n   16 |   descriptoin: The project of the demonstration\n      |   ^\nNot valid: 1 error in 1 file.\n", "the line as it was in the revision")

	replaceIn(t, dir, "project.yaml", "  description: Another", "  descriptoin: Another")
	for _, command := range [][]string{{"render"}, {"diff"}, {"golden"}, {"status"}, {"apply"}} {
		o = pergola(t, append(command, dir)...)
		assert.Equal(t, 1, o.code)
		assert.Contains(t, o.stderr, file+":16:3: error: Project local: spec.descriptoin: ")
		assert.Contains(t, o.stderr, "\n   16 |   descriptoin: Another project of the demonstration\n")
		end := "the landscape is not valid"
		if command[0] == "diff" {
			end = "the landscape is valid neither in the work tree nor in revision HEAD"
		}
		assert.True(t, strings.HasSuffix(o.stderr, "\nNot valid: 1 error in 1 file.\nError: "+end+": nothing was done\n"), o.stderr)
	}
}
