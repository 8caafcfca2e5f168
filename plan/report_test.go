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
	"github.com/pergola-dev/pergola/controllers/permit"
	"github.com/pergola-dev/pergola/render"
)

// openText returns the part of a Markdown text that is not folded.
func openText(text string) string {
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

// renderedShoot returns the objects of a Shoot with one pool, on its seed and in the virtual
// garden, that contain the image version.
func renderedShoot(t *testing.T, seed, name, image, hash string) []ClusterBundle {
	t.Helper()
	namespace := "shoot--prod--" + name
	owner := render.Owner{Kind: "shoot", Namespace: "garden-prod", Name: name}
	secret := "gardener-node-agent-w-" + hash
	place := func(cluster, component, bundle string, owner render.Owner, objects ...string) ClusterBundle {
		p := ClusterBundle{Cluster: cluster, Bundle: render.Bundle{Name: bundle, Component: component, Owner: owner}}
		for _, text := range objects {
			p.Bundle.Objects = append(p.Bundle.Objects, render.Object{Unstructured: object(t, text)})
		}
		return p
	}
	osc := func(purpose string) string {
		return fmt.Sprintf("{apiVersion: extensions.gardener.cloud/v1alpha1, kind: OperatingSystemConfig, metadata: {name: %s-%s, namespace: %s}, spec: {type: ubuntu}}", secret, purpose, namespace)
	}
	declared := fmt.Sprintf("{apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, metadata: {name: %s, namespace: garden-prod}, spec: {provider: {workers: [{name: w, maximum: 4, machine: {type: m, image: {name: ubuntu, version: %q}}}]}}}", name, image)
	return []ClusterBundle{
		place("virtual", "", "declarations", render.Owner{Kind: "landscape", Name: "l"}, declared),
		place(seed, "shoot/namespace", "cluster", owner, fmt.Sprintf("{apiVersion: extensions.gardener.cloud/v1alpha1, kind: Cluster, metadata: {name: %s}, spec: {shoot: %s}}", namespace, declared)),
		place(seed, "shoot/operatingsystemconfig", "osc", owner, osc("init"), osc("original")),
		place(seed, "shoot/worker", "worker", owner, fmt.Sprintf("{apiVersion: extensions.gardener.cloud/v1alpha1, kind: Worker, metadata: {name: %s, namespace: %s}, spec: {pools: [{name: w, maximum: 4, maxSurge: 1, maxUnavailable: 0, machineType: m, machineImage: {name: ubuntu, version: %q}, nodeAgentSecretName: %s, userDataSecretRef: {name: osc-result-%s-init}}]}}", name, namespace, image, secret, secret)),
		place(seed, "shoot/kube-apiserver", "kube-apiserver", owner, fmt.Sprintf("{apiVersion: apps/v1, kind: Deployment, metadata: {name: kube-apiserver, namespace: %s}, spec: {replicas: 2}}", namespace)),
	}
}

// imageChange changes a machine image in a layer of three landscapes. Only two have Shoots with it.
func imageChange(t *testing.T) Report {
	const before, after = "0123456789abcdef", "fedcba9876543210"
	var r Report
	for _, landscape := range []string{"canary", "live", "unconcerned"} {
		var from, to []ClusterBundle
		if landscape != "unconcerned" {
			for i := range 3 {
				name := fmt.Sprintf("%s-%d", landscape, i)
				from = append(from, renderedShoot(t, "seed-"+landscape, name, "22.04", before)...)
				to = append(to, renderedShoot(t, "seed-"+landscape, name, "24.04", after)...)
			}
		}
		p := CompareBundles(from, to)
		p.From, p.To = "main", "change"
		r.Landscapes = append(r.Landscapes, LandscapePlan{Name: landscape, Plan: p})
	}
	return r
}

// TestMachineImageUnderSeveralLandscapes: a change of a machine image gets one comment. It lists
// the Shoots whose nodes are replaced, and folds the objects, each kind once.
func TestMachineImageUnderSeveralLandscapes(t *testing.T) {
	text := imageChange(t).Markdown(MaxMarkdown, "")
	seen := openText(text)
	assert.Contains(t, seen, "2 landscapes change: canary, live. No changes in unconcerned.")
	assert.Contains(t, seen, "#### Nodes are replaced (up to 24, in 6 shoots): machine image ubuntu 22.04 → ubuntu 24.04")
	for i := range 3 {
		assert.Contains(t, seen, fmt.Sprintf("| garden-prod/canary-%d | canary: seed-canary | w | 4 | +1 −0 |", i))
		assert.Contains(t, seen, fmt.Sprintf("| garden-prod/live-%d | live: seed-live | w | 4 | +1 −0 |", i))
	}
	assert.NotContains(t, seen, "besides")
	assert.NotContains(t, seen, "Control planes")
	assert.NotContains(t, seen, "deleted")
	assert.Equal(t, 2, strings.Count(seen, "###"), "the title, and one table")
	assert.NotContains(t, text, "kube-apiserver")
	assert.Equal(t, 2, strings.Count(text, "<details>"), "all of it is the same everywhere")
	for _, kind := range []string{"! change Shoot ", "! change Cluster ", "! change Worker "} {
		assert.Equal(t, 1, strings.Count(text, kind), kind)
	}
	assert.Contains(t, text, "the same on 6 objects:\n")
	assert.Equal(t, 2, strings.Count(text, "! change OperatingSystemConfig "), "of either purpose")
	assert.Contains(t, text, "formerly gardener-node-agent-w-0123456789abcdef-init")
	assert.Less(t, len(text), 8000)
}

func TestReportOfSeveralLandscapes(t *testing.T) {
	r := imageChange(t)
	assert.False(t, r.IsEmpty())
	assert.Equal(t, change.Summary{Change: 30}, r.Summary())
	assert.True(t, Report{}.IsEmpty())
	for _, format := range []string{FormatText, FormatMarkdown, FormatHTML} {
		var out bytes.Buffer
		require.NoError(t, r.Print(&out, PrintOptions{Format: format}))
		for _, want := range []string{"canary", "live", "machine image ubuntu 22.04 → ubuntu 24.04", "garden-prod/canary-1", "main → change"} {
			if format == FormatText && want == "main → change" {
				continue
			}
			assert.Contains(t, out.String(), want, format)
		}
	}
	var out bytes.Buffer
	require.NoError(t, r.Print(&out, PrintOptions{Format: FormatJSON}))
	var back struct {
		Landscapes []struct {
			Name  string
			Items []change.Item
			Nodes []NodeChange
		}
		Summary change.Summary
	}
	require.NoError(t, json.Unmarshal(out.Bytes(), &back))
	require.Len(t, back.Landscapes, 3)
	assert.Equal(t, "canary", back.Landscapes[0].Name)
	assert.Equal(t, NodeChange{Cluster: "seed-canary", Shoot: "garden-prod/canary-0", PoolChange: change.PoolChange{Pool: "w", Effect: change.NodesReplaced, MaxNodes: 4, Surge: "1", Unavailable: "0",
		Causes: []string{"machine image ubuntu 22.04 → ubuntu 24.04"}}}, back.Landscapes[0].Nodes[0])
	assert.Equal(t, []change.Item{}, back.Landscapes[2].Items)
}

func TestNotesOfSeveralLandscapes(t *testing.T) {
	plan := func(notes ...string) change.Plan { return change.Plan{Notes: notes} }
	r := Report{Landscapes: []LandscapePlan{{"a", plan("all", "first")}, {"b", plan("all")}}}
	assert.Equal(t, []string{"all", "landscape a: first"}, r.notes())
	r.Landscapes = r.Landscapes[:1]
	assert.Equal(t, []string{"all", "first"}, r.notes())
}

// TestMarkdownSummaryIsComplete: the unfolded part names restarts, recreations, deletions
// and their places.
func TestMarkdownSummaryIsComplete(t *testing.T) {
	before := []ClusterBundle{
		bundlePlace(t, "runtime", "web", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: garden}, spec: {template: {spec: {containers: [{name: a, image: 'x:1'}]}}}}"),
		bundlePlace(t, "runtime", "frozen", "{apiVersion: v1, kind: ConfigMap, immutable: true, metadata: {name: settled, namespace: garden}, data: {a: b}}"),
		bundlePlace(t, "seed", "store", "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: store, namespace: garden}}", "{apiVersion: v1, kind: Namespace, metadata: {name: old}}",
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: plain, namespace: garden}}", "{apiVersion: v1, kind: Service, metadata: {name: lb, namespace: garden}, spec: {type: LoadBalancer}}"),
		bundlePlace(t, "seed", "selector", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: stuck, namespace: garden}, spec: {selector: {matchLabels: {a: b}}}}"),
	}
	before = append(before, renderedShoot(t, "seed", "one", "22.04", "0123456789abcdef")...)
	after := []ClusterBundle{
		bundlePlace(t, "runtime", "web", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: garden}, spec: {template: {spec: {containers: [{name: a, image: 'x:2'}]}}}}"),
		bundlePlace(t, "runtime", "frozen", "{apiVersion: v1, kind: ConfigMap, immutable: true, metadata: {name: settled, namespace: garden}, data: {a: c}}"),
		bundlePlace(t, "seed", "selector", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: stuck, namespace: garden}, spec: {selector: {matchLabels: {a: c}}}}"),
	}
	shoot := renderedShoot(t, "seed", "one", "24.04", "fedcba9876543210")
	api := &shoot[len(shoot)-1].Bundle.Objects[0]
	api.Object["spec"] = map[string]any{"replicas": int64(2), "template": map[string]any{"spec": map[string]any{"hostNetwork": true}}}
	p := CompareBundles(before, append(after, shoot...))
	permit.Gate{Protected: []string{"PersistentVolumeClaim"}}.MarkHeld(&p, nil)
	seen := openText(Markdown(p, MaxMarkdown))
	for _, want := range []string{
		"| rolls its pods | runtime | Deployment garden/web |",
		"| kube-apiserver | seed | shoot garden-prod/one |",
		"| garden-prod/one | seed | w | 4 | +1 −0 |",
		"| is deleted and created again | runtime | ConfigMap garden/settled |",
		"kind PersistentVolumeClaim is protected; once approved it loses stored data | seed | PersistentVolumeClaim garden/store |",
		"| deletes everything in the namespace | seed | Namespace old |",
		"| releases the load balancer address | seed | Service garden/lb |",
		"| is deleted | seed | ConfigMap garden/plain |",
		"| seed | Deployment garden/stuck |",
	} {
		assert.Contains(t, seen, want)
	}
	// A smaller comment omits details, but not this.
	assert.Contains(t, openText(Markdown(p, 6000)), "| deletes everything in the namespace | seed | Namespace old |")
}

func TestHandedOverAndApprovals(t *testing.T) {
	p := change.Plan{HandedOver: []change.HandedOver{{Cluster: "virtual", Object: change.Ref{APIVersion: "core.gardener.cloud/v1beta1", Kind: "Shoot", Namespace: "garden-p", Name: "a"}, Path: "spec.hibernation.enabled", Declared: false, Live: true, Reason: "a schedule sets it"}},
		Items: []change.Item{{Cluster: "c", Bundle: "b", Action: change.Hold, Reason: "r", Approval: "0123456789ab", Object: change.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "n", Name: "a"}}}}
	p.SortAndCount()
	for _, format := range []string{FormatText, FormatMarkdown, FormatHTML} {
		var out bytes.Buffer
		require.NoError(t, Print(&out, p, format, false))
		assert.Contains(t, out.String(), "Handed over to controllers", format)
		assert.Contains(t, out.String(), "spec.hibernation.enabled is true, Git has false", format)
		assert.Contains(t, out.String(), "its approval is 0123456789ab", format)
	}
}
