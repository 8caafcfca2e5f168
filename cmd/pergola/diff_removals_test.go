// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// repositoryWithShoot is repository with a Garden and a Shoot.
func repositoryWithShoot(t *testing.T) (dir string, commit func() string) {
	t.Helper()
	t.Setenv("SOPS_AGE_KEY", readDemoFile(t, ".sops/age.key"))
	dir, commit = repository(t)
	writeFile(t, dir, "garden.yaml", readDemoFile(t, "garden/garden.yaml"))
	writeFile(t, dir, "gardensecrets.yaml", readDemoFile(t, "garden/secrets.yaml"))
	writeFile(t, dir, "profile.yaml", readDemoFile(t, "gardenconfig/cloudprofile.yaml"))
	writeFile(t, dir, "binding.yaml", readDemoFile(t, "projects/local/credentials.yaml"))
	writeFile(t, dir, "shoot.yaml", readDemoFile(t, "projects/local/shoot.yaml"))
	commit()
	return dir, commit
}

// TestDiffOfARemovedShoot: a Shoot without a file stays with all its workloads, confirmed or not.
// The other changes are shown as usual.
func TestDiffOfARemovedShoot(t *testing.T) {
	for name, confirm := range map[string]string{"not confirmed": "", "confirmed": "    confirmation.gardener.cloud/deletion: \"true\"\n"} {
		t.Run(name, func(t *testing.T) {
			dir, commit := repositoryWithShoot(t)
			if confirm != "" {
				replaceIn(t, dir, "shoot.yaml", "  annotations:\n", "  annotations:\n"+confirm)
				commit()
			}
			require.NoError(t, os.Remove(filepath.Join(dir, "shoot.yaml")))
			replaceIn(t, dir, "project.yaml", "description: The project", "description: Some project")
			o := pergola(t, "diff", dir)
			assert.Equal(t, 1, o.code, "%+v", o)
			assert.Contains(t, o.stdout, "\n1 to change, 1 held, ")
			assert.Contains(t, o.stdout, "! Shoot garden-local/local  (removal is held: its file no longer exists)\n")
			assert.Contains(t, o.stdout, "Note: Shoot garden-local/local: its file no longer exists, but this version cannot delete a Shoot with everything that runs for it. To keep it, put shoot.yaml back; to delete the object alone and leave the rest running, "+
				"first run, on cluster virtual: kubectl annotate shoot -n garden-local local confirmation.gardener.cloud/deletion=true\n")
			assert.Equal(t, 1, strings.Count(o.stdout+o.stderr, "this version cannot delete"), "what to do is said once")
			assert.Contains(t, o.stdout, "~ Project local")
			assert.Regexp(t, `Note: shoot garden-local/local stays on its clusters: \d+ objects are not changed\n`, o.stdout)
			for _, wrong := range []string{"Nodes are", "Cluster local", "refused"} {
				assert.NotContains(t, o.stdout, wrong)
			}
			assert.NotRegexp(t, `\d to delete`, o.stdout)
		})
	}
}

// TestRenamedGarden: a new name would create a second Garden, and only one is possible.
func TestRenamedGarden(t *testing.T) {
	dir, _ := repositoryWithShoot(t)
	replaceIn(t, dir, "garden.yaml", "  name: local\n", "  name: lokal\n")
	for _, command := range []string{"validate", "diff"} {
		o := pergola(t, command, dir, "--from", "HEAD")
		assert.Equal(t, 1, o.code, "%+v", o)
		said := o.stdout + o.stderr
		assert.Contains(t, said, `Garden lokal: metadata.name: the Garden "local" cannot be renamed, and a landscape has only one Garden: set the name back to "local"`)
		assert.Contains(t, said, "garden.yaml:5:9: error: ")
		assert.NotContains(t, said, "its file no longer exists")
		assert.NotContains(t, said, "put garden.yaml back")
	}
}

// TestResultOfAnOperation: the last message of a followed operation was printed already; without
// --follow it is the result.
func TestResultOfAnOperation(t *testing.T) {
	assert.Equal(t, "succeeded", finalResult("Reconcile Succeeded (100%)", true, "text"))
	assert.Equal(t, "Reconcile Succeeded (100%)", finalResult("Reconcile Succeeded (100%)", true, formatJSON))
	assert.Equal(t, "asked for, but nobody does it", finalResult("asked for, but nobody does it", false, "text"))
	assert.Empty(t, finalResult("", true, "text"))
}

// TestDiffOfAMovedShoot: another seedName in Git does not move a control plane, so nothing is
// deleted or created without its data.
func TestDiffOfAMovedShoot(t *testing.T) {
	dir, commit := repositoryWithShoot(t)
	seed := readDemoFile(t, "seeds/local.yaml")
	writeFile(t, dir, "eu.yaml", seed)
	replaceIn(t, dir, "eu.yaml", "name: local", "name: eu")
	replaceIn(t, dir, "eu.yaml", "ingress.local.seed.", "ingress.eu.seed.")
	commit()
	replaceIn(t, dir, "shoot.yaml", "seedName: local", "seedName: eu")
	o := pergola(t, "diff", dir)
	assert.Equal(t, 1, o.code, "%+v", o)
	require.Contains(t, o.stdout, "Note: 1 part of this change cannot be applied, and nothing of it is applied until they are removed", o.stderr)
	assert.Contains(t, o.stdout, "✗ Shoot garden-local/local  (spec.seedName: cannot be changed in the Shoot, it was local: ")
	assert.Contains(t, o.stdout, "spec.seedName: local → eu")
	for _, wrong := range []string{"Cluster local", "Cluster eu", "moves the control plane", "Nodes are"} {
		assert.NotContains(t, o.stdout, wrong)
	}
}

// TestDiffOfOpenVersions: a version that a Shoot leaves open stays unchanged, whatever the profile
// offers later.
func TestDiffOfOpenVersions(t *testing.T) {
	dir, commit := repositoryWithShoot(t)
	replaceIn(t, dir, "shoot.yaml", "version: 1.34.1", "version: \"1.34\"")
	replaceIn(t, dir, "shoot.yaml", "          version: 1.0.0\n", "")
	o := pergola(t, "diff", dir)
	assert.Equal(t, 1, o.code, "%+v", o)
	require.Contains(t, o.stdout, "spec.kubernetes.version: 1.34.1 → 1.34\n", o.stderr)
	assert.NotContains(t, o.stdout, "!", "nothing else comes of it")
	assert.NotContains(t, o.stdout, "Kubernetes 1.34")
	commit()

	replaceIn(t, dir, "profile.yaml", "    - version: 1.34.1\n      classification: supported", "    - version: 1.34.4\n      classification: supported\n    - version: 1.34.1\n      classification: deprecated")
	o = pergola(t, "diff", dir)
	assert.Equal(t, 1, o.code, "%+v", o)
	assert.Contains(t, o.stdout, "2 to change, ", "the profile, and the copy of it that extensions read")
	assert.NotContains(t, o.stdout, "!")
	commit()

	replaceIn(t, dir, "shoot.yaml", "version: \"1.34\"", "version: 1.34.4")
	o = pergola(t, "diff", dir)
	assert.Contains(t, o.stdout, "sets the version to 1.34.4, which was left open: the cluster is updated if it runs another one")
}

// TestDiffOfAnOperation: a file in operations/ changes no declaration, but merging it requests an
// operation.
func TestDiffOfAnOperation(t *testing.T) {
	dir, _ := repositoryWithShoot(t)
	writeFile(t, dir, "operations/2026-11-rotate.yaml", "apiVersion: landscape.pergola.dev/v1alpha1\nkind: Operation\nspec: {object: Shoot garden-local/local, operation: rotate-credentials-start}\n")
	o := pergola(t, "diff", dir, "-o", "markdown")
	assert.Equal(t, 1, o.code, "%+v", o)
	assert.Contains(t, o.stdout, "the operation rotate-credentials-start is requested once; no part of Pergola implements it in this version | virtual | Shoot garden-local/local |")

	// There is one annotation: the second operation on an object is requested after the first one
	// is accepted.
	writeFile(t, dir, "operations/2026-11-then.yaml", "apiVersion: landscape.pergola.dev/v1alpha1\nkind: Operation\nspec: {object: Shoot garden-local/local, operation: reconcile}\n")
	writeFile(t, dir, "operations/2026-12-last.yaml", "apiVersion: landscape.pergola.dev/v1alpha1\nkind: Operation\nspec: {object: Shoot garden-local/local, operation: retry}\n")
	o = pergola(t, "diff", dir)
	assert.Contains(t, o.stdout, "(the operation rotate-credentials-start is requested once; no part of Pergola implements it in this version)")
	assert.Contains(t, o.stdout, "(the operation reconcile is requested once, with the first sync after operation 2026-11-rotate, rotate-credentials-start, on the same object has started, "+
		"but no part of Pergola implements that one in this version: this one waits until a controller starts it, or it is withdrawn)")
	assert.Contains(t, o.stdout, "(the operation retry is requested once, with the first sync after operation 2026-11-then, reconcile, on the same object has started)")
}

// TestDiffOfRemovedCredentials: a Seed and a Shoot without files stay, and so do their
// infrastructure credentials.
func TestDiffOfRemovedCredentials(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join("..", "..", "landscapes", "local"))))
	t.Setenv("SOPS_AGE_KEY_FILE", filepath.Join(dir, ".sops", "age.key"))
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qm", "all"}, {"rm", "-rq", "projects", "seeds"}} {
		require.NoError(t, exec.Command("git", append([]string{"-C", dir}, args...)...).Run())
	}
	o := pergola(t, "diff", dir)
	assert.Equal(t, 1, o.code, "%+v", o)
	for _, want := range []string{
		"! Secret garden/seed-dns-local  (removal is held: Seed local refers to it, and is held itself)",
		"! CredentialsBinding garden-local/local  (removal is held: Shoot garden-local/local refers to it, and is held itself)",
		"! Secret garden-local/local  (removal is held: CredentialsBinding garden-local/local refers to it, and is held itself)",
		"! Namespace garden-local  (removal is held: Project local refers to it, and is held itself)",
	} {
		assert.Contains(t, o.stdout, want)
	}
	assert.NotRegexp(t, `- (Secret garden-local|Secret garden/seed|CredentialsBinding|Namespace)`, o.stdout)
}

// TestDiffOfARemovedGarden: a Garden without a file stays until its deletion is confirmed. The
// Secrets that it references are neither deleted nor put into the virtual garden, with or without
// their own file.
func TestDiffOfARemovedGarden(t *testing.T) {
	for name, secretsToo := range map[string]bool{"alone": false, "with its Secrets": true} {
		t.Run(name, func(t *testing.T) {
			dir, commit := repositoryWithShoot(t)
			require.NoError(t, os.Remove(filepath.Join(dir, "garden.yaml")))
			if secretsToo {
				require.NoError(t, os.Remove(filepath.Join(dir, "gardensecrets.yaml")))
			}
			o := pergola(t, "diff", dir)
			assert.Equal(t, 1, o.code, "%+v", o)
			assert.Contains(t, o.stdout, "\n3 held, ")
			assert.Contains(t, o.stdout, "! Garden local  (removal is held: its file no longer exists")
			for _, secret := range []string{"garden-dns-local", "virtual-garden-etcd-main-backup-local"} {
				assert.Contains(t, o.stdout, "! Secret garden/"+secret+"  (removal is held: Garden local refers to it, and is held itself)")
			}
			for _, wrong := range []string{"to create", "to delete", "(is deleted", "Cluster virtual"} {
				assert.NotContains(t, o.stdout, wrong)
			}

			// After the confirmation the Garden and its references are deleted.
			require.NoError(t, exec.Command("git", "-C", dir, "checkout", "-q", "--", ".").Run())
			replaceIn(t, dir, "garden.yaml", "  name: local\n", "  name: local\n  annotations:\n    confirmation.gardener.cloud/deletion: \"true\"\n")
			commit()
			require.NoError(t, os.Remove(filepath.Join(dir, "garden.yaml")))
			require.NoError(t, os.Remove(filepath.Join(dir, "gardensecrets.yaml")))
			o = pergola(t, "diff", dir)
			assert.Contains(t, o.stdout, "- Secret garden/garden-dns-local", o.stderr)
			assert.Contains(t, o.stdout, "Note: Garden local is deleted with everything that runs for it\n")
			assert.Contains(t, o.stdout, "- Deployment garden/virtual-garden-kube-apiserver")
			assert.NotContains(t, o.stdout, "held", "the confirmation stands for an approval")
		})
	}
}
