// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/render"
)

// TestMarkdownOfManyShoots: with 300 Shoots the head of a comment names each one with replaced
// nodes, a restarted control plane, or a deletion. The changes fit, too: on one seed or many, and
// with long names.
func TestMarkdownOfManyShoots(t *testing.T) {
	for name, test := range map[string]struct {
		seeds int
		shoot string
	}{"one seed": {1, "s%03d"}, "many seeds": {12, "s%03d"}, "long names": {4, "payment-services-%03d"}} {
		t.Run(name, func(t *testing.T) {
			var from, to []ClusterBundle
			for i := range 300 {
				seed, name := fmt.Sprintf("seed-%02d", i%test.seeds), fmt.Sprintf(test.shoot, i)
				before, after := renderedShoot(t, seed, name, "22.04", "0123456789abcdef"), renderedShoot(t, seed, name, "24.04", "fedcba9876543210")
				after[len(after)-1].Bundle.Objects[0].Object["spec"] = map[string]any{"replicas": int64(2), "template": map[string]any{"spec": map[string]any{"hostNetwork": true}}}
				from, to = append(from, before...), append(to, after...)
			}
			from = append(from, bundlePlace(t, "seed-00", "old", "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: store, namespace: garden}}"),
				bundlePlace(t, "seed-00", "frozen", "{apiVersion: v1, kind: ConfigMap, immutable: true, metadata: {name: settled, namespace: garden}, data: {a: b}}"))
			to = append(to, bundlePlace(t, "seed-00", "frozen", "{apiVersion: v1, kind: ConfigMap, immutable: true, metadata: {name: settled, namespace: garden}, data: {a: c}}"))
			p := CompareBundles(from, to)
			text := Markdown(p, MaxMarkdown)
			assert.LessOrEqual(t, len(text), MaxMarkdown)
			nodes := text[:strings.Index(text, "#### Control planes")]
			seen := openText(text)
			for i := range 300 {
				shoot := "garden-prod/" + fmt.Sprintf(test.shoot, i)
				assert.Contains(t, nodes, shoot, "its nodes")
				assert.Contains(t, seen, "shoot "+shoot, "its control plane")
			}
			assert.Contains(t, nodes, "(up to 1200, in 300 shoots)")
			assert.Contains(t, seen, "| loses stored data | seed-00 | PersistentVolumeClaim garden/store |")
			assert.Contains(t, seen, "| is deleted and created again | seed-00 | ConfigMap garden/settled |")
			assert.NotRegexp(t, `\d+ more`, seen, "nothing is left out of what is open")
			assert.NotContains(t, nodes, " more shoots")
			assert.NotContains(t, text, "not fit into a comment")
		})
	}
}

// manyPlaces returns n places with one object each; ten share a bundle name.
func manyPlaces(n int, value string) []ClusterBundle {
	var out []ClusterBundle
	for i := range n {
		p := ClusterBundle{Cluster: "seed", Bundle: render.Bundle{Name: fmt.Sprint("b", i/10), Component: "shoot/x", Owner: render.Owner{Kind: "shoot", Name: fmt.Sprint(i / 100)}}}
		o := render.Object{}
		o.Unstructured = manyObject(i, value)
		p.Bundle.Objects = []render.Object{o}
		out = append(out, p)
	}
	return out
}

func TestManyEqualObjects(t *testing.T) {
	from, to := manyPlaces(2000, "x"), manyPlaces(2000, "x")
	to[77].Bundle.Objects[0].Object["spec"].(map[string]any)["replicas"] = int64(9)
	p := CompareBundles(from, to)
	assert.Len(t, p.Items, 1)
	assert.Equal(t, 1999, p.Unchanged)
	for i := range from { // bundles with equal digests are not compared
		from[i].Bundle.Digest.Symbolic, to[i].Bundle.Digest.Symbolic = "same", "same"
	}
	assert.Empty(t, CompareBundles(from, to).Items)
}

func BenchmarkEqualObjects(b *testing.B) {
	from, to := manyPlaces(10000, "x"), manyPlaces(10000, "x")
	for b.Loop() {
		if p := CompareBundles(from, to); len(p.Items) > 0 {
			b.Fatal("no difference was to be found")
		}
	}
}

func BenchmarkReportOfManyChanges(b *testing.B) {
	p := CompareBundles(manyPlaces(10000, "x"), manyPlaces(10000, "y"))
	for b.Loop() {
		Markdown(p, MaxMarkdown)
	}
}

func manyObject(i int, value string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": fmt.Sprint("d", i), "namespace": fmt.Sprint("ns", i/100), "labels": map[string]any{"a": "b", "c": "d"}},
		"spec": map[string]any{"replicas": int64(1), "template": map[string]any{"spec": map[string]any{"containers": []any{
			map[string]any{"name": "a", "image": value, "args": []any{"--a", "--b", "--c"}, "env": []any{map[string]any{"name": "A", "value": "b"}}},
		}}}},
	}}
}
