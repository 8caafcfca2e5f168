// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/change"
)

func TestConflictIsReportedAndForced(t *testing.T) {
	f := newFixture(t)
	set := f.set(f.configMap("contested", "ours"), f.configMap("other", "x"))
	set.Force = false
	f.mustApply(set)
	f.patch(f.configMap("contested", ""), "somebody-else", `{"data":{"key":"theirs"}}`)
	set.Objects[1] = f.configMap("other", "changed")

	r, err := f.apply(set)
	var e *ObjectError
	require.ErrorAs(t, err, &e)
	assert.Equal(t, ReasonConflict, e.Reason)
	assert.Equal(t, []string{"somebody-else"}, e.Managers)
	assert.Equal(t, []string{"data.key"}, e.Fields)
	assert.NotEmpty(t, e.Hint)
	assert.Equal(t, map[string]Action{"ConfigMap/contested": Failed, "ConfigMap/other": Configured}, actions(r))

	asking := f.configMap("contested", "asked for")
	asking.SetAnnotations(map[string]string{gardenerKeys().ForceConflicts: "true"})
	single := f.set(asking, set.Objects[1])
	single.Force = false
	assert.Equal(t, Configured, actions(f.mustApply(single))["ConfigMap/contested"])
	f.patch(f.configMap("contested", ""), "somebody-else", `{"data":{"key":"theirs"}}`)

	set.Force = true
	assert.Equal(t, Configured, actions(f.mustApply(set))["ConfigMap/contested"])
	assert.Equal(t, "ours", nested(f.get(f.configMap("contested", "")), "data", "key"))
}

func TestDriftIsTakenBack(t *testing.T) {
	f := newFixture(t)
	set := f.set(f.configMap("edited", "ours"))
	set.Force, set.TakeBack = false, true
	f.mustApply(set)
	edit := func(field, value string) {
		f.patch(f.configMap("edited", ""), "kubectl-edit", `{"data":{"`+field+`":"`+value+`"}}`)
		f.eventually("the cache knows", func() bool {
			live, err := f.c.Get(f.ctx, RefOf(f.configMap("edited", "")))
			return err == nil && nested(live, "data", field) == value
		})
	}
	edit("key", "by hand")
	assert.Equal(t, Configured, actions(f.mustApply(set))["ConfigMap/edited"])
	assert.Equal(t, "ours", nested(f.get(f.configMap("edited", "")), "data", "key"))

	// The same if the declaration changes before the drift is found: the result does not depend on
	// the order.
	edit("key", "by hand again")
	set.Objects[0] = f.configMap("edited", "changed")
	assert.Equal(t, Configured, actions(f.mustApply(set))["ConfigMap/edited"])
	assert.Equal(t, "changed", nested(f.get(f.configMap("edited", "")), "data", "key"))

	// A person decides about a new value that conflicts with another manager.
	edit("more", "by hand")
	more := f.configMap("edited", "changed")
	require.NoError(t, unstructured.SetNestedField(more.Object, "ours", "data", "more"))
	set.Objects[0] = more
	_, err := f.apply(set)
	var e *ObjectError
	require.ErrorAs(t, err, &e)
	assert.Equal(t, ReasonConflict, e.Reason)
	assert.Equal(t, []string{"data.more"}, e.Fields)
}

// TestTakeBackFrom: edits of listed managers to applied fields are overruled; edits of
// other managers, and new fields, are a conflict.
func TestTakeBackFrom(t *testing.T) {
	for name, c := range map[string]struct {
		manager, also string
		more          string
		conflict      []string
	}{
		"a person":                         {manager: "kubectl-edit"},
		"a person, and a new wish":         {manager: "kubectl-edit", more: "new"},
		"somebody else":                    {manager: "controller", conflict: []string{"controller"}},
		"a person and somebody else":       {manager: "kubectl-edit", also: "controller", conflict: []string{"controller"}},
		"a person who had the field first": {also: "kubectl-edit", more: "new", conflict: []string{"kubectl-edit"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			object := func() *unstructured.Unstructured { return f.configMap("edited", "ours") }
			set := f.set(object())
			require.NoError(t, unstructured.SetNestedField(set.Objects[0].Object, "ours", "data", "other"))
			set.Force, set.TakeBack, set.TakeBackFrom = false, true, func(m string) bool { return m == "kubectl-edit" }
			f.mustApply(set)
			last := ""
			edit := func(manager, field string) {
				if manager == "" {
					return
				}
				f.patch(object(), manager, `{"data":{"`+field+`":"by hand"}}`)
				last = field
			}
			edit(c.manager, "key")
			if c.more != "" {
				edit(c.also, c.more)
				set.Objects[0] = set.Objects[0].DeepCopy()
				require.NoError(t, unstructured.SetNestedField(set.Objects[0].Object, "ours", "data", c.more))
			} else {
				edit(c.also, "other")
			}
			f.eventually("the cache knows", func() bool {
				live, err := f.c.Get(f.ctx, RefOf(object()))
				return err == nil && nested(live, "data", last) == "by hand"
			})
			p, planned := f.e.Plan(f.ctx, f.c, set, f.inv, ApplyOptions{})
			r, err := f.apply(set)
			if len(c.conflict) > 0 {
				var e *ObjectError
				require.ErrorAs(t, err, &e)
				assert.Equal(t, ReasonConflict, e.Reason)
				assert.Equal(t, c.conflict, e.Managers, "who is overruled is not named")
				require.Error(t, planned)
				assert.Equal(t, "by hand", nested(f.get(object()), "data", last))
				return
			}
			require.NoError(t, err)
			require.NoError(t, planned)
			assert.Equal(t, change.Change, p.Items[0].Action)
			assert.Equal(t, []string{"data.key (by kubectl-edit)"}, r.Objects[0].TakenBack)
			for field := range nested(f.get(object()), "data").(map[string]any) {
				assert.Equal(t, "ours", nested(f.get(object()), "data", field), field)
			}
			assert.Empty(t, f.requests(func() { f.mustApply(set) }), "it is settled")
		})
	}
}

// TestApplyToReplacedObject: an apply for a known object does not change another object of that
// name. The new object is read first.
func TestApplyToReplacedObject(t *testing.T) {
	f := newFixture(t)
	o := f.configMap("c", "first")
	f.mustApply(f.set(o))
	live := f.get(o)
	opts := patchOptions{manager: "pergola", uid: live.GetUID()}
	require.NoError(t, f.resource(o).Delete(f.ctx, "c", metav1.DeleteOptions{}))
	_, _, err := f.c.patchApply(f.ctx, o, opts)
	require.Error(t, err)
	assert.True(t, isOtherObject(err), "%v", err)
	assert.False(t, f.exists(o))
	f.createAs("somebody", o)
	_, _, err = f.c.patchApply(f.ctx, o, opts)
	assert.True(t, isOtherObject(err), "%v", err)

	assert.Equal(t, Configured, actions(f.mustApply(f.set(f.configMap("c", "second"))))["ConfigMap/c"])
	assert.Equal(t, "second", nested(f.get(o), "data", "key"))
}

const autoscaler = `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: h, namespace: NS},
  spec: {minReplicas: 1, maxReplicas: 9, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: d}}}`

func TestReplicasUnderAnAutoscaler(t *testing.T) {
	f := newFixture(t)
	d := f.deployment("d", 2)
	f.mustApply(f.set(d, f.object(autoscaler)))
	assert.EqualValues(t, 2, nested(f.get(d), "spec", "replicas"), "counts on creation")

	// The autoscaler scales: an apply sends no request and does not scale back.
	f.patch(d, "kube-controller-manager", `{"spec":{"replicas":5}}`, "scale")
	f.eventually("the cache knows", func() bool {
		live, err := f.c.Get(f.ctx, RefOf(d))
		return err == nil && nested(live, "spec", "replicas") == int64(5)
	})
	assert.Empty(t, f.requests(func() { f.mustApply(f.set(f.deployment("d", 3), f.object(autoscaler))) }))
	changed := f.deployment("d", 3)
	changed.SetLabels(map[string]string{"changed": "yes"})
	set := f.set(changed, f.object(autoscaler))
	set.Force = false
	assert.Equal(t, Configured, actions(f.mustApply(set))["Deployment/d"])
	live := f.get(d)
	assert.EqualValues(t, 5, nested(live, "spec", "replicas"))
	assert.False(t, ownedFields(live, "pergola").Has(replicasPath), "left to the autoscaler for good")
	assert.Empty(t, f.requests(func() { f.mustApply(set) }))
}

// TestAutoscalerDoesNotScaleUpFromZero: a workload that hibernates has no replicas at once, and the
// declared ones when it wakes up.
func TestAutoscalerDoesNotScaleUpFromZero(t *testing.T) {
	f := newFixture(t)
	replicas := func() any { return nested(f.get(f.deployment("d", 1)), "spec", "replicas") }
	asleep, awake := f.set(f.deployment("d", 0)), f.set(f.deployment("d", 2), f.object(autoscaler))
	f.mustApply(awake)
	f.patch(f.deployment("d", 1), "kube-controller-manager", `{"spec":{"replicas":5}}`, "scale")
	f.eventually("the cache knows", func() bool {
		live, err := f.c.Get(f.ctx, RefOf(f.deployment("d", 1)))
		return err == nil && nested(live, "spec", "replicas") == int64(5)
	})
	f.mustApply(asleep)
	assert.EqualValues(t, 0, replicas(), "the autoscaler goes after it")
	assert.Empty(t, f.requests(func() { f.mustApply(asleep) }))
	f.mustApply(awake)
	assert.EqualValues(t, 2, replicas())
	assert.Empty(t, f.requests(func() { f.mustApply(awake) }))
	f.patch(f.deployment("d", 1), "kubectl", `{"spec":{"replicas":0}}`, "scale")
	f.eventually("the cache knows", func() bool {
		live, err := f.c.Get(f.ctx, RefOf(f.deployment("d", 1)))
		return err == nil && nested(live, "spec", "replicas") == int64(0)
	})
	f.mustApply(awake)
	assert.EqualValues(t, 2, replicas(), "whoever has stopped it")
	f.patch(f.deployment("d", 1), "kube-controller-manager", `{"spec":{"replicas":5}}`, "scale")
	f.eventually("the cache knows", func() bool {
		live, err := f.c.Get(f.ctx, RefOf(f.deployment("d", 1)))
		return err == nil && nested(live, "spec", "replicas") == int64(5)
	})
	_, err := f.e.Apply(f.ctx, f.c, f.set(f.deployment("d", 2)), f.inv, ApplyOptions{ApprovePrune: func(entries []Entry) []HeldObject {
		return []HeldObject{{Ref: entries[0].Ref, Reason: change.Reason{Detail: "not now"}}}
	}})
	require.NoError(t, err)
	assert.EqualValues(t, 5, replicas(), "the autoscaler is held")
	f.mustApply(asleep)
	kept := f.deployment("d", 3)
	kept.SetAnnotations(map[string]string{gardenerKeys().PreserveReplicas: "true"})
	f.mustApply(f.set(kept))
	assert.EqualValues(t, 0, replicas(), "the annotation keeps what lives, whatever that is")
}

func TestReplicasThatGitStopsToDeclareStay(t *testing.T) {
	f := newFixture(t)
	f.mustApply(f.set(f.deployment("d", 4)))
	silent := f.deployment("d", 4)
	unstructured.RemoveNestedField(silent.Object, "spec", "replicas")
	f.mustApply(f.set(silent))
	assert.EqualValues(t, 4, nested(f.get(silent), "spec", "replicas"))
	assert.Empty(t, f.requests(func() { f.mustApply(f.set(silent)) }))
}

func TestPreserveResources(t *testing.T) {
	f := newFixture(t)
	d := f.deployment("d", 1)
	d.SetAnnotations(map[string]string{gardenerKeys().PreserveResources: "true"})
	f.mustApply(f.set(d))
	f.patch(d, "vpa", `{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"registry.k8s.io/pause:3.10","resources":{"requests":{"cpu":"2","memory":"1Gi"}}}]}}}}`)
	changed := d.DeepCopy()
	changed.SetLabels(map[string]string{"changed": "yes"})
	f.mustApply(f.set(changed))
	c := nested(f.get(d), "spec", "template", "spec", "containers").([]any)[0].(map[string]any)
	assert.Equal(t, map[string]any{"cpu": "2", "memory": "1Gi"}, c["resources"].(map[string]any)["requests"])
	assert.Empty(t, f.requests(func() { f.mustApply(f.set(changed)) }))
}

func TestForeignFieldsSurvive(t *testing.T) {
	f := newFixture(t)
	service := f.object(`{apiVersion: v1, kind: Service, metadata: {name: s, namespace: NS}, spec: {type: NodePort, selector: {a: b}, ports: [{port: 80}]}}`)
	d := f.deployment("d", 1)
	f.mustApply(f.set(service, d))
	f.patch(d, "kubectl-rollout", `{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"2026-01-01T00:00:00Z"}}}}}`)
	before := f.get(service)
	service = service.DeepCopy()
	service.SetLabels(map[string]string{"x": "y"})
	changed := d.DeepCopy()
	require.NoError(t, unstructured.SetNestedField(changed.Object, int64(3), "spec", "minReadySeconds"))
	f.mustApply(f.set(service, changed))
	after := f.get(service)
	assert.Equal(t, nested(before, "spec", "clusterIP"), nested(after, "spec", "clusterIP"))
	assert.Equal(t, nested(before, "spec", "ports"), nested(after, "spec", "ports"))
	assert.Equal(t, "2026-01-01T00:00:00Z", nested(f.get(d), "spec", "template", "metadata", "annotations", "kubectl.kubernetes.io/restartedAt"))
}

func TestInjectLabels(t *testing.T) {
	f := newFixture(t)
	sts := f.object(`
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: s, namespace: NS}
spec:
  serviceName: s
  selector: {matchLabels: {app: s}}
  template: {metadata: {labels: {app: s}}, spec: {containers: [{name: c, image: pause}]}}
  volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]
`)
	set := f.set(sts, f.configMap("plain", "x"))
	set.InjectLabels = map[string]string{"injected": "yes"}
	f.mustApply(set)
	live := f.get(sts)
	assert.Equal(t, "yes", live.GetLabels()["injected"])
	assert.Equal(t, "yes", nested(live, "spec", "template", "metadata", "labels", "injected"))
	claim := nested(live, "spec", "volumeClaimTemplates").([]any)[0].(map[string]any)
	assert.Equal(t, map[string]any{"injected": "yes"}, claim["metadata"].(map[string]any)["labels"])
	cm := f.get(f.configMap("plain", ""))
	keys := gardenerKeys()
	assert.Equal(t, map[string]string{"injected": "yes", keys.ManagedByLabel: "gardener"}, cm.GetLabels())
	assert.Equal(t, set.Name, cm.GetAnnotations()[keys.Origin])
	assert.NotEmpty(t, cm.GetAnnotations()[keys.Description])

	// New labels cannot reach the claim templates of an existing StatefulSet; all other objects get
	// them.
	set.InjectLabels = map[string]string{"injected": "again"}
	f.mustApply(set)
	assert.Equal(t, "again", nested(f.get(sts), "spec", "template", "metadata", "labels", "injected"))
	assert.Empty(t, f.requests(func() { f.mustApply(set) }))
}

func TestForceOverwriteLabelsAndAnnotations(t *testing.T) {
	f := newFixture(t)
	set := f.set(f.configMap("c", "x"))
	set.ForceOverwriteLabels, set.ForceOverwriteAnnotations = true, true
	f.mustApply(set)
	f.patch(set.Objects[0], "somebody-else", `{"metadata":{"labels":{"foreign":"1"},"annotations":{"foreign":"1","deployment.kubernetes.io/revision":"7"}}}`)
	f.mustApply(set)
	live := f.get(set.Objects[0])
	assert.NotContains(t, live.GetLabels(), "foreign")
	assert.NotContains(t, live.GetAnnotations(), "foreign")
	assert.Contains(t, live.GetAnnotations(), "deployment.kubernetes.io/revision")
	assert.Empty(t, f.requests(func() { f.mustApply(set) }))
}

func TestIgnoreAndModeIgnore(t *testing.T) {
	f := newFixture(t)
	keys := gardenerKeys()
	f.mustApply(f.set(f.configMap("live", "1"), f.configMap("mode", "1"), f.configMap("declared", "1")))
	f.patch(f.configMap("live", ""), "kubectl-annotate", `{"metadata":{"annotations":{"`+keys.Ignore+`":"true"}},"data":{"key":"mine"}}`)
	mode, declared := f.configMap("mode", "2"), f.configMap("declared", "2")
	mode.SetAnnotations(map[string]string{keys.Mode: "Ignore"})
	declared.SetAnnotations(map[string]string{keys.Ignore: "true"})
	r := f.mustApply(f.set(f.configMap("live", "2"), mode, declared))
	assert.Equal(t, map[string]Action{"ConfigMap/live": Ignored, "ConfigMap/declared": Ignored}, actions(r))
	assert.Equal(t, "mine", nested(f.get(f.configMap("live", "")), "data", "key"))
	assert.NotContains(t, f.get(f.configMap("live", "")).GetAnnotations(), keys.Description, "it would not be true")
	assert.Contains(t, f.get(f.configMap("live", "")).GetAnnotations(), keys.Origin)
	assert.Empty(t, f.requests(func() { f.mustApply(f.set(f.configMap("live", "2"), mode, declared)) }))
	assert.Equal(t, "1", nested(f.get(declared), "data", "key"))
	entries, err := f.inv.Load(f.ctx)
	require.NoError(t, err)
	assert.Len(t, entries, 2)

	// Without the set, objects in mode Ignore stay, and ignored objects stay until they are no
	// longer ignored.
	r, err = f.e.Delete(f.ctx, f.c, f.set(), f.inv, DeleteOptions{})
	require.NoError(t, err)
	assert.Equal(t, map[string]Action{"ConfigMap/live": Ignored, "ConfigMap/declared": Deleted}, actions(r))
	assert.True(t, f.exists(mode))
}
