// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/change"
)

func TestPlanPredictsApply(t *testing.T) {
	f := newFixture(t)
	keep := f.configMap("keep", "x")
	keep.SetAnnotations(map[string]string{gardenerKeys().KeepObject: "true"})
	f.mustApply(f.set(f.configMap("same", "x"), f.configMap("changed", "old"), f.configMap("goes", "x"), keep,
		f.immutableObject("ConfigMap", "old"), f.deployment("d", 1)))
	f.create(f.configMap("adopted", "x"))
	deployment := f.deployment("d", 1)
	containers := nested(deployment, "spec", "template", "spec", "containers").([]any)
	containers[0].(map[string]any)["image"] = "registry.k8s.io/pause:3.11"
	ns := f.object(`{apiVersion: v1, kind: Namespace, metadata: {name: NS-new}}`)
	inside := f.configMap("inside", "x")
	inside.SetNamespace(ns.GetName())
	set := f.set(f.configMap("same", "x"), f.configMap("changed", "new"), f.configMap("new", "x"), f.configMap("adopted", "y"),
		f.immutableObject("ConfigMap", "new"), deployment, f.widgets(), f.widget("w"), ns, inside)

	before := f.c.Requests()
	p, err := f.e.Plan(f.ctx, f.c, set, f.inv, ApplyOptions{})
	require.NoError(t, err)
	assert.Zero(t, f.c.Requests().Sub(before).Writes(), "a plan writes nothing")
	items, said := map[string]change.Item{}, map[string]change.Action{}
	for _, i := range p.Items {
		items[i.Object.Kind+"/"+i.Object.Name], said[i.Object.Kind+"/"+i.Object.Name] = i, i.Action
	}
	assert.Equal(t, []change.Field{{Path: "data.key", Old: "old", New: "new"}}, items["ConfigMap/changed"].Fields)
	assert.Equal(t, []change.Field{{Path: "data.key", Old: "old", New: "new"}}, items["ConfigMap/i"].Fields)
	assert.Equal(t, []string{"is deleted and created again"}, items["ConfigMap/i"].Consequences)
	assert.Equal(t, []change.Field{{Path: "spec.template.spec.containers[name=app].image",
		Old: "registry.k8s.io/pause:3.10", New: "registry.k8s.io/pause:3.11"}}, items["Deployment/d"].Fields)
	assert.Equal(t, []string{"rolls its pods"}, items["Deployment/d"].Consequences)
	assert.Equal(t, 1, p.Unchanged)

	r := f.mustApply(set)
	done := map[string]change.Action{}
	for _, o := range r.Objects {
		if o.Action != Unchanged {
			done[o.Ref.Kind+"/"+o.Ref.Name] = planActions[o.Action]
		}
	}
	assert.Equal(t, done, said)
	assert.Equal(t, map[string]change.Action{
		"ConfigMap/changed": change.Change, "ConfigMap/new": change.Create, "ConfigMap/adopted": change.Adopt,
		"ConfigMap/i": change.Recreate, "Deployment/d": change.Change, "ConfigMap/goes": change.Delete, "ConfigMap/keep": change.Keep,
		"CustomResourceDefinition/" + f.widgets().GetName(): change.Create, "Widget/w": change.Create,
		"Namespace/" + ns.GetName(): change.Create, "ConfigMap/inside": change.Create,
	}, said)

	p, err = f.e.Plan(f.ctx, f.c, set, f.inv, ApplyOptions{})
	require.NoError(t, err)
	assert.True(t, p.IsEmpty(), "%+v", p)
	assert.Equal(t, 10, p.Unchanged)
	gone, err := f.e.PlanDelete(f.ctx, f.c, f.set(), f.inv, DeleteOptions{})
	require.NoError(t, err)
	assert.Equal(t, change.Summary{Delete: 10}, gone.Summary)
	assert.True(t, f.exists(f.configMap("same", "")))
}

// TestPlanOfADefinitionThatLeftTheSet: an object that stays in the inventory for good is not a
// change in any plan.
func TestPlanOfADefinitionThatLeftTheSet(t *testing.T) {
	f := newFixture(t)
	f.mustApply(f.set(f.widgets(), f.configMap("c", "x")))
	for range 2 {
		p, err := f.e.Plan(f.ctx, f.c, f.set(f.configMap("c", "x")), f.inv, ApplyOptions{})
		require.NoError(t, err)
		assert.True(t, p.IsEmpty(), "%+v", p)
		f.mustApply(f.set(f.configMap("c", "x")))
	}
}

func TestPlanHidesSecrets(t *testing.T) {
	f := newFixture(t)
	secret := func(value string) *unstructured.Unstructured {
		o := f.object(`{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: NS}, stringData: {a: x, password: ` + value + `}}`)
		o.SetAnnotations(map[string]string{"copy": value, "kubectl.kubernetes.io/last-applied-configuration": value})
		return o
	}
	f.mustApply(f.set(secret("hunter2-before")))
	p, err := f.e.Plan(f.ctx, f.c, f.set(secret("hunter2-after")), f.inv, ApplyOptions{})
	require.NoError(t, err)
	text, err := json.Marshal(p)
	require.NoError(t, err)
	assert.NotContains(t, string(text), "hunter2")
	assert.NotContains(t, string(text), "aHVudGVyM") // base64 of the first bytes
	assert.Contains(t, string(text), "data.password")
	assert.NotContains(t, string(text), `"data.a"`)
}
