// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"
	"github.com/go-git/go-git/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/render"
)

func TestDiffWithoutChanges(t *testing.T) {
	dir, commit := repository(t)
	o := pergola(t, "diff", dir)
	assert.Equal(t, 0, o.code, "%+v", o)
	assert.Regexp(t, `^No changes \(\d+ objects in bundles and declarations unchanged\)\. Not affected, and so neither rendered nor counted: 1 Seed\.\n$`, o.stdout)
	assert.Empty(t, o.stderr)
	p := decode[change.Plan](t, pergola(t, "diff", dir, "-o", "json"))
	assert.Empty(t, p.Items)
	assert.Equal(t, "work tree", p.To)
	assert.Contains(t, pergola(t, "diff", dir, "-o", "markdown").stdout, "No changes")

	// A comment or a moved declaration changes nothing on any cluster.
	replaceIn(t, dir, "seed.yaml", "# The seed", "# A seed")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "projects"), 0o755))
	require.NoError(t, os.Rename(filepath.Join(dir, "project.yaml"), filepath.Join(dir, "projects", "p.yaml")))
	commit()
	assert.Equal(t, 0, pergola(t, "diff", dir, "--from", "HEAD~1").code)
}

// TestDiffShowsDeclarationsAndBundles: a changed field of a Seed is shown in the declaration and in
// the objects rendered from it.
func TestDiffShowsDeclarationsAndBundles(t *testing.T) {
	dir, commit := repository(t)
	replaceIn(t, dir, "seed.yaml", "    - \"0\"\n", "    - \"0\"\n    - \"1\"\n")
	replaceIn(t, dir, "project.yaml", "description: The project", "description: Some project")

	text := pergola(t, "diff", dir)
	assert.Equal(t, 1, text.code)
	assert.Contains(t, text.stdout, "  landscape small: declarations\n    ~ Project local\n        spec.description: The project of the demonstration → Some project of the demonstration\n    ~ Seed local\n        spec.provider.zones: ")
	assert.Contains(t, text.stdout, "  seed local: seed/namespace\n    ~ Namespace garden\n        metadata.annotations[high-availability-config.resources.gardener.cloud/zones]: 0 → 0,1\n")
	assert.Contains(t, text.stdout, "  ~ Deployment garden/gardener-resource-manager  (rolls its pods)\n")

	first := commit()
	p := decode[change.Plan](t, pergola(t, "diff", dir, "--from", "HEAD~1", "--to", "HEAD", "-o", "json"))
	assert.Equal(t, first[:10], p.To)
	assert.Equal(t, 5, p.Summary.Change, "etcd-druid is spread over both zones, too")
	var declared []string
	for _, item := range p.Items {
		if item.Bundle == "declarations" {
			declared = append(declared, item.Owner+" "+item.Object.String()+" "+item.Origin)
		}
	}
	assert.Equal(t, []string{"landscape small Project local project.yaml:10", "landscape small Seed local seed.yaml:2"}, declared)

	markdown := pergola(t, "diff", dir, "--from", "HEAD~1", "--to", "HEAD", "-o", "markdown")
	assert.Equal(t, 1, markdown.code)
	assert.Contains(t, markdown.stdout, "→ "+first[:10]+")\n")
	assert.Contains(t, markdown.stdout, "<details><summary>landscape small: declarations (2 changed)</summary>")

	assert.Equal(t, 0, pergola(t, "diff", dir).code, "the work tree is HEAD")
	back := pergola(t, "diff", dir, "--from", "HEAD", "--to", "HEAD~1")
	assert.Contains(t, back.stdout, "zones]: 0,1 → 0\n")
}

// TestDiffNeverShowsSecrets: no format shows plain or SOPS-encrypted values, only that they
// changed.
func TestDiffNeverShowsSecrets(t *testing.T) {
	dir, commit := repository(t)
	plain := "apiVersion: v1\nkind: Secret\nmetadata: {name: plain, namespace: garden}\nstringData: {password: hunter2, old: gone-secret}\n"
	writeFile(t, dir, "plain.yaml", plain)
	commit()
	writeFile(t, dir, "plain.yaml", strings.NewReplacer("hunter2", "hunter3", "old: gone-secret", "new: fresh-secret").Replace(plain))
	writeFile(t, dir, "more.yaml", strings.NewReplacer("name: plain", "name: more", "hunter2", "created-secret").Replace(plain))
	encrypted := "data:bIYFcTo="
	replaceIn(t, dir, "secrets.yaml", encrypted, "data:bIYFcTp=")
	commit()
	require.NoError(t, os.Remove(filepath.Join(dir, "plain.yaml")))

	shown := ""
	for _, format := range []string{"text", "markdown", "json", "html"} {
		for _, args := range [][]string{{"--from", "HEAD~1", "--to", "HEAD"}, {"--from", "HEAD"}, {"--from", "HEAD~1"}, {"--from", "HEAD~2"}} {
			o := pergola(t, append([]string{"diff", dir, "-o", format}, args...)...)
			assert.Equal(t, 1, o.code, "%+v", o)
			shown += o.stdout + o.stderr
		}
	}
	for _, secret := range []string{
		"hunter2", "hunter3", "gone-secret", "fresh-secret", "created-secret", "aHVudGVyMg", "aHVudGVyMw", "Z29uZS1zZWNyZXQ", "ZnJlc2gtc2VjcmV0", "Y3JlYXRlZC1zZWNyZXQ",
		"ENC[", "bIYFcT", "AGE ENCRYPTED",
	} {
		assert.NotContains(t, shown, secret)
	}
	o := pergola(t, "diff", dir, "--from", "HEAD~1", "--to", "HEAD")
	assert.Regexp(t, `    ~ Secret garden/plain\n        data.new: \(hidden value added: \w+\)\n        data.old: \(hidden value removed: \w+\)\n        data.password: \(hidden value changed: \w+ → \w+\)\n`, o.stdout)
	assert.Contains(t, o.stdout, "    ~ Secret garden/seed-dns-local\n        data.zone: (encrypted value changed)\n")
	assert.Contains(t, o.stdout, "  + Secret garden/more\n")
	assert.NotContains(t, o.stdout, "Secret garden/backup-local")
}

// TestDiffOfEncryptedSecretsWithAKey: equal values, encrypted or not, are not a change. Without the
// key this is unknown.
func TestDiffOfEncryptedSecretsWithAKey(t *testing.T) {
	dir, _ := repository(t)
	l, _, err := landscapes.Load(t.Context(), filepath.Join("..", "..", "landscapes", "local"), landscapes.Options{AgeIdentities: demoKey(t)})
	require.NoError(t, err)
	plain, value := "", ""
	for _, d := range l.Declarations {
		if d.File == "seeds/secrets.yaml" {
			text, err := render.MarshalYAML(d.Object().Object)
			require.NoError(t, err)
			plain += "---\n" + string(text)
			for _, v := range d.Object().Object["stringData"].(map[string]any) {
				value = v.(string)
			}
		}
	}
	require.NotEmpty(t, value)
	writeFile(t, dir, "secrets.yaml", plain)

	o := pergola(t, "diff", dir)
	assert.Equal(t, 1, o.code)
	assert.Contains(t, o.stdout, "Secret garden/seed-dns-local\n        data.zone: (encrypted value changed)\n")
	assert.NotContains(t, o.stdout+o.stderr, value)

	t.Setenv("SOPS_AGE_KEY", readDemoFile(t, ".sops/age.key"))
	assert.Equal(t, 0, pergola(t, "diff", dir).code)
	writeFile(t, dir, "secrets.yaml", strings.ReplaceAll(plain, value, value+"x"))
	o = pergola(t, "diff", dir)
	assert.Equal(t, 1, o.code)
	assert.Contains(t, o.stdout, ": (hidden value changed: ")
	assert.NotContains(t, o.stdout+o.stderr, value)
}

func demoKey(t *testing.T) []age.Identity {
	t.Helper()
	identities, err := landscapes.ParseAgeIdentities(readDemoFile(t, ".sops/age.key"))
	require.NoError(t, err)
	return identities
}

// TestDiffOfDeletions: the diff shows further objects that a deletion removes, and the held ones.
func TestDiffOfDeletions(t *testing.T) {
	dir, _ := repository(t)
	require.NoError(t, os.Remove(filepath.Join(dir, "project.yaml")))
	o := pergola(t, "diff", dir, "--to", "HEAD")
	assert.Equal(t, 0, o.code, "%+v", o)
	assert.Contains(t, o.stderr, " is compared with itself: give another revision with --from, or omit --to to compare with the work tree\n")
	o = pergola(t, "diff", dir)
	assert.Equal(t, 1, o.code)
	assert.Contains(t, o.stdout, "Namespace garden-local  (removal is held: Project local refers to it, and is held itself)")
	assert.Contains(t, o.stdout, "Project local  (removal is held: its file no longer exists)")

	replaceIn(t, dir, "landscape.yaml", "  catalogue:", "  components: {seed: {crds: {enabled: false}, etcd-druid: {enabled: false}, gardener-resource-manager: {enabled: false}, namespace: {enabled: false}, system: {enabled: false}}}\n  catalogue:")
	o = pergola(t, "diff", dir)
	assert.Contains(t, o.stdout, "CustomResourceDefinition etcds.druid.gardener.cloud  (delete is held: kind CustomResourceDefinition is protected; its approval is ")
	assert.Contains(t, o.stdout, "Deployment garden/etcd-druid  (delete is held: ", "too many at once")
	assert.Contains(t, o.stdout, "Namespace garden  (its bundle keeps objects)")
}

// TestDiffFromAnInvalidRevision: the commit that repairs a landscape can be reviewed. Errors are
// shown with their revision, and the rest is compared.
func TestDiffFromAnInvalidRevision(t *testing.T) {
	dir, commit := repository(t)
	replaceIn(t, dir, "seed.yaml", "    region: local\n", "    regoin: local\n")
	replaceIn(t, dir, "landscape.yaml", "  catalogue:", "  components:\n    garden:\n      vpaa: {enabled: false}\n  catalogue:")
	writeFile(t, dir, "components/seed/system/kustomization.yaml", "patchs: []\n")
	commit()
	replaceIn(t, dir, "seed.yaml", "    regoin: local\n", "    region: local\n")
	replaceIn(t, dir, "landscape.yaml", "vpaa", "vpa")
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "components")))

	const note = "revision HEAD is not valid (3 errors): the comparison uses the part that renders, and shows the rest as new"
	o := pergola(t, "diff", dir)
	assert.Equal(t, 1, o.code)
	for _, want := range []string{
		"HEAD: " + filepath.Join(dir, "components/seed/system/kustomization.yaml") + ":1:1: error: patchs: the field",
		"HEAD: " + filepath.Join(dir, "landscape.yaml") + ":8:7: error: Landscape small: spec.components.garden.vpaa: no component garden/vpaa",
		"HEAD: " + filepath.Join(dir, "seed.yaml") + ":9:5: error: Seed local: spec.provider.regoin: ",
	} {
		assert.Contains(t, o.stderr, want)
	}
	assert.True(t, strings.HasPrefix(o.stdout, "Note: "+note+"\n\n1 to change, "), o.stdout)
	assert.Contains(t, o.stdout, "\n  landscape small: declarations\n    ~ Seed local\n")
	assert.Regexp(t, `\n\n1 to change, \d\d unchanged`, o.stdout, "everything else is the same, and not shown as new")
	assert.Contains(t, pergola(t, "diff", dir, "-o", "markdown").stdout, "> "+note+"\n")
	assert.Equal(t, []string{note}, decode[change.Plan](t, pergola(t, "diff", dir, "-o", "json")).Notes)

	require.NoError(t, os.Remove(filepath.Join(dir, "landscape.yaml")))
	commit()
	smallLandscape(t, dir)
	o = pergola(t, "diff", dir)
	assert.Equal(t, 1, o.code)
	assert.True(t, strings.HasPrefix(o.stdout, "Note: revision HEAD has no landscape in this folder: everything is new\n"), o.stdout)
	assert.Regexp(t, `\n\n\d+ to create, 0 unchanged`, o.stdout)
}

// TestDiffNeedsNoWorkTree: two revisions are compared from the repository alone.
func TestDiffNeedsNoWorkTree(t *testing.T) {
	dir, commit := repository(t)
	replaceIn(t, dir, "project.yaml", "description: The project", "description: Some project")
	commit()
	require.NoError(t, os.RemoveAll(dir))
	o := pergola(t, "diff", dir)
	assert.Equal(t, 1, o.code, "%+v", o)
	assert.True(t, strings.HasPrefix(o.stdout, "Note: the work tree has no landscape in this folder: such a revision is not applied, and the clusters stay unchanged\n"), o.stdout)
	writeFile(t, filepath.Dir(dir), "README.md", "nothing")
	commit()

	o = pergola(t, "diff", dir, "--from", "HEAD~2", "--to", "HEAD~1")
	assert.Equal(t, 1, o.code, "%+v", o)
	assert.Contains(t, o.stdout, "spec.description: The project of the demonstration → Some project of the demonstration\n")
	o = pergola(t, "diff", dir, "--from", "HEAD~1", "--to", "HEAD")
	assert.Equal(t, 1, o.code, "%+v", o)
	assert.True(t, strings.HasPrefix(o.stdout, "Note: revision HEAD has no landscape in this folder: such a revision is not applied, and the clusters stay unchanged\n"), o.stdout)
	assert.NotContains(t, o.stdout, "delete")
	o = pergola(t, "diff", dir, "--from", "HEAD", "--to", "HEAD~1")
	assert.Equal(t, 1, o.code, "%+v", o)
	assert.Contains(t, o.stdout, "Note: revision HEAD has no landscape in this folder: everything is new\n")

	bare := filepath.Join(t.TempDir(), "bare.git")
	_, err := git.PlainClone(bare, true, &git.CloneOptions{URL: filepath.Dir(dir)})
	require.NoError(t, err)
	t.Chdir(bare)
	o = pergola(t, "diff", "landscape", "--from", "HEAD~2", "--to", "HEAD~1")
	assert.Equal(t, 1, o.code, "%+v", o)
	assert.Contains(t, o.stdout, "spec.description: The project of the demonstration → ")

	t.Setenv("SOPS_AGE_KEY_FILE", filepath.Join(bare, "nowhere"))
	o = pergola(t, "diff", "landscape", "--from", "HEAD~2", "--to", "HEAD~1")
	assert.Equal(t, 2, o.code)
	assert.Contains(t, o.stderr, "SOPS_AGE_KEY_FILE: file ", "a missing file of keys is no missing landscape")
}

func TestDiffErrors(t *testing.T) {
	dir, _ := repository(t)
	outside := t.TempDir()
	smallLandscape(t, outside)
	invalid, commitInvalid := repository(t)
	replaceIn(t, invalid, "seed.yaml", "    region: local\n", "    regoin: local\n")
	replaceIn(t, invalid, "project.yaml", "  description: ", "  descriptoin: ")
	writeFile(t, invalid, "broken.yaml", "a: [\n")
	commitInvalid()
	upgraded, _ := repository(t)
	replaceIn(t, upgraded, "landscape.yaml", "version: ", "version: 9")

	for name, test := range map[string]struct {
		args   []string
		code   int
		stderr []string
	}{
		"no such revision":   {[]string{dir, "--from", "nope"}, 2, []string{`Error: revision "nope": not found`, "give a branch, a tag or a commit"}},
		"no such target":     {[]string{dir, "--to", "nope"}, 2, []string{`Error: revision "nope": not found`}},
		"no repository":      {[]string{outside}, 2, []string{"is not in a Git repository"}},
		"no such folder":     {[]string{filepath.Join(dir, "nope")}, 2, []string{"Error: " + filepath.Join(dir, "nope") + " is not a landscape: neither revision HEAD nor the work tree has a file landscape.yaml there"}},
		"no landscape":       {[]string{filepath.Dir(dir), "--to", "HEAD"}, 2, []string{"is not a landscape: neither revision HEAD nor revision HEAD has a file landscape.yaml there"}},
		"a folder":           {[]string{dir, "--from", "HEAD:landscape"}, 2, []string{`Error: revision "HEAD:landscape": ":landscape" names a file or folder of a commit, not a commit: give the commit alone (HEAD); the folder is the argument`}},
		"live and revisions": {[]string{dir, "--live", "--from", "HEAD"}, 2, []string{"--live compares with the clusters: omit --from"}},
		"unknown format":     {[]string{dir, "-o", "xml"}, 2, []string{`Error: --output "xml": want one of text, markdown, json`}},
		"invalid work tree": {[]string{invalid, "--from", "HEAD~1"}, 1, []string{
			"broken.yaml:", "seed.yaml:9:5: error: Seed local: spec.provider.regoin: ", "project.yaml:16:3: error: Project local: spec.descriptoin: ", "Error: the landscape is not valid: nothing was done\n",
		}},
		"invalid target":    {[]string{invalid, "--from", "HEAD~1", "--to", "HEAD"}, 1, []string{"HEAD: " + filepath.Join(invalid, "seed.yaml") + ":9:5: error: ", "Error: the landscape is not valid: nothing was done\n"}},
		"another catalogue": {[]string{upgraded}, 1, []string{filepath.Join(upgraded, "landscape.yaml") + ":7:14: error: Landscape small: spec.catalogue.version: the landscape needs catalogue 9", "Error: the landscape is not valid"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, format := range []string{"text", "json"} {
				args := append([]string{"diff"}, test.args...)
				if name != "unknown format" {
					args = append(args, "-o", format)
				}
				o := pergola(t, args...)
				assert.Equal(t, test.code, o.code, "%+v", o)
				if name == "unknown format" || format == "text" {
					assert.Empty(t, o.stdout, "nothing that could be taken for a diff")
				} else {
					assert.NotEmpty(t, decode[errorResult](t, o).Error.Message)
				}
				for _, want := range test.stderr {
					assert.Contains(t, o.stderr, want)
				}
			}
		})
	}
}
