// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"cmp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/permit"
	"github.com/pergola-dev/pergola/render"
)

// TestOnlyCopiesNeedNoReview checks that a name with a hash alone does not make a review
// unnecessary.
func TestOnlyCopiesNeedNoReview(t *testing.T) {
	copied := map[string]string{"resources.gardener.cloud/garbage-collectable-reference": "true"}
	for name, test := range map[string]struct {
		entry apply.Entry
		goes  bool
	}{
		"copy":                    {apply.Entry{Ref: apply.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "garden", Name: "audit-policy-1b2c3d4e"}, Labels: copied}, true},
		"copy of a Secret":        {apply.Entry{Ref: apply.Ref{APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: "kubeconfigs-1b2c3d4e"}, Labels: copied}, true},
		"a name that looks alike": {apply.Entry{Ref: apply.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "garden", Name: "customer-00112233"}}, false},
		"a label alone":           {apply.Entry{Ref: apply.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "garden", Name: "customer"}, Labels: copied}, false},
		"what has no copies":      {apply.Entry{Ref: apply.Ref{APIVersion: "v1", Kind: "Service", Namespace: "garden", Name: "api-1b2c3d4e"}, Labels: copied}, false},
		"a kind of the same name": {apply.Entry{Ref: apply.Ref{APIVersion: "example.com/v1", Kind: "Secret", Namespace: "garden", Name: "api-1b2c3d4e"}, Labels: copied}, false},
	} {
		t.Run(name, func(t *testing.T) {
			gate := permit.Gate{Reviewed: func(string, change.Ref) bool { return false }}
			work := &run{owner: &ownerSession{}, report: &Report{}, reconciler: &Reconciler{Gate: gate}}
			held := work.holdDeletions("local", []apply.Entry{test.entry})
			if test.goes {
				assert.Empty(t, held)
				return
			}
			require.Len(t, held, 1)
			assert.Equal(t, landscapev1alpha1.HeldNotReviewed, held[0].Reason.Code)
		})
	}
}

// TestRemovedPoolNeedsReview checks that the OperatingSystemConfig of a pool counts as replaced
// if only its hash changes, and as deleted if the pool is removed.
func TestRemovedPoolNeedsReview(t *testing.T) {
	const old, next = "4e7c8d0011223344", "efa99f0011223344"
	config := func(kind, namespace, name string) render.Object {
		o := &unstructured.Unstructured{}
		o.SetAPIVersion("extensions.gardener.cloud/v1alpha1")
		o.SetKind(kind)
		o.SetNamespace(namespace)
		o.SetName(name)
		return render.Object{Unstructured: o}
	}
	const kind = "OperatingSystemConfig"
	of := &ownerSession{state: State{bundles: []render.Bundle{{Cluster: "local", Objects: []render.Object{
		config(kind, "shoot--a--b", "gardener-node-agent-local-"+next+"-init"), config(kind, "shoot--a--b", "gardener-node-agent-local-"+next+"-original"),
		config("Worker", "shoot--a--b", "gone-"+next),
	}}}}}
	for name, test := range map[string]struct {
		ref  apply.Ref
		goes bool
	}{
		"another hash":           {apply.Ref{Namespace: "shoot--a--b", Name: "gardener-node-agent-local-" + old + "-init"}, true},
		"its other purpose":      {apply.Ref{Namespace: "shoot--a--b", Name: "gardener-node-agent-local-" + old + "-original"}, true},
		"a pool that goes":       {apply.Ref{Namespace: "shoot--a--b", Name: "gardener-node-agent-gone-" + old + "-init"}, false},
		"the one that is wanted": {apply.Ref{Namespace: "shoot--a--b", Name: "gardener-node-agent-local-" + next + "-init"}, false},
		"of another Shoot":       {apply.Ref{Namespace: "shoot--a--c", Name: "gardener-node-agent-local-" + old + "-init"}, false},
		"another kind":           {apply.Ref{Kind: "Worker", Namespace: "shoot--a--b", Name: "gone-" + old}, false},
		"without a hash":         {apply.Ref{Namespace: "shoot--a--b", Name: "gardener-node-agent-local-init"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			ref := test.ref
			ref.APIVersion, ref.Kind = "extensions.gardener.cloud/v1alpha1", cmp.Or(ref.Kind, kind)
			gate := permit.Gate{MaxDeletions: permit.Limit(0), Reviewed: func(string, change.Ref) bool { return false }}
			work := &run{owner: of, report: &Report{}, reconciler: &Reconciler{Gate: gate}}
			assert.Equal(t, test.goes, len(work.holdDeletions("local", []apply.Entry{{Ref: ref}})) == 0)
		})
	}
}
