// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/hack/corpus"
)

// scenarios names the test of this package for each scenario of the corpus, or says why none has
// it.
var scenarios = map[string]string{
	"cli-apply-destroy": "TestDelete", "cli-continue-on-error": "TestARefusedObjectStopsNoOther",
	"cli-current-uid": "TestOneObjectUnderTwoGroups", "cli-deletion-prevention": "TestPruneDeletesWhatLeftTheSet",
	"cli-depends-on":            "edges between parts are the matter of apply/flow; objects have no annotations for them",
	"cli-dry-run":               "TestAPlanOfANamespaceThatIsNotThereYet",
	"cli-empty-set":             "TestAnEmptySet",
	"cli-inventory-id-mismatch": "an inventory is found by its name, which is made of the owner's: there is no second id",
	"cli-namespace-in-use":      "TestANamespaceInUseStays", "cli-policy-adopt-all": "TestPruneHandsOverBetweenSets",
	"cli-policy-must-match":  "TestConflictIsReportedAndForced",
	"cli-reconcile-failed":   "the engine does not wait for health, the controllers do",
	"cli-reconcile-timeout":  "the engine does not wait for health, the controllers do",
	"cli-skip-invalid":       "a set that is not completely understood must not prune: it fails as a whole",
	"flux-cleanup-exclusion": "the fields of former managers are taken over for every object alike",
	"flux-cleanup-kubectl":   "TestFieldsOfFormerManagersAreTakenOver", "flux-crd-invalid-cabundle": "TestAnInvalidCABundle",
	"flux-exclude": "TestAnIgnoredObjectIsNotCreated", "flux-exclude-by-live": "TestIgnoreAndModeIgnore",
	"flux-force-keeps-validation-errors": "TestAnInvalidChangeDeletesNothing", "flux-force-recreate": "TestImmutableConfigMapsAndSecretsAreRecreated",
	"flux-force-waits-for-finalizer": "TestRecreationWaitsForAFinalizer",
	"flux-ifnotpresent":              "Gardener has no such mark: mode Ignore and ignore are its own",
	"flux-ignore-bad-paths":          noIgnoreRules, "flux-ignore-client-side-edit": noIgnoreRules, "flux-ignore-immutable-not-drifted": noIgnoreRules,
	"flux-ignore-not-on-create": noIgnoreRules, "flux-ignore-only-drift": noIgnoreRules, "flux-ignore-selector-mismatch": noIgnoreRules,
	"flux-ignore-releases-ownership": "TestReplicasUnderAnAutoscaler", "flux-ignore-subobject-in-list": "TestPreserveResources",
	"flux-immutable-secret-error": "TestTheErrorOfAnImmutableSecret", "flux-migrate-api-version": "TestManagedFieldsOfAVersionThatIsGone",
	"flux-missing-namespace": "TestAMissingNamespaceIsDefault", "flux-no-op-odd-data": "TestOddDataIsNoChange",
	"flux-only-changed": "TestRequestsForCreateChangeAndNothing", "flux-partial-failure": "TestARefusedObjectStopsNoOther",
	"flux-staged-order": "TestKindOrder", "flux-wait-cancelled": "TestCancelEndsSoonWithTheInventoryWritten",
	"flux-wait-fail-fast": "the engine does not wait for health, the controllers do", "flux-wait-observed-generation": "the engine does not wait for health, the controllers do",
	"flux-wait-reader-error": "the engine does not wait for health, the controllers do", "flux-wait-termination": "TestAStuckFinalizerBlocksOnlyItsObject",
	"gardener-delete-on-invalid-update-valid": "TestAValidChangeDeletesNothing", "gardener-delete": "TestDelete",
	"gardener-finalize-deletion-after":       "TestFinalizeDeletionAfter",
	"gardener-garbage-collectable-removed":   "TestCollectablesAreLeftToTheCollector",
	"gardener-immutable-configmap-recreated": "TestImmutableConfigMapsAndSecretsAreRecreated",
	"gardener-inject-labels":                 "TestInjectLabels",
	"gardener-invalid-object-added":          "TestAnObjectWithoutAKind", "gardener-object-without-typemeta": "TestAnObjectWithoutAKind",
	"gardener-keep-object-removed": "TestPruneDeletesWhatLeftTheSet", "gardener-mode-ignore": "TestAnIgnoredObjectIsNotCreated",
	"gardener-object-added": "TestARefusedObjectStopsNoOther", "gardener-preserve-resources": "TestPreserveResources",
	"gardener-replicas-reverted": "TestWhatAPersonChangedIsReset", "gardener-resources-reverted": "TestWhatAPersonChangedIsReset",
}

const noIgnoreRules = "there are no ignore rules: a field that others decide on is left out of the declaration"

func TestEveryScenarioHasATest(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(corpus.Dir(t), "scenarios", "*.md"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	sources := ""
	tests, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	for _, file := range tests {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		sources += string(raw)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".md")
		played, known := scenarios[name]
		if strings.HasPrefix(name, "gardener-") && !known {
			// classes, health and conditions of ManagedResources:
			// controllers/resourcemanager/managedresource, health
			continue
		}
		assert.True(t, known, "scenario %s is not played", name)
		if strings.HasPrefix(played, "Test") {
			assert.Contains(t, sources, "func "+played+"(t *testing.T)")
		}
	}
}

func TestARefusedObjectStopsNoOther(t *testing.T) {
	f := newFixture(t)
	binding := func(role string) *unstructured.Unstructured {
		return f.object(`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: b, namespace: NS}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: ` + role + `}}`)
	}
	f.mustApply(f.set(binding("one"), f.configMap("a", "1")))
	crd := f.widgets()
	require.NoError(t, unstructured.SetNestedSlice(crd.Object, []any{}, "spec", "versions"))
	r, err := f.apply(f.set(binding("two"), f.configMap("a", "2"), f.configMap("new", "x"), crd))
	require.Error(t, err)
	assert.Equal(t, map[string]Action{"RoleBinding/b": Failed, "ConfigMap/a": Configured, "ConfigMap/new": Created,
		"CustomResourceDefinition/" + crd.GetName(): Failed}, actions(r))
	var all Errors
	require.ErrorAs(t, err, &all)
	assert.Len(t, all, 2)
	entries, err := f.inv.Load(f.ctx)
	require.NoError(t, err)
	assert.Len(t, entries, 4, "the inventory is written")
}

func TestOneObjectUnderTwoGroups(t *testing.T) {
	f := newFixture(t)
	event := func(apiVersion, rest string) *unstructured.Unstructured {
		return f.object(fmt.Sprintf(`{apiVersion: %s, kind: Event, metadata: {name: e, namespace: NS}, type: Normal, reason: r, %s}`, apiVersion, rest))
	}
	set := f.set(event("v1", "involvedObject: {namespace: NS}"))
	set.Equivalences = [][]schema.GroupKind{{{Kind: "Event"}, {Group: "events.k8s.io", Kind: "Event"}}}
	f.mustApply(set)
	before := f.get(set.Objects[0]).GetUID()
	set.Objects[0] = event("events.k8s.io/v1", "regarding: {namespace: NS}, action: a, reportingController: c.example.com/c, reportingInstance: i, eventTime: '2026-01-01T00:00:00.000000Z'")
	// Nothing is deleted; whether the server accepts the change does not matter.
	_, _ = f.apply(set)
	assert.Equal(t, before, f.get(event("v1", "")).GetUID())
}

func TestAPlanOfANamespaceThatIsNotThereYet(t *testing.T) {
	f := newFixture(t)
	ns := f.object(`{apiVersion: v1, kind: Namespace, metadata: {name: NS-later}}`)
	pod := f.object(`{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: NS-later}, spec: {containers: [{name: c, image: x}]}}`)
	p, err := f.e.Plan(f.ctx, f.c, f.set(ns, pod), f.inv, ApplyOptions{})
	require.NoError(t, err)
	assert.Equal(t, change.Summary{Create: 2}, p.Summary)
	assert.False(t, f.exists(ns))
	entries, err := f.inv.Load(f.ctx)
	require.NoError(t, err)
	assert.Empty(t, entries)
}

func TestAnEmptySet(t *testing.T) {
	f := newFixture(t)
	r := f.mustApply(f.set())
	assert.True(t, r.Complete)
	assert.Empty(t, r.Objects)
	_, err := f.e.Delete(f.ctx, f.c, f.set(), f.inv, DeleteOptions{})
	require.NoError(t, err)
	entries, err := f.inv.Load(f.ctx)
	require.NoError(t, err)
	assert.Empty(t, entries)
}

func TestANamespaceInUseStays(t *testing.T) {
	f := newFixture(t)
	ns := f.object(`{apiVersion: v1, kind: Namespace, metadata: {name: NS-used}}`)
	inside := f.configMap("inside", "x")
	inside.SetNamespace(ns.GetName())
	f.mustApply(f.set(ns, inside))
	r := f.mustApply(f.set(inside))
	assert.False(t, r.Complete)
	assert.Equal(t, Deleting, actions(r)["Namespace/"+ns.GetName()])
	assert.Contains(t, r.Objects[len(r.Objects)-1].Message, "waits until ConfigMap")
	assert.Nil(t, f.get(ns).GetDeletionTimestamp())
	assert.True(t, f.exists(inside))
}

func TestAnInvalidCABundle(t *testing.T) {
	for name, bundle := range map[string]string{"no certificate": "aW52YWxpZC1jZXJ0LWRhdGE=", "no base64": "invalid-cert-data"} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			crd := f.widgets()
			require.NoError(t, unstructured.SetNestedMap(crd.Object, map[string]any{"strategy": "Webhook", "webhook": map[string]any{
				"conversionReviewVersions": []any{"v1"}, "clientConfig": map[string]any{"url": "https://example.com", "caBundle": bundle}}}, "spec", "conversion"))
			f.mustApply(f.set(crd))
			assert.Nil(t, nested(f.get(crd), "spec", "conversion", "webhook", "clientConfig", "caBundle"))
		})
	}
}

func TestAnIgnoredObjectIsNotCreated(t *testing.T) {
	f := newFixture(t)
	keys := gardenerKeys()
	ignored, mode := f.configMap("ignored", "x"), f.configMap("mode", "x")
	ignored.SetAnnotations(map[string]string{keys.Ignore: "true"})
	mode.SetAnnotations(map[string]string{keys.Mode: "Ignore"})
	r := f.mustApply(f.set(ignored, mode, f.configMap("c", "x")))
	assert.Equal(t, map[string]Action{"ConfigMap/ignored": Ignored, "ConfigMap/c": Created}, actions(r))
	assert.False(t, f.exists(ignored))
	assert.False(t, f.exists(mode))
	entries, err := f.inv.Load(f.ctx)
	require.NoError(t, err)
	assert.Len(t, entries, 1)
}

func (f *fixture) service(kind string) *unstructured.Unstructured {
	o := f.object(`{apiVersion: v1, kind: Service, metadata: {name: s, namespace: NS}, spec: {type: ` + kind + `, ports: [{port: 80}]}}`)
	o.SetAnnotations(map[string]string{gardenerKeys().DeleteOnInvalidUpdate: "true"})
	return o
}

func TestAnInvalidChangeDeletesNothing(t *testing.T) {
	f := newFixture(t)
	f.mustApply(f.set(f.service("ClusterIP")))
	before := f.get(f.service("")).GetUID()
	_, err := f.apply(f.set(f.service("ClusterIPSS")))
	assert.Equal(t, ReasonInvalid, ReasonOf(err))
	assert.ErrorContains(t, err, "spec.type")
	assert.Equal(t, before, f.get(f.service("")).GetUID())
}

func TestAValidChangeDeletesNothing(t *testing.T) {
	f := newFixture(t)
	o := f.immutableObject("ConfigMap", "x")
	o.SetAnnotations(map[string]string{gardenerKeys().DeleteOnInvalidUpdate: "true"})
	f.mustApply(f.set(o))
	before := f.get(o).GetUID()
	changed := o.DeepCopy()
	changed.SetLabels(map[string]string{"foo": "bar"})
	f.mustApply(f.set(changed))
	assert.Equal(t, before, f.get(o).GetUID())
	assert.Equal(t, "bar", f.get(o).GetLabels()["foo"])
}

func TestRecreationWaitsForAFinalizer(t *testing.T) {
	f := newFixture(t)
	old := f.immutableObject("Secret", "b2xk")
	f.mustApply(f.set(old))
	f.patch(old, "somebody", `{"metadata":{"finalizers":["test.example.com/wait"]}}`)
	before := f.get(old).GetUID()
	released := make(chan struct{})
	go func() {
		defer close(released)
		deadline := time.Now().Add(20 * time.Second)
		for time.Now().Before(deadline) {
			live, err := f.resource(old).Get(f.ctx, old.GetName(), metav1.GetOptions{})
			if err == nil && live.GetDeletionTimestamp() != nil {
				live.SetFinalizers(nil)
				_, _ = f.resource(old).Update(f.ctx, live, metav1.UpdateOptions{})
				return
			}
		}
	}()
	r, err := f.e.Apply(f.ctx, f.c, f.set(f.immutableObject("Secret", "bmV3")), f.inv, ApplyOptions{DeleteTimeout: 20 * time.Second})
	require.NoError(t, err)
	<-released
	assert.Equal(t, 1, r.Count(Recreated))
	assert.NotEqual(t, before, f.get(old).GetUID())
}

func TestTheErrorOfAnImmutableSecret(t *testing.T) {
	f := newFixture(t)
	f.mustApply(f.set(f.immutableObject("Secret", "aHVudGVyMi1vbGQ=")))
	_, err := f.e.Apply(f.ctx, f.c, f.set(f.immutableObject("Secret", "aHVudGVyMi1uZXc=")), f.inv,
		ApplyOptions{HoldRecreate: func(Entry) *change.Reason { return holdReason(true, "not today") }})
	require.NoError(t, err, "held is no error")
	invalid := f.immutableObject("Secret", "aHVudGVyMi1uZXc=")
	invalid.Object["type"] = "kubernetes.io/tls"
	_, err = f.apply(f.set(invalid))
	require.Error(t, err)
	assert.Contains(t, err.Error(), "Secret "+f.ns+"/"+invalid.GetName())
	assert.NotContains(t, err.Error(), "hunter2")
	assert.NotContains(t, err.Error(), "aHVudGVyM")
}

func TestAMissingNamespaceIsDefault(t *testing.T) {
	f := newFixture(t)
	o := f.object(`{apiVersion: v1, kind: ConfigMap, metadata: {name: NS-homeless}, data: {a: b}}`)
	f.mustApply(f.set(o))
	in := o.DeepCopy()
	in.SetNamespace("default")
	assert.True(t, f.exists(in), "as upstream's resource-manager")
	_, err := f.e.Delete(f.ctx, f.c, f.set(), f.inv, DeleteOptions{})
	require.NoError(t, err)
	assert.False(t, f.exists(in))
}

func TestOddDataIsNoChange(t *testing.T) {
	f := newFixture(t)
	set := f.set(
		f.object(`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: NS, creationTimestamp: null}, data: {}}`),
		f.object(`{apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: NS, creationTimestamp: null}}`),
		f.object(`{apiVersion: v1, kind: Secret, metadata: {name: c, namespace: NS, creationTimestamp: null}, stringData: {test: test}}`),
		f.object(`{apiVersion: v1, kind: Secret, metadata: {name: d, namespace: NS}, data: {}}`),
	)
	assert.Equal(t, 4, f.mustApply(set).Count(Created))
	var r *Result
	assert.Empty(t, f.requests(func() { r = f.mustApply(set) }))
	assert.Equal(t, 4, r.Count(Unchanged))
}

func TestAnObjectWithoutAKind(t *testing.T) {
	f := newFixture(t)
	f.mustApply(f.set(f.configMap("c", "x")))
	r, err := f.apply(f.set(&unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "x"}}}))
	var e *ObjectError
	require.ErrorAs(t, err, &e)
	assert.Equal(t, ReasonInvalid, e.Reason)
	assert.ErrorContains(t, err, "lacks apiVersion, kind")
	assert.False(t, r.Complete)
	assert.True(t, f.exists(f.configMap("c", "")), "nothing is pruned for a set that is not understood")
}

func TestWhatAPersonChangedIsReset(t *testing.T) {
	f := newFixture(t)
	f.mustApply(f.set(f.deployment("d", 1)))
	f.patch(f.deployment("d", 1), "kubectl-edit", `{"spec":{"replicas":5,"template":{"spec":{"containers":[{"name":"app","image":"registry.k8s.io/pause:3.10","resources":{"requests":{"cpu":"2"}}}]}}}}`)
	f.mustApply(f.set(f.deployment("d", 1)))
	live := f.get(f.deployment("d", 1))
	assert.EqualValues(t, 1, nested(live, "spec", "replicas"))
	c := nested(live, "spec", "template", "spec", "containers").([]any)[0].(map[string]any)
	assert.Equal(t, "500m", c["resources"].(map[string]any)["requests"].(map[string]any)["cpu"])
}
