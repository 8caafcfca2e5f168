// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"testing"

	"github.com/stretchr/testify/assert"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
)

// TestStatusShowsHoldReason checks that the status of an undeclared object that the operator
// holds shows the reason, and not that the next apply deletes it.
func TestStatusShowsHoldReason(t *testing.T) {
	w := newFolderLandscape(t, "undeclared", map[string]string{"a.yaml": mapFile("un-held", "un-free", "un-stays")})
	w.mustSync()
	w.write("a.yaml", mapFile("un-stays"))
	c := w.newConverger()
	object := objectStatus(landscapeObject(func(l *landscapev1alpha1.Landscape) {
		l.Status.Held = []landscapev1alpha1.HeldDeletion{
			{Cluster: Virtual, Object: "ConfigMap default/un-held", Reason: "every deletion on cluster virtual needs approval", Approval: "1"},
			{Cluster: Runtime, Object: "ConfigMap default/un-free", Reason: "of another cluster", Approval: "2"},
		}
	}), noon)
	ref := func(name string) apply.Ref {
		return apply.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: name}
	}
	assert.Equal(t, []UndeclaredObject{{Virtual, ref("un-free"), ""}, {Virtual, ref("un-held"), "every deletion on cluster virtual needs approval"}}, c.undeclaredObjects(testContext(t), object))
	assert.Equal(t, []UndeclaredObject{{Virtual, ref("un-free"), ""}, {Virtual, ref("un-held"), ""}}, c.undeclaredObjects(testContext(t), nil))
}
