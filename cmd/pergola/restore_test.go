// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/commands/recovery"
	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/hack/apiserver"
)

// TestRestore follows a user's steps: a dry run, a restore, another one without changes, a refused
// one, and a new backup.
func TestRestore(t *testing.T) {
	apiserver.SkipIfUnavailable(t)
	_, kubeconfig := testServer(t)
	dir := t.TempDir()
	writeFile(t, dir, "landscape.yaml", "apiVersion: landscape.pergola.dev/v1alpha1\nkind: Landscape\nmetadata:\n  name: lost\nspec:\n  catalogue:\n    version: "+components.Version+"\n")
	writeFile(t, dir, "garden.yaml", readDemoFile(t, "garden/garden.yaml"))
	writeFile(t, dir, "secrets.yaml", readDemoFile(t, "garden/secrets.yaml"))
	id, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	t.Setenv("SOPS_AGE_KEY", id.String())
	archive := func(uid string) string {
		file := filepath.Join(t.TempDir(), "lost.backup")
		entry := func(cluster, name string) *recovery.Entry {
			return &recovery.Entry{Item: recovery.Item{Cluster: cluster, Kind: "Secret", Namespace: "garden", Name: name, Origin: recovery.OriginGenerated}}
		}
		require.NoError(t, recovery.WriteFile(file, &recovery.Archive{
			Manifest: recovery.Manifest{Format: recovery.Format, Version: recovery.Version, ID: "of-" + uid, Created: time.Now().UTC(), Landscape: recovery.Landscape{Name: "lost"},
				Garden: recovery.Garden{Name: "local", UID: uid, ClusterIdentity: "local"}, Clusters: []recovery.Cluster{{Name: "runtime", UID: "c"}, {Name: "away", UID: "d"}}},
			Entries: []*recovery.Entry{entry("runtime", "ca-12345678"), entry("away", "ca")},
		}, id.Recipient()))
		return file
	}
	file := archive("uid-of-before")
	restore := func(args ...string) commandResult {
		t.Helper()
		return pergola(t, append([]string{"restore", dir, "--kubeconfig", "runtime=" + kubeconfig}, args...)...)
	}
	o := restore("--from", file, "--dry-run")
	assert.Equal(t, 1, o.code, "%+v", o)
	assert.Regexp(t, `(?m)^Cluster runtime, at https://127\.0\.0\.1:\d+/?:$`, o.stdout)
	assert.Contains(t, o.stdout, ":\nruntime: Garden local: would be created\nruntime: Secret garden/ca-12345678: would be created\naway: not restored: there is no access to it\n"+
		"Nothing was written. A restore of backup of-uid-of-before would create 2, complete 0, leave 0 unchanged and refuse 0.\n")
	p := decode[recovery.Plan](t, restore("--from", file, "--dry-run", "-o", "json"))
	require.Len(t, p.Steps, 2)
	assert.Equal(t, recovery.ActionCreate, p.Steps[1].Action)

	o = restore("--from", file)
	assert.Equal(t, 1, o.code, "a seed is missing: %+v", o)
	assert.Contains(t, o.stdout, "Backup of-uid-of-before is restored: 2 created, 0 completed, 0 unchanged, 0 refused.\n")
	o = restore("--from", file, "--cluster", "runtime", "--dry-run")
	assert.Equal(t, 0, o.code, "%+v", o)
	assert.Contains(t, o.stdout, "Nothing was written. A restore of backup of-uid-of-before would create 0, complete 0, leave 2 unchanged and refuse 0.\n")

	o = restore("--from", archive("of-another"))
	assert.Equal(t, 1, o.code)
	assert.Contains(t, o.stderr, "nothing was restored: runtime: Garden local: it is another Garden: its UID is uid-of-before, but of-another in the backup")
	o = restore("--from", file, "--cluster", "nowhere")
	assert.Equal(t, 2, o.code)
	assert.Contains(t, o.stderr, `--cluster nowhere: there is no cluster in the backup "nowhere"; want one of runtime, away`)

	again := filepath.Join(t.TempDir(), "again.backup")
	o = pergola(t, "backup", dir, "--to", again, "--recipient", id.Recipient().String(), "--kubeconfig", "runtime="+kubeconfig, "--cluster", landscape.Runtime)
	assert.Equal(t, 2, o.code, "%+v", o)
	assert.Contains(t, o.stderr, "has a Garden and no generated Secrets", "the one of this test has no labels")
	assert.NoFileExists(t, again)
}
