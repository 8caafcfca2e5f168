// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/change/redact"
	"github.com/pergola-dev/pergola/render"
)

// TestNoPodsBeforeOrAfter: scaling to zero is a stop and scaling from zero is a start, not a
// restart, whatever else changes.
func TestNoPodsBeforeOrAfter(t *testing.T) {
	workload := func(kind, spec string) string {
		return "{apiVersion: apps/v1, kind: " + kind + ", spec: {" + spec + "}}"
	}
	etcd := func(spec string) string {
		return "{apiVersion: druid.gardener.cloud/v1alpha1, kind: Etcd, spec: {" + spec + "}}"
	}
	shoot := func(spec string) string {
		return "{apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, spec: {a: b" + spec + "}}"
	}
	const sleeps, wakes = "hibernates the cluster: its nodes and its control plane stop", "wakes the cluster up: its control plane and its nodes start"
	for name, c := range map[string]struct {
		old, new string
		want     []string
	}{
		"stops":                 {workload("Deployment", "replicas: 2"), workload("Deployment", "replicas: 0"), []string{stopText}},
		"stops, by default one": {workload("StatefulSet", "a: b"), workload("StatefulSet", "a: b, replicas: 0"), []string{stopText}},
		"stops, with others":    {workload("Deployment", "replicas: 2, template: {a: 1}"), workload("Deployment", "replicas: 0, template: {a: 2}"), []string{stopText}},
		"starts":                {workload("Deployment", "replicas: 0"), workload("Deployment", "replicas: 2"), []string{startText}},
		"starts with others":    {workload("StatefulSet", "replicas: 0, template: {a: 1}"), workload("StatefulSet", "replicas: 1, template: {a: 2}"), []string{startText}},
		"starts, no rollout":    {workload("Deployment", "strategy: {type: Recreate}, replicas: 0, template: {a: 1}"), workload("Deployment", "strategy: {type: Recreate}, replicas: 1, template: {a: 2}"), []string{startText}},
		"grows":                 {workload("Deployment", "replicas: 1"), workload("Deployment", "replicas: 2"), nil},
		"grows with others":     {workload("Deployment", "replicas: 1, template: {a: 1}"), workload("Deployment", "replicas: 2, template: {a: 2}"), []string{rollText}},
		"etcd stops":            {etcd("replicas: 3"), etcd("replicas: 0"), []string{stopText}},
		"etcd stops changed":    {etcd("replicas: 1, etcd: {quota: 1Gi}"), etcd("replicas: 0, etcd: {quota: 2Gi}"), []string{stopText}},
		"etcd starts":           {etcd("replicas: 0"), etcd("replicas: 1"), []string{startText}},
		"etcd grows":            {etcd("replicas: 1"), etcd("replicas: 3"), []string{rollEtcdText}},
		"replica set":           {workload("ReplicaSet", "replicas: 1, template: {a: 1}"), workload("ReplicaSet", "replicas: 0, template: {a: 2}"), []string{stopText}},
		"hibernates":            {shoot(""), shoot(", hibernation: {enabled: true}"), []string{sleeps}},
		"hibernates from awake": {shoot(", hibernation: {enabled: false}"), shoot(", hibernation: {enabled: true}"), []string{sleeps}},
		"wakes up":              {shoot(", hibernation: {enabled: true}"), shoot(", hibernation: {enabled: false}"), []string{wakes}},
		"wakes up without it":   {shoot(", hibernation: {enabled: true}"), shoot(""), []string{wakes}},
		"stays awake":           {shoot(""), shoot(", hibernation: {enabled: false}"), nil},
		"stays awake as it is":  {shoot(", hibernation: {enabled: false}"), shoot(", hibernation: {schedules: [{start: 0 20 * * *}]}"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			old, new := object(t, c.old), object(t, c.new)
			item := change.Item{Action: change.Change, Object: change.RefOf(old), Fields: redact.Compare(old.Object, new.Object)}
			assert.Equal(t, c.want, Consequences(item, old, new))
		})
	}
}

// controlPlaneOf returns the control plane of a Shoot with these replicas of each part.
func controlPlaneOf(t *testing.T, name, hibernation string, replicas int, image string) ClusterBundle {
	t.Helper()
	p := ClusterBundle{Cluster: "seed", Bundle: render.Bundle{Name: "control-plane", Owner: render.Owner{Kind: "shoot", Namespace: "garden-prod", Name: name}}}
	for _, text := range []string{
		"{apiVersion: extensions.gardener.cloud/v1alpha1, kind: Cluster, metadata: {name: shoot--prod--NAME}, spec: {shoot: {apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, spec: {hibernation: " + hibernation + "}}}}",
		"{apiVersion: druid.gardener.cloud/v1alpha1, kind: Etcd, metadata: {name: etcd-main, namespace: shoot--prod--NAME}, spec: {replicas: N, etcd: {image: IMAGE}}}",
		"{apiVersion: apps/v1, kind: Deployment, metadata: {name: kube-apiserver, namespace: shoot--prod--NAME}, spec: {replicas: N, template: {a: IMAGE}}}",
		"{apiVersion: apps/v1, kind: Deployment, metadata: {name: vpn, namespace: shoot--prod--NAME}, spec: {replicas: N, template: {a: IMAGE}}}",
	} {
		text = strings.NewReplacer("NAME", name, "N}", fmt.Sprint(replicas)+"}", "N,", fmt.Sprint(replicas)+",", "IMAGE", image).Replace(text)
		p.Bundle.Objects = append(p.Bundle.Objects, render.Object{Unstructured: object(t, text)})
	}
	return p
}

// TestControlPlanesThatStopAndStart: every format distinguishes control planes that stop, start and
// restart.
func TestControlPlanesThatStopAndStart(t *testing.T) {
	const asleep, awake = "{enabled: true}", "{enabled: false}"
	p := CompareBundles([]ClusterBundle{controlPlaneOf(t, "tired", awake, 2, "a"), controlPlaneOf(t, "early", asleep, 0, "a"), controlPlaneOf(t, "busy", awake, 2, "a")},
		[]ClusterBundle{controlPlaneOf(t, "tired", asleep, 0, "b"), controlPlaneOf(t, "early", awake, 2, "b"), controlPlaneOf(t, "busy", awake, 2, "b")})
	parts := []string{"etcd-main", "kube-apiserver"}
	assert.Equal(t, []ControlPlane{{Cluster: "seed", Owner: "shoot garden-prod/busy", Parts: parts}, {Cluster: "seed", Owner: "shoot garden-prod/early", Starts: parts},
		{Cluster: "seed", Owner: "shoot garden-prod/tired", Stops: parts}}, ControlPlanes(p))

	print := func(format string) string {
		var out bytes.Buffer
		require.NoError(t, Print(&out, p, format, false))
		return out.String()
	}
	seen := openText(print(FormatMarkdown))
	for fate, whose := range map[string]string{"stop": "tired", "restart": "busy", "start": "early"} {
		assert.Contains(t, seen, "#### Control planes that "+fate+"\n\n| part | cluster | owner |\n|-|-|-|\n| etcd-main, kube-apiserver | seed | shoot garden-prod/"+whose+" |\n\n")
		assert.Contains(t, print(FormatText), "  ! "+fate+"s etcd-main, kube-apiserver of the control plane, on seed: shoot garden-prod/"+whose+"\n")
		assert.Contains(t, print(FormatHTML), "<h2>Control planes that "+fate+"</h2>\n<div class=\"table\"><table><tr><th>part</th><th>cluster</th><th>owner</th></tr>\n<tr><td>etcd-main, kube-apiserver</td><td>seed</td><td>shoot garden-prod/"+whose+"</td></tr>\n</table>")
	}
	assert.Less(t, strings.Index(seen, "that stop\n"), strings.Index(seen, "that restart\n"), "the worst first")
	assert.Less(t, strings.Index(seen, "that restart\n"), strings.Index(seen, "that start\n"))
	for what, whose := range map[string]string{stopText: "tired", rollText: "busy", startText: "early"} {
		assert.Contains(t, seen, "| "+what+" | seed | Deployment shoot--prod--"+whose+"/vpn |\n", "what a table above has is not repeated")
	}
	var back struct{ ControlPlanes []ControlPlane }
	require.NoError(t, json.Unmarshal([]byte(print(FormatJSON)), &back))
	assert.Equal(t, ControlPlanes(p), back.ControlPlanes)
}

// TestHibernatedClustersRestartNothing: a cluster that is hibernated before and after has no pods
// to restart. With a schedule it may have.
func TestHibernatedClustersRestartNothing(t *testing.T) {
	const asleep, scheduled = "{enabled: true}", "{enabled: true, schedules: [{start: 0 20 * * *}]}"
	change := func(hibernation string) change.Plan {
		return CompareBundles([]ClusterBundle{controlPlaneOf(t, "a", hibernation, 0, "a")}, []ClusterBundle{controlPlaneOf(t, "a", hibernation, 0, "b")})
	}
	p := change(asleep)
	assert.Len(t, p.Items, 3)
	assert.Empty(t, ControlPlanes(p))
	assert.Empty(t, Impacts(p))
	p = change(scheduled)
	assert.Equal(t, []ControlPlane{{Cluster: "seed", Owner: "shoot garden-prod/a", Parts: []string{"etcd-main", "kube-apiserver"}}}, ControlPlanes(p))
	assert.Len(t, Impacts(p), 2)
}
