package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/components"
)

// fleet is a repository of three landscapes on one base: that of the demonstration with more Shoots, whose worker pools it
// gives defaults. Each landscape has a Garden, a Seed and the Shoots of the base, and changes something of them.
type fleet struct {
	root string
	repo *git.Repository
}

// pinned is a Shoot of the base whose pools a landscape decides on by itself.
const pinned = `apiVersion: core.gardener.cloud/v1beta1
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
		"projects/local/project.yaml", "projects/local/credentials.yaml", "projects/local/shoot.yaml"} {
		write(t, f.root, "base/"+name, local(t, name))
	}
	f.shoot(t, "web", "front", "back")
	f.shoot(t, "night", "night")
	for _, name := range []string{"dev", "staging", "production"} {
		write(t, f.root, name+"/landscape.yaml", "apiVersion: landscape.pergola.dev/v1alpha1\nkind: Landscape\nmetadata:\n  name: "+name+
			"\nspec:\n  layers: [../base]\n  catalogue:\n    version: "+components.Version+"\n")
	}
	write(t, f.root, "staging/night.yaml", "apiVersion: core.gardener.cloud/v1beta1\nkind: Shoot\nmetadata: {name: night, namespace: garden-local}\nspec: {hibernation: {enabled: true}}\n")
	write(t, f.root, "production/web.yaml", pinned)
	f.commit(t)
	return f
}

// shoot adds a Shoot to the base, like the one of the demonstration, with other pools of up to three nodes.
func (f *fleet) shoot(t *testing.T, name string, pools ...string) {
	t.Helper()
	text := local(t, "projects/local/shoot.yaml")
	text = strings.NewReplacer("  name: local\n  namespace", "  name: "+name+"\n  namespace", "domain: local.local", "domain: "+name+".local").Replace(text)
	begin := strings.Index(text, "    - name: local\n")
	end := strings.Index(text, "  kubernetes:\n")
	require.True(t, begin > 0 && end > begin)
	workers := ""
	for _, pool := range pools {
		workers += strings.NewReplacer("- name: local\n", "- name: "+pool+"\n", "maximum: 2", "maximum: 3").Replace(text[begin:end])
	}
	write(t, f.root, "base/projects/local/"+name+".yaml", text[:begin]+workers+text[end:])
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

// everywhere replaces a text in files of the repository as often as it is there.
func (f *fleet) everywhere(t *testing.T, before, after string, files ...string) {
	t.Helper()
	for _, name := range files {
		p := filepath.Join(f.root, filepath.FromSlash(name))
		data, err := os.ReadFile(p)
		require.NoError(t, err)
		require.Contains(t, string(data), before, name)
		require.NoError(t, os.WriteFile(p, []byte(strings.ReplaceAll(string(data), before, after)), 0o644))
	}
}

// baseShoots are the files of the base with Shoots.
var baseShoots = []string{"base/projects/local/shoot.yaml", "base/projects/local/web.yaml", "base/projects/local/night.yaml"}

// newImage offers another version of the machine image in the CloudProfile of the base.
func (f *fleet) newImage(t *testing.T) {
	t.Helper()
	f.everywhere(t, "    - version: 1.0.0\n", "    - version: 1.1.0\n      classification: supported\n      cri:\n      - name: containerd\n      architectures:\n      - amd64\n    - version: 1.0.0\n",
		"base/gardenconfig/cloudprofile.yaml")
}

func TestPullRequestOfAMachineImage(t *testing.T) {
	f := newFleet(t)
	t.Chdir(f.root)
	f.newImage(t)
	f.everywhere(t, "version: 1.0.0", "version: 1.1.0", baseShoots...)
	f.commit(t)
	begun := time.Now()
	o := pergola(t, "diff", "--all", "--from", "HEAD~1", "--to", "HEAD", "-o", "markdown")
	t.Log(time.Since(begun), o.code, "\n", o.stderr, "\n", o.stdout)
}
