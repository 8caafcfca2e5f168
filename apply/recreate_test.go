// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/change"
)

func (f *fixture) immutableObject(kind, value string) *unstructured.Unstructured {
	return f.object(`{apiVersion: v1, kind: ` + kind + `, metadata: {name: i, namespace: NS}, immutable: true, data: {key: ` + value + `}}`)
}

func TestImmutableConfigMapsAndSecretsAreRecreated(t *testing.T) {
	for _, kind := range []string{"ConfigMap", "Secret"} {
		t.Run(kind, func(t *testing.T) {
			f := newFixture(t)
			f.mustApply(f.set(f.immutableObject(kind, "b2xk")))
			uid := f.get(f.immutableObject(kind, "")).GetUID()

			relabelled := f.immutableObject(kind, "b2xk")
			relabelled.SetLabels(map[string]string{"a": "b"})
			assert.Equal(t, Configured, f.mustApply(f.set(relabelled)).Objects[0].Action)
			assert.Equal(t, uid, f.get(relabelled).GetUID(), "a valid change does not delete")

			refused, err := f.e.Apply(f.ctx, f.c, f.set(f.immutableObject(kind, "bmV3")), f.inv,
				ApplyOptions{HoldRecreate: func(Entry) *change.Reason { return holdReason(true, "not now") }})
			require.NoError(t, err)
			assert.Equal(t, HeldBack, refused.Objects[0].Action)
			assert.Equal(t, uid, f.get(relabelled).GetUID())

			assert.Equal(t, Recreated, f.mustApply(f.set(f.immutableObject(kind, "bmV3"))).Objects[0].Action)
			live := f.get(f.immutableObject(kind, ""))
			assert.NotEqual(t, uid, live.GetUID())
			assert.Equal(t, "bmV3", nested(live, "data", "key"))
			assert.Empty(t, f.requests(func() { f.mustApply(f.set(f.immutableObject(kind, "bmV3"))) }))
		})
	}
}

func TestImmutableSelectorOfADeployment(t *testing.T) {
	f := newFixture(t)
	f.mustApply(f.set(f.deployment("d", 1), f.configMap("c", "1")))
	uid := f.get(f.deployment("d", 1)).GetUID()
	changed := f.deployment("d", 1)
	require.NoError(t, unstructured.SetNestedField(changed.Object, "other", "spec", "selector", "matchLabels", "app"))
	require.NoError(t, unstructured.SetNestedField(changed.Object, "other", "spec", "template", "metadata", "labels", "app"))

	r, err := f.apply(f.set(changed, f.configMap("c", "2")))
	var e *ObjectError
	require.ErrorAs(t, err, &e)
	assert.Equal(t, ReasonImmutable, e.Reason)
	assert.Equal(t, []string{"spec.selector"}, e.Fields)
	assert.Contains(t, e.Hint, "delete-on-invalid-update")
	assert.Equal(t, map[string]Action{"Deployment/d": Failed, "ConfigMap/c": Configured}, actions(r))
	assert.Equal(t, uid, f.get(changed).GetUID())

	// The annotation allows a recreation, unless the new object is invalid, too.
	changed.SetAnnotations(map[string]string{
		gardenerKeys().DeleteOnInvalidUpdate: "true", gardenerKeys().InvalidUpdateDeletion: "Background"})
	broken := changed.DeepCopy()
	require.NoError(t, unstructured.SetNestedField(broken.Object, int64(-1), "spec", "replicas"))
	_, err = f.apply(f.set(broken, f.configMap("c", "2")))
	assert.Equal(t, ReasonInvalid, ReasonOf(err), "not every cause is an immutable field: %v", err)
	assert.Equal(t, uid, f.get(changed).GetUID())
	assert.Equal(t, Recreated, actions(f.mustApply(f.set(changed, f.configMap("c", "2"))))["Deployment/d"])
	assert.NotEqual(t, uid, f.get(changed).GetUID())
}

func TestProtectedKindsAreNotRecreated(t *testing.T) {
	f := newFixture(t)
	claim := func(mode string) *unstructured.Unstructured {
		return f.object(`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: p, namespace: NS, annotations: {resources.gardener.cloud/delete-on-invalid-update: "true"}},
		  spec: {accessModes: [` + mode + `], resources: {requests: {storage: 1Gi}}}}`)
	}
	f.mustApply(f.set(claim("ReadWriteOnce")))
	uid := f.get(claim("")).GetUID()
	_, err := f.apply(f.set(claim("ReadWriteMany")))
	var e *ObjectError
	require.ErrorAs(t, err, &e)
	assert.Equal(t, ReasonImmutable, e.Reason)
	assert.NotContains(t, e.Hint, "delete-on-invalid-update", "it has no effect here")
	assert.Equal(t, uid, f.get(claim("")).GetUID())
}

// TestImmutableTemplateErrorNamesChanges: the server's answer contains the whole template, as
// a Go structure.
func TestImmutableTemplateErrorNamesChanges(t *testing.T) {
	f := newFixture(t)
	job := func(image, extra string) *unstructured.Unstructured {
		return f.object(`{apiVersion: batch/v1, kind: Job, metadata: {name: j, namespace: NS}, spec: {template: {spec: {restartPolicy: Never,
		  containers: [{name: app, image: "` + image + `", command: [a, b]` + extra + `}]}}}}`)
	}
	f.mustApply(f.set(job("a:1", ", workingDir: /tmp")))
	for name, c := range map[string]struct {
		job     *unstructured.Unstructured
		changed string
	}{
		"changed": {job("a:2", ", workingDir: /tmp"), "spec.template.spec.containers[name=app].image"},
		"removed": {job("a:1", ""), "spec.template.spec.containers[name=app].workingDir"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, do := range []func(Set) error{
				func(s Set) error { _, err := f.apply(s); return err },
				func(s Set) error { _, err := f.e.Plan(f.ctx, f.c, s, f.inv, ApplyOptions{}); return err },
			} {
				err := do(f.set(c.job))
				var e *ObjectError
				require.ErrorAs(t, err, &e)
				assert.Equal(t, ReasonImmutable, e.Reason)
				assert.Equal(t, "spec.template cannot change on a live object, and the declaration changes "+c.changed, e.Message)
				assert.Less(t, len(err.Error()), 500)
				assert.NotContains(t, err.Error(), "\n")
			}
		})
	}
}
