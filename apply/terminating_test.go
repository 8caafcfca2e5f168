// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestTerminatingNamespaceIsReportedOnce: a stuck namespace is reported once, with its reason, for
// all objects in it.
func TestTerminatingNamespaceIsReportedOnce(t *testing.T) {
	f := newFixture(t)
	ns := f.object(`{apiVersion: v1, kind: Namespace, metadata: {name: NS-stuck}}`)
	f.create(ns)
	require.NoError(t, f.resource(ns).Delete(f.ctx, ns.GetName(), deleteNow))
	// The namespace controller does not run here; these are its conditions.
	_, err := f.resource(ns).Patch(f.ctx, ns.GetName(), "application/merge-patch+json", []byte(`{"status":{"conditions":[
	  {"type":"NamespaceDeletionContentFailure","status":"False","reason":"ContentDeleted","message":"All content successfully deleted, may be waiting on finalization"},
	  {"type":"NamespaceContentRemaining","status":"True","reason":"SomeResourcesRemain","message":"Some resources are remaining: configmaps. has 1 resource instances"},
	  {"type":"NamespaceFinalizersRemaining","status":"True","reason":"SomeFinalizersRemain","message":"Some content in the namespace has finalizers remaining: a/b in 1 resource instances"}]}}`),
		patchAs("somebody"), "status")
	require.NoError(t, err)
	in := func(o *unstructured.Unstructured) *unstructured.Unstructured {
		o.SetNamespace(ns.GetName())
		return o
	}
	set := f.set(in(f.configMap("a", "x")), in(f.configMap("b", "x")), in(f.object(`{apiVersion: v1, kind: Secret, metadata: {name: c}}`)), f.configMap("elsewhere", "x"))
	for name, do := range map[string]func() error{
		"apply": func() error { _, err := f.apply(set); return err },
		"plan":  func() error { _, err := f.e.Plan(f.ctx, f.c, set, f.inv, ApplyOptions{}); return err },
	} {
		t.Run(name, func(t *testing.T) {
			err := do()
			var all Errors
			require.ErrorAs(t, err, &all)
			require.Len(t, all, 1, err)
			assert.Equal(t, ReasonTerminatingNamespace, all[0].Reason)
			for _, part := range []string{"cluster test: Namespace " + ns.GetName() + ": ", "its deletion began at ",
				"configmaps. has 1 resource instances; Some content in the namespace has finalizers remaining: a/b", "run again when the namespace no longer exists"} {
				assert.Contains(t, err.Error(), part)
			}
			assert.NotContains(t, err.Error(), "successfully deleted")
		})
	}
	assert.True(t, f.exists(f.configMap("elsewhere", "")))
}
