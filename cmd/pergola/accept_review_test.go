// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestReviewOfVisibleMarkdown: the visible Markdown lists restarts of nodes, workloads and
// control planes, and recreated, deleted or held objects. Each has its location, and nothing else
// is listed.
func TestReviewOfVisibleMarkdown(t *testing.T) {
	f := newFleet(t)
	t.Chdir(f.root)
	const frozen = "apiVersion: v1\nkind: ConfigMap\nimmutable: true\nmetadata: {name: frozen, namespace: garden-local, annotations: {resources.gardener.cloud/delete-on-invalid-update: \"true\"}}\ndata: {a: "
	const gone = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: gone, namespace: garden-local}\n"
	writeFile(t, f.root, "dev/more.yaml", frozen+"b}\n---\n"+gone+"---\napiVersion: v1\nkind: Namespace\nmetadata: {name: garden-old}\n")
	f.commit(t)

	writeFile(t, f.root, "dev/more.yaml", frozen+"c}\n")
	// Pool back is removed, pool front gets other machines, and the other Shoot another minor
	// version.
	writeFile(t, f.root, "dev/web.yaml", strings.NewReplacer("minimum: 1, maximum: 3", "minimum: 1, maximum: 4, maxSurge: 2, volume: {size: 20Gi}").Replace(overriddenShoot))
	writeFile(t, f.root, "dev/night.yaml", "apiVersion: core.gardener.cloud/v1beta1\nkind: Shoot\nmetadata: {name: night, namespace: garden-local}\nspec: {kubernetes: {version: 1.35.0}}\n")
	f.commit(t)
	hash := regexp.MustCompile(`-[0-9a-f]{16}-`)
	o := pergola(t, "diff", "--all", "--from", "HEAD~1", "--to", "HEAD", "-o", "markdown")
	require.Equal(t, 1, o.code, "%+v", o)
	require.NotEmpty(t, o.stdout, o.stderr)
	const back = "OperatingSystemConfig shoot--local--web/gardener-node-agent-back-HASH"
	assert.Equal(t, map[string][]string{
		"Nodes are deleted (up to 3, in 1 shoot): the pool is removed":     {"garden-local/web | dev: local | back | 3 | "},
		"Nodes are replaced (up to 4, in 1 shoot): volume none → 20Gi":     {"garden-local/web | dev: local | front | 4 | +2 −0"},
		"Nodes are replaced (up to 3, in 1 shoot): Kubernetes 1.34 → 1.35": {"garden-local/night | dev: local | night | 3 | +1 −0"},
		"Control planes that restart":                                      {"kube-apiserver, kube-controller-manager, kube-scheduler | dev: local | shoot garden-local/night"},
		"Effects besides the changes": {
			"delete is held: kind Namespace is protected; once approved it deletes everything in the namespace | dev: virtual | Namespace garden-old",
			"is deleted | dev: local | " + back + "-init, " + back + "-original",
			"is deleted | dev: virtual | ConfigMap garden-local/gone",
			"is deleted and created again | dev: virtual | ConfigMap garden-local/frozen",
			"upgrades Kubernetes 1.34.1 → 1.35.0 | dev: virtual | Shoot garden-local/night",
		},
	}, visibleTableRows(hash.ReplaceAllString(o.stdout, "-HASH-")), "%s", visibleMarkdown(o.stdout))
	assert.Contains(t, visibleMarkdown(o.stdout), "13 to change, 1 to recreate, 3 to delete, 1 held,")
	assert.Contains(t, visibleMarkdown(o.stdout), "1 landscape changes: dev.")
}
