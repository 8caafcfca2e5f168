// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/source/forge"
	"github.com/pergola-dev/pergola/source/forge/forgetest"
)

// fleet is a repository of three landscapes on the base of the demonstration, with more Shoots and
// defaults for their worker pools. Each landscape has a Garden, a Seed and the base's Shoots, and
// overrides some of their fields.
type fleet struct {
	root string
	repo *git.Repository
}

// overriddenShoot is a Shoot of the base whose worker pools one landscape overrides.
const overriddenShoot = `apiVersion: core.gardener.cloud/v1beta1
kind: Shoot
metadata: {name: web, namespace: garden-local}
spec:
  provider:
    workers:
    - {name: front, minimum: 1, maximum: 3, machine: {type: local, image: {name: local, version: 1.0.0}}, cri: {name: containerd}, zones: ["0"]}
`

func newFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{root: t.TempDir()}
	var err error
	f.repo, err = git.PlainInit(f.root, false)
	require.NoError(t, err)
	for _, name := range []string{"garden/garden.yaml", "garden/secrets.yaml", "gardenconfig/cloudprofile.yaml", "seeds/local.yaml", "seeds/secrets.yaml",
		"projects/local/project.yaml", "projects/local/credentials.yaml"} {
		writeFile(t, f.root, "base/"+name, readDemoFile(t, name))
	}
	f.addShoot(t, "web", "front", "back")
	f.addShoot(t, "night", "night")
	for _, name := range []string{"dev", "staging", "production"} {
		writeFile(t, f.root, name+"/landscape.yaml", "apiVersion: landscape.pergola.dev/v1alpha1\nkind: Landscape\nmetadata:\n  name: "+name+
			"\nspec:\n  layers: [../base]\n  catalogue:\n    version: "+components.Version+"\n")
	}
	writeFile(t, f.root, "staging/night.yaml", "apiVersion: core.gardener.cloud/v1beta1\nkind: Shoot\nmetadata: {name: night, namespace: garden-local}\nspec: {hibernation: {enabled: true}}\n")
	writeFile(t, f.root, "production/web.yaml", overriddenShoot)
	f.addImageVersion(t, "1.1.0")
	f.commit(t)
	return f
}

// addImageVersion adds a version of the machine image to the CloudProfile of the base.
func (f *fleet) addImageVersion(t *testing.T, version string) {
	t.Helper()
	f.replaceInFiles(t, "    - version: 1.0.0\n", "    - version: "+version+"\n      classification: supported\n      cri:\n      - name: containerd\n      architectures:\n      - amd64\n    - version: 1.0.0\n", cloudProfileFile)
}

// addShoot adds a copy of the demonstration's Shoot to the base, with other pools of up to three
// nodes.
func (f *fleet) addShoot(t *testing.T, name string, pools ...string) {
	t.Helper()
	text := readDemoFile(t, "projects/local/shoot.yaml")
	text = strings.NewReplacer("  name: local\n  namespace", "  name: "+name+"\n  namespace", "domain: local.local", "domain: "+name+".local").Replace(text)
	begin := strings.Index(text, "    - name: local\n")
	end := strings.Index(text, "  kubernetes:\n")
	require.True(t, begin > 0 && end > begin)
	workers := ""
	for _, pool := range pools {
		workers += strings.NewReplacer("- name: local\n", "- name: "+pool+"\n", "maximum: 2", "maximum: 3").Replace(text[begin:end])
	}
	writeFile(t, f.root, "base/projects/local/"+name+".yaml", text[:begin]+workers+text[end:])
}

func (f *fleet) commit(t *testing.T) string {
	t.Helper()
	tree, err := f.repo.Worktree()
	require.NoError(t, err)
	require.NoError(t, tree.AddWithOptions(&git.AddOptions{All: true}))
	hash, err := tree.Commit("a change", &git.CommitOptions{Author: &object.Signature{Name: "t", Email: "t@example.org", When: time.Unix(0, 0)}})
	require.NoError(t, err)
	return hash.String()
}

// replaceInFiles replaces all occurrences of a text in files of the repository.
func (f *fleet) replaceInFiles(t *testing.T, before, after string, files ...string) {
	t.Helper()
	for _, name := range files {
		p := filepath.Join(f.root, filepath.FromSlash(name))
		data, err := os.ReadFile(p)
		require.NoError(t, err)
		require.Contains(t, string(data), before, name)
		require.NoError(t, os.WriteFile(p, []byte(strings.ReplaceAll(string(data), before, after)), 0o644))
	}
}

const (
	webShootFile     = "base/projects/local/web.yaml"
	nightShootFile   = "base/projects/local/night.yaml"
	cloudProfileFile = "base/gardenconfig/cloudprofile.yaml"
)

// visibleMarkdown returns the Markdown outside <details>, which a reader sees without a click.
func visibleMarkdown(text string) string {
	var out strings.Builder
	depth := 0
	for _, line := range strings.SplitAfter(text, "\n") {
		depth += strings.Count(line, "<details>")
		if depth == 0 {
			out.WriteString(line)
		}
		depth -= strings.Count(line, "</details>")
	}
	return out.String()
}

// visibleTableRows returns the visible table rows by their heading, without the header rows.
func visibleTableRows(text string) map[string][]string {
	out := map[string][]string{}
	heading, rule := "", false
	for _, line := range strings.Split(visibleMarkdown(text), "\n") {
		switch {
		case strings.HasPrefix(line, "#### "):
			heading, rule = strings.TrimPrefix(line, "#### "), false
		case strings.HasPrefix(line, "|-"):
			rule = true
		case strings.HasPrefix(line, "| ") && rule:
			out[heading] = append(out[heading], strings.TrimSuffix(strings.TrimPrefix(line, "| "), " |"))
		}
	}
	return out
}

// TestPullRequestOfAMachineImage: a pull request that changes the machine image of a base gets one
// comment that lists only the affected nodes. One landscape overrides the image of one Shoot;
// another one has a hibernated Shoot without nodes. The next push updates the comment.
func TestPullRequestOfAMachineImage(t *testing.T) {
	f := newFleet(t)
	t.Chdir(f.root)
	s := forgetest.New(t, forge.GitHub)
	setJobEnvironment(t, map[string]string{"GITHUB_TOKEN": forgetest.Token, "GITHUB_REPOSITORY": "o/r", "GITHUB_REF": "refs/pull/3/merge", "GITHUB_API_URL": s.URL + "/api/v3"})
	tree, err := f.repo.Worktree()
	require.NoError(t, err)
	require.NoError(t, tree.Checkout(&git.CheckoutOptions{Branch: plumbing.NewBranchReferenceName("feature"), Create: true}))
	push := func(outcome string) string {
		t.Helper()
		f.commit(t)
		o := pergola(t, "diff", "--all", "--from", "master...", "--to", "feature", "-o", "markdown")
		require.Equal(t, 1, o.code, "%+v", o)
		posted := pergolaWith(t, o.stdout, "comment", "--provider", "github", "--delete-empty")
		require.Equal(t, 0, posted.code, "%+v", posted)
		assert.Contains(t, posted.stdout, "Comment: "+outcome)
		require.Len(t, s.Comments(), 1, "one comment")
		return s.Comments()[0].Body
	}

	f.replaceInFiles(t, "version: 1.0.0", "version: 1.1.0", webShootFile, nightShootFile)
	body := push("created")
	assert.Equal(t, map[string][]string{"Nodes are replaced (up to 18, in 4 shoots): machine image local 1.0.0 → local 1.1.0": {
		"garden-local/night | dev: local | night | 3 | +1 −0",
		"garden-local/web | dev: local | back, front | 6 | +1 −0",
		"garden-local/night | production: local | night | 3 | +1 −0",
		"garden-local/web | staging: local | back, front | 6 | +1 −0",
	}}, visibleTableRows(body))
	seen := visibleMarkdown(body)
	assert.Equal(t, 2, strings.Count(seen, "###"), "a title and the nodes, nothing else: %s", seen)
	for _, not := range []string{"kube-apiserver", "Control planes", "besides", "deleted", "Worker", "OperatingSystemConfig", "gardener-node-agent"} {
		assert.NotContains(t, seen, not)
	}
	assert.NotContains(t, body, "kube-apiserver", "nor in what is folded")

	f.replaceInFiles(t, "version: 1.1.0", "version: 1.0.0", webShootFile)
	body = push("updated")
	assert.Equal(t, map[string][]string{"Nodes are replaced (up to 6, in 2 shoots): machine image local 1.0.0 → local 1.1.0": {
		"garden-local/night | dev: local | night | 3 | +1 −0",
		"garden-local/night | production: local | night | 3 | +1 −0",
	}}, visibleTableRows(body))
}

// TestDiffOfNodeReplacements checks which changes replace nodes, and in which landscape.
func TestDiffOfNodeReplacements(t *testing.T) {
	f := newFleet(t)
	t.Chdir(f.root)
	diff := func(args ...string) string {
		t.Helper()
		f.commit(t)
		o := pergola(t, append([]string{"diff", "--from", "HEAD~1", "--to", "HEAD", "-o", "markdown"}, args...)...)
		require.Equal(t, 1, o.code, "%+v", o)
		require.NotEmpty(t, o.stdout, o.stderr)
		return o.stdout
	}

	f.replaceInFiles(t, "version: 1.0.0", "version: 1.1.0", "production/web.yaml")
	text := diff("--all")
	assert.Equal(t, map[string][]string{"Nodes are replaced (up to 3, in 1 shoot): machine image local 1.0.0 → local 1.1.0": {"garden-local/web | production: local | front | 3 | +1 −0"}},
		visibleTableRows(text), "one landscape overrides it")
	assert.NotContains(t, text, "staging")

	f.addImageVersion(t, "1.2.0")
	text = diff("production")
	assert.Empty(t, visibleTableRows(text), "a machine image that nobody uses")
	assert.Contains(t, visibleMarkdown(text), "Nothing restarts, and nothing is recreated or deleted.")

	f.replaceInFiles(t, "    - version: 1.34.1\n      classification: supported\n",
		"    - version: 1.34.2\n      classification: supported\n    - version: 1.34.1\n      classification: deprecated\n", cloudProfileFile)
	f.replaceInFiles(t, "version: 1.34.1", "version: 1.34.2", nightShootFile)
	text = diff("production")
	assert.NotContains(t, visibleMarkdown(text), "Nodes are", "the kubelet of another patch restarts on its node")
	assert.Equal(t, []string{"kube-apiserver, kube-controller-manager, kube-scheduler | local | shoot garden-local/night"}, visibleTableRows(text)["Control planes that restart"])

	f.replaceInFiles(t, "version: 1.34.2", "version: 1.35.0", nightShootFile)
	text = diff("production")
	assert.Equal(t, []string{"garden-local/night | local | night | 3 | +1 −0"}, visibleTableRows(text)["Nodes are replaced (up to 3, in 1 shoot): Kubernetes 1.34 → 1.35"])
	assert.Equal(t, []string{"kube-apiserver, kube-controller-manager, kube-scheduler | local | shoot garden-local/night"}, visibleTableRows(text)["Control planes that restart"])
}
