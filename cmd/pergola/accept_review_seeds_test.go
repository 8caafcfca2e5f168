// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// renamedSeed copies the base's Seed with another name and other networks.
func renamedSeed(t *testing.T, name, octet string) string {
	t.Helper()
	return strings.NewReplacer("  name: local\nspec", "  name: "+name+"\nspec", "172.18.1.0", "172.18."+octet+".0", "10.3.0.0", "10.1"+octet+".0.0", "10.4.0.0", "10.2"+octet+".0.0",
		"ingress.local.seed", "ingress."+name+".seed").Replace(readDemoFile(t, "seeds/local.yaml"))
}

// TestReviewerReadsOfSeedsAndStores: the Markdown alone explains a restart of the API server in
// three landscapes, a removed Seed, a recreated Job and a lost volume. It also shows a changed
// encrypted Secret, a new image on all seeds and a moved Shoot.
func TestReviewerReadsOfSeedsAndStores(t *testing.T) {
	f := newFleet(t)
	const job = `apiVersion: batch/v1
kind: Job
metadata: {name: migrate, namespace: garden, annotations: {resources.gardener.cloud/delete-on-invalid-update: "true"}}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: migrate, image: "example.com/migrate:1"}]}}}
`
	const store = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: store, namespace: garden}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n"
	writeFile(t, f.root, "dev/second.yaml", renamedSeed(t, "second", "2"))
	writeFile(t, f.root, "dev/spare.yaml", strings.Replace(renamedSeed(t, "spare", "3"), "  name: spare\n", "  name: spare\n  annotations: {confirmation.gardener.cloud/deletion: \"true\"}\n", 1))
	writeFile(t, f.root, "dev/components/garden/garden-system/kustomization.yaml", "resources: [store.yaml]\n")
	writeFile(t, f.root, "dev/components/garden/garden-system/store.yaml", store)
	writeFile(t, f.root, "dev/components/seed/system/kustomization.yaml", "resources: [job.yaml]\n")
	writeFile(t, f.root, "dev/components/seed/system/job.yaml", job)
	f.commit(t)
	t.Chdir(f.root)

	f.replaceInFiles(t, "eventTTL: 1h", "eventTTL: 2h", "base/garden/garden.yaml")
	writeFile(t, f.root, "dev/components/seed/system/job.yaml", strings.Replace(job, "migrate:1", "migrate:2", 1))
	require.NoError(t, removeFiles(f.root, "dev/spare.yaml", "dev/components/garden/garden-system/store.yaml", "dev/components/garden/garden-system/kustomization.yaml"))
	f.replaceInFiles(t, "data:bIYFcTo=", "data:bIYFcTp=", "base/seeds/secrets.yaml")
	f.replaceInFiles(t, "  catalogue:", "  images:\n  - {name: gardener-resource-manager, repository: mirror.example.com/grm, tag: v9}\n  catalogue:", "dev/landscape.yaml")
	writeFile(t, f.root, "dev/night.yaml", "apiVersion: core.gardener.cloud/v1beta1\nkind: Shoot\nmetadata: {name: night, namespace: garden-local}\nspec: {seedName: second}\n")
	f.commit(t)
	o := pergola(t, "diff", "--all", "--from", "HEAD~1", "--to", "HEAD", "-o", "markdown")
	require.Equal(t, 1, o.code, "%+v", o)
	all := visibleTableRows(o.stdout)
	assert.Equal(t, []string{
		"kube-apiserver | dev: runtime | garden local", "kube-apiserver | production: runtime | garden local", "kube-apiserver | staging: runtime | garden local",
	}, all["Control planes that restart"], "what goes does not restart")

	happens := map[string]string{}
	for _, row := range all["Effects besides the changes"] {
		cells := strings.SplitN(row, " | ", 3)
		happens[cells[0]+" | "+cells[1]] = cells[2]
	}
	for where, objects := range map[string]string{
		"removal is held: its file no longer exists | dev: virtual": "Seed spare",
		"would fail: spec.seedName: cannot be changed in the Shoot, it was local: only the subresource shoots/binding moves a control plane to another seed | dev: virtual": "Shoot garden-local/night",
		"delete is held: kind PersistentVolumeClaim is protected; once approved it loses stored data | dev: runtime":                                                        "PersistentVolumeClaim garden/store",
		"is deleted and created again | dev: local":  "Job garden/migrate",
		"is deleted and created again | dev: second": "Job garden/migrate",
		"rolls its pods | dev: local":                "Deployment garden/gardener-resource-manager",
		"rolls its pods | dev: second":               "Deployment garden/gardener-resource-manager",
	} {
		assert.Contains(t, happens[where], objects, where)
	}
	for where, objects := range happens {
		assert.NotRegexp(t, `(production|staging): `, where, "nothing else there")
		assert.NotRegexp(t, `shoot--local--night|spare/`, objects, "what is held or refused keeps all that runs for it")
	}
	for _, change := range []string{
		"! change Secret garden/seed-dns-local\n  the same on 3 objects:\n  on dev: virtual: garden/seed-dns-local\n  on production: virtual: ",
		"    data.zone: (encrypted value changed)\n",
		"+   mirror.example.com/grm:v9\n",
	} {
		assert.Contains(t, o.stdout, change, "folded, and there")
	}
	assert.NotContains(t, o.stdout, "bIYFcT")
	assert.NotContains(t, o.stdout, "not fit into a comment")
}
