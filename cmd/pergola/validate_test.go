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

const brokenSeed = "apiVersion: core.gardener.cloud/v1beta1\nkind: Seed\nmetadata:\n  name: a\nspec:\n  provider:\n    type: local\n    regoin: x\n"

// seedWithNullField has a field without a value, which the API drops.
func seedWithNullField(t *testing.T) string {
	return strings.Replace(readDemoFile(t, "seeds/local.yaml"), "\nspec:\n", "\nspec:\n  taints:\n", 1)
}

func TestValidate(t *testing.T) {
	dir := t.TempDir()
	smallLandscape(t, dir)
	bad := t.TempDir()
	smallLandscape(t, bad)
	replaceIn(t, bad, "seed.yaml", "    region: local\n", "    regoin: local\n")
	replaceIn(t, bad, "project.yaml", "namespace: garden-local", "namespace: 7")
	writeFile(t, bad, "broken.yaml", "a: [\n")
	writeFile(t, dir, "no-landscape/x.yaml", "")

	tests := map[string]struct {
		stdin          string
		args           []string
		code           int
		stdout, stderr []string
	}{
		"folder":                    {args: []string{dir}, code: 0, stdout: []string{"Valid: no findings.\n"}},
		"file":                      {args: []string{filepath.Join(dir, "seed.yaml")}, code: 0, stdout: []string{"Valid: no findings.\n"}},
		"several":                   {args: []string{filepath.Join(dir, "seed.yaml"), dir}, code: 0, stdout: []string{"Valid: no findings.\n"}},
		"standard input":            {stdin: readDemoFile(t, "seeds/local.yaml"), args: []string{"-"}, code: 0, stdout: []string{"Valid: no findings.\n"}},
		"JSON of nothing is a list": {args: []string{dir, "-o", "json"}, code: 0, stdout: []string{"[]\n"}},
		"GitHub, nothing":           {args: []string{dir, "-o", "github"}, code: 0},
		"invalid folder: everything at once": {args: []string{bad}, code: 1, stdout: []string{
			filepath.Join(bad, "broken.yaml") + ":", filepath.Join(bad, "seed.yaml") + ":9:5: error: Seed local: spec.provider.regoin: ",
			filepath.Join(bad, "project.yaml") + ":", "error: Project local: spec.namespace: ",
		}},
		"invalid standard input": {stdin: brokenSeed, args: []string{"-"}, code: 1, stdout: []string{`<stdin>:8:5: error: Seed a: spec.provider.regoin: the field "regoin" does not exist; did you mean "region"? [structure]`}},
		"GitHub":                 {stdin: brokenSeed, args: []string{"-", "-o", "github"}, code: 1, stdout: []string{`::error file=<stdin>,line=8,col=5,title=Seed a%3A structure::spec.provider.regoin: the field "regoin" does not exist`}},
		"source line":            {stdin: brokenSeed, args: []string{"-"}, code: 1, stdout: []string{"    8 | ", "      |     ^\nNot valid: "}},
		"SARIF":                  {stdin: brokenSeed, args: []string{"-", "-o", "sarif"}, code: 1, stdout: []string{`"version": "2.1.0"`, `"startLine": 8`, `"ruleId": "structure"`}},
		"a warning passes":       {stdin: seedWithNullField(t), args: []string{"-"}, code: 0, stdout: []string{"Valid: 1 warning in 1 file."}},
		"not when strict":        {stdin: seedWithNullField(t), args: []string{"-", "--strict"}, code: 1, stdout: []string{"Not valid: 1 error in 1 file."}},
		"nothing at all":         {stdin: "", args: []string{"-"}, code: 1, stdout: []string{"<stdin>: error: holds no declaration"}},
		"missing path":           {args: []string{filepath.Join(dir, "nope")}, code: 2, stderr: []string{"Error: no such file or directory: ", "nope; give a landscape folder, a manifest, or - for standard input"}},
		"no landscape":           {args: []string{filepath.Join(dir, "no-landscape")}, code: 2, stderr: []string{"is not a landscape: it has no file landscape.yaml"}},
		"no path":                {args: nil, code: 2, stderr: []string{"Error: PATH is missing"}},
		"unknown format":         {args: []string{dir, "-o", "xml"}, code: 2, stderr: []string{`Error: --output "xml": want one of text, json, sarif, github`}},
		"--old with a folder":    {args: []string{dir, "--old", filepath.Join(dir, "seed.yaml")}, code: 2, stderr: []string{"--old is for a single manifest"}},
		"--old of others":        {args: []string{filepath.Join(dir, "seed.yaml"), "--old", filepath.Join(dir, "project.yaml")}, code: 2, stderr: []string{"project.yaml and ", "seed.yaml have no kind in common: nothing is compared"}},
		"--old missing":          {args: []string{filepath.Join(dir, "seed.yaml"), "--old", "nope"}, code: 2, stderr: []string{"--old: "}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := pergolaWith(t, test.stdin, append([]string{"validate"}, test.args...)...)
			assert.Equal(t, test.code, o.code, "%+v", o)
			for _, want := range test.stdout {
				assert.Contains(t, o.stdout, want)
			}
			for _, want := range test.stderr {
				assert.Contains(t, o.stderr, want)
			}
			if test.stdout == nil {
				assert.Empty(t, o.stdout)
			}
			// the folder has encrypted Secrets, and no key is set
			if test.stderr == nil && o.stderr != "" {
				assert.Equal(t, "Note: the values of 2 Secrets are not decrypted, so damaged or moved values are not found: give a key with SOPS_AGE_KEY_FILE or SOPS_AGE_KEY.\n", o.stderr)
			}
		})
	}
}

// TestValidateLandscape: one run of any command checks a landscape's settings for the catalogue
// along with its declarations.
func TestValidateLandscape(t *testing.T) {
	dir := t.TempDir()
	smallLandscape(t, dir)
	replaceIn(t, dir, "landscape.yaml", "  catalogue:", "  components:\n    seed:\n      systm: {enabled: false}\n  images:\n  - name: etcd-driud\n    tag: v1\n  facts: facts.txt\n  catalogue:")
	writeFile(t, dir, "facts.txt", "seed loca: {}\n")
	writeFile(t, dir, "components/seed/etcd-druid/kustomization.yaml", "patches:\n- patch: '{apiVersion: apps/v1, kind: Deployment, metadata: {name: etcd-druid}, spec: {replicas: 2}}'\n- patch: '{apiVersion: apps/v1, kind: Deployment, metadata: {name: etcd-driud}}'\n")
	writeFile(t, dir, "other.yaml", strings.Replace(readDemoFile(t, "seeds/local.yaml"), "name: local", "name: runtime", 1))
	replaceIn(t, dir, "seed.yaml", "    region: local\n", "    regoin: local\n")
	in := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
	want := []string{
		in("components/seed/etcd-druid/kustomization.yaml") + `:3:3: error: patches[1]: matches nothing: the component has no Deployment "etcd-driud" of apps/v1; did you mean "etcd-druid"? [landscape/overlay]`,
		in("facts.txt") + `:1:1: error: [seed loca]: there is no seed loca in this landscape; did you mean "seed local"? [landscape/facts]`,
		in("landscape.yaml") + ":8:7: error: Landscape small: spec.components.seed.systm: no component seed/systm in the catalogue; did you mean seed/system? [landscape/catalogue]",
		in("landscape.yaml") + `:10:11: error: Landscape small: spec.images[0].name: no image "etcd-driud" in components/imagevector.yaml; did you mean "etcd-druid"? [landscape/image]`,
		in("other.yaml") + ":5:9: error: Seed runtime: metadata.name: a Seed cannot be named runtime: ",
		in("seed.yaml") + ":9:5: error: Seed local: spec.provider.regoin: ",
	}
	o := pergola(t, "validate", dir)
	assert.Equal(t, 1, o.code)
	for _, line := range want {
		assert.Contains(t, o.stdout, line)
	}
	for _, command := range [][]string{{"render"}, {"golden"}, {"apply"}, {"apply", "--dry-run"}, {"diff", "--live"}} {
		o := pergola(t, append(command, dir)...)
		assert.Equal(t, 1, o.code, "%v", command)
		assert.Empty(t, o.stdout, "%v", command)
		for _, line := range want {
			assert.Contains(t, o.stderr, line, "%v", command)
		}
		assert.Contains(t, o.stderr, "Error: the landscape is not valid: nothing was done\n")
	}
}

func TestValidateJSON(t *testing.T) {
	o := pergolaWith(t, brokenSeed, "validate", "-", "-o", "json")
	assert.Equal(t, 1, o.code)
	violations := decode[[]schemas.Violation](t, o)
	require.NotEmpty(t, violations)
	var found bool
	for _, v := range violations {
		found = found || v == schemas.Violation{
			Severity: "error", File: "<stdin>", Line: 8, Column: 5, Kind: "Seed", Name: "a", Field: "spec.provider.regoin", Type: v.Type, Rule: "structure", Message: v.Message,
		}
	}
	assert.True(t, found, o.stdout)
}

// TestValidateOld: --old must be a readable file.
func TestValidateOld(t *testing.T) {
	dir := t.TempDir()
	smallLandscape(t, dir)
	writeFile(t, dir, "before.yaml", readDemoFile(t, "projects/local/project.yaml"))
	writeFile(t, dir, "broken.yaml", "a: [\n")
	project := filepath.Join(dir, "project.yaml")
	assert.Equal(t, 0, pergola(t, "validate", project, "--old", filepath.Join(dir, "before.yaml")).code)
	o := pergola(t, "validate", project, "--old", filepath.Join(dir, "broken.yaml"))
	assert.Equal(t, 2, o.code)
	assert.Contains(t, o.stderr, "--old: "+filepath.Join(dir, "broken.yaml")+":")
	assert.Contains(t, o.stderr, "\nNot valid: 1 error in 1 file.\nError: --old: "+filepath.Join(dir, "broken.yaml")+" is not valid: nothing is compared; give a valid file\n")
}

// TestValidateFrom: with the previous revision, the rules of updates and deletions apply to a whole
// landscape.
func TestValidateFrom(t *testing.T) {
	dir, commit := repository(t)
	project, err := os.ReadFile(filepath.Join(dir, "project.yaml"))
	require.NoError(t, err)
	assert.Equal(t, 0, pergola(t, "validate", dir, "--from", "HEAD").code)
	replaceIn(t, dir, "project.yaml", "namespace: garden-local", "namespace: garden-other")
	assert.Equal(t, 0, pergola(t, "validate", dir).code, "it is valid by itself")
	o := pergola(t, "validate", dir, "--from", "HEAD")
	assert.Equal(t, 1, o.code)
	assert.Regexp(t, `project\.yaml:\d+:14: error: Project local: spec\.namespace: `, o.stdout)

	diff := pergola(t, "diff", dir)
	assert.Equal(t, 1, diff.code)
	assert.Contains(t, diff.stdout, "spec.namespace: garden-local → garden-other")
	assert.Contains(t, diff.stdout, "1 part of this change cannot be applied, and nothing of it is applied until they are removed: pergola validate --from shows them")
	assert.Contains(t, diff.stdout, "✗ Project local  (spec.namespace: must stay \"garden-local\": the namespace cannot be changed)")
	assert.Contains(t, diff.stderr, "Project local: spec.namespace: ")

	require.NoError(t, os.Remove(filepath.Join(dir, "project.yaml")))
	o = pergola(t, "validate", dir, "--from", "HEAD")
	assert.Equal(t, 0, o.code, "the operator applies what else such a change has, and holds this: an error would keep the former out")
	const held = "warning: Project local: metadata.annotations[confirmation.gardener.cloud/deletion]: its file no longer exists, but this version cannot delete a Project with everything that runs for it. To keep it, "
	assert.Contains(t, o.stdout, filepath.Join(dir, "landscape.yaml")+": "+held+"put project.yaml back", "no place is in a file that is gone")
	assert.NotContains(t, o.stdout, "without its confirmation", "nobody can annotate what is not there")
	assert.Equal(t, 1, pergola(t, "validate", dir, "--from", "HEAD", "--strict").code)
	writeFile(t, dir, "project.yaml", string(project))
	replaceIn(t, dir, "project.yaml", "  name: local", "  annotations: {confirmation.gardener.cloud/deletion: \"true\"}\n  name: local")
	commit()
	require.NoError(t, os.Remove(filepath.Join(dir, "project.yaml")))
	o = pergola(t, "validate", dir, "--from", "HEAD")
	assert.Equal(t, 0, o.code)
	assert.Contains(t, o.stdout, held, "a confirmation changes nothing")
	for _, wrong := range [][]string{{filepath.Join(dir, "seed.yaml"), "--from", "HEAD"}, {dir, "--old", "x"}, {dir, "--from", "nope"}} {
		assert.Equal(t, 2, pergola(t, append([]string{"validate"}, wrong...)...).code, "%v", wrong)
	}
}

// TestValidateUnreadableFile: the content of an unreadable file is unknown, so nothing counts as
// removed or missing.
func TestValidateUnreadableFile(t *testing.T) {
	dir, _ := repositoryWithShoot(t)
	for file, first := range map[string]string{"garden.yaml": "spec:", "gardensecrets.yaml": "metadata:", "seed.yaml": "spec:", "project.yaml": "spec:", "profile.yaml": "spec:"} {
		t.Run(file, func(t *testing.T) {
			before, err := os.ReadFile(filepath.Join(dir, file))
			require.NoError(t, err)
			defer writeFile(t, dir, file, string(before))
			replaceIn(t, dir, file, first, strings.TrimSuffix(first, ":")+"\n")
			o := pergola(t, "validate", dir, "--from", "HEAD")
			assert.Equal(t, 1, o.code)
			assert.Contains(t, o.stdout, "this is not YAML")
			for _, wrong := range []string{"its file no longer exists", "there is no", "no Seed", "no Project", "no CloudProfile", "nothing in the runtime cluster refers to it"} {
				assert.NotContains(t, o.stdout, wrong)
			}
		})
	}
	require.NoError(t, os.Remove(filepath.Join(dir, "seed.yaml")))
	o := pergola(t, "validate", dir, "--from", "HEAD")
	assert.Contains(t, o.stdout, "its file no longer exists")
	assert.Contains(t, o.stdout, "no Seed \"local\" in this landscape")
}

// TestValidateRemoval: objects that only --old has are removed.
func TestValidateRemoval(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir, "old.yaml", readDemoFile(t, "projects/local/project.yaml")+"---\n"+readDemoFile(t, "seeds/local.yaml"))
	writeFile(t, dir, "new.yaml", readDemoFile(t, "seeds/local.yaml"))
	o := pergola(t, "validate", filepath.Join(dir, "new.yaml"), "--old", filepath.Join(dir, "old.yaml"))
	assert.Equal(t, 1, o.code)
	assert.Contains(t, o.stdout, "Project local: metadata.annotations[confirmation.gardener.cloud/deletion]: ")
	assert.Equal(t, 0, pergola(t, "validate", filepath.Join(dir, "new.yaml"), filepath.Join(dir, "new.yaml"), "--old", filepath.Join(dir, "old.yaml")).code)
}
