package apply

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestPlanSaysWhatApplyThenDoes(t *testing.T) {
	f := newFixture(t)
	keep := f.configMap("keep", "x")
	keep.SetAnnotations(map[string]string{GardenerKeys().KeepObject: "true"})
	f.mustApply(f.set(f.configMap("same", "x"), f.configMap("changed", "old"), f.configMap("goes", "x"), keep,
		f.immutable("ConfigMap", "old"), f.deployment("d", 1)))
	f.create(f.configMap("adopted", "x"))
	deployment := f.deployment("d", 1)
	containers := nested(deployment, "spec", "template", "spec", "containers").([]any)
	containers[0].(map[string]any)["image"] = "registry.k8s.io/pause:3.11"
	ns := f.object(`{apiVersion: v1, kind: Namespace, metadata: {name: NS-new}}`)
	inside := f.configMap("inside", "x")
	inside.SetNamespace(ns.GetName())
	set := f.set(f.configMap("same", "x"), f.configMap("changed", "new"), f.configMap("new", "x"), f.configMap("adopted", "y"),
		f.immutable("ConfigMap", "new"), deployment, f.widgets(), f.widget("w"), ns, inside)

	before := f.c.Requests()
	plan, err := f.e.Plan(f.ctx, f.c, set, f.inv, ApplyOptions{})
	require.NoError(t, err)
	assert.Zero(t, f.c.Requests().Sub(before).Writes(), "a plan writes nothing")
	fields := map[string][]FieldChange{}
	said := map[string]PlanAction{}
	for _, c := range plan.Items {
		said[c.Ref.Kind+"/"+c.Ref.Name], fields[c.Ref.Kind+"/"+c.Ref.Name] = c.Action, c.Fields
	}
	assert.Equal(t, []FieldChange{{Path: "data.key", Old: "old", New: "new"}}, fields["ConfigMap/changed"])
	assert.Equal(t, []FieldChange{{Path: `spec.template.spec.containers[name="app"].image`,
		Old: "registry.k8s.io/pause:3.10", New: "registry.k8s.io/pause:3.11"}}, fields["Deployment/d"])

	r := f.mustApply(set)
	done := map[string]PlanAction{}
	for _, o := range r.Objects {
		done[o.Ref.Kind+"/"+o.Ref.Name] = planned[o.Action]
	}
	assert.Equal(t, done, said)
	assert.Equal(t, map[string]PlanAction{
		"ConfigMap/same": PlanUnchanged, "ConfigMap/changed": PlanChange, "ConfigMap/new": PlanCreate, "ConfigMap/adopted": PlanAdopt,
		"ConfigMap/i": PlanRecreate, "Deployment/d": PlanChange, "ConfigMap/goes": PlanDelete, "ConfigMap/keep": PlanKeep,
		"CustomResourceDefinition/" + f.widgets().GetName(): PlanCreate, "Widget/w": PlanCreate,
		"Namespace/" + ns.GetName(): PlanCreate, "ConfigMap/inside": PlanCreate,
	}, said)

	plan, err = f.e.Plan(f.ctx, f.c, set, f.inv, ApplyOptions{})
	require.NoError(t, err)
	assert.False(t, plan.Any(), "%+v", plan)
	gone, err := f.e.PlanDelete(f.ctx, f.c, f.set(), f.inv, DeleteOptions{})
	require.NoError(t, err)
	assert.Len(t, gone.Items, 10)
	assert.True(t, f.exists(f.configMap("same", "")))
}

func TestPlanHidesSecrets(t *testing.T) {
	f := newFixture(t)
	secret := func(value string) *unstructured.Unstructured {
		o := f.object(`{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: NS}, stringData: {a: x, password: ` + value + `}}`)
		o.SetAnnotations(map[string]string{"copy": value, lastApplied: value})
		return o
	}
	f.mustApply(f.set(secret("hunter2-before")))
	plan, err := f.e.Plan(f.ctx, f.c, f.set(secret("hunter2-after")), f.inv, ApplyOptions{})
	require.NoError(t, err)
	text, err := json.Marshal(plan)
	require.NoError(t, err)
	assert.NotContains(t, string(text), "hunter2")
	assert.NotContains(t, string(text), "aHVudGVyM") // base64 of the beginning
	assert.Contains(t, string(text), "data.password")
	assert.NotContains(t, string(text), `"data.a"`)
}
