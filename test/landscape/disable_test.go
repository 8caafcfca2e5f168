// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/owner"
)

var getOptions = metav1.GetOptions{}

// contextUntilClosed ends a context with a channel.
func contextUntilClosed(ctx context.Context, stop <-chan struct{}) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		select {
		case <-stop:
		case <-ctx.Done():
		}
	}()
	return ctx
}

// disabledComponentPatch is the patch of landscape.yaml that disables a component.
func disabledComponentPatch(owner, component string) string {
	return "spec:\n  components:\n    " + owner + ":\n      " + component + ": {enabled: false}\n"
}

// testDisableLargeComponent: a component above the gate is held until it is approved. Then exactly
// its objects are deleted, and created again when it is enabled.
func testDisableLargeComponent(t *testing.T, s *testStage) {
	before := s.snapshot()
	managed := before[runtimeCluster+": ManagedResource garden/vpa"]
	require.NotNil(t, managed)
	resources, _, err := unstructured.NestedSlice(managed.Object, "status", "resources")
	require.NoError(t, err)
	require.Greater(t, len(resources), 20, "more than the gate lets pass")

	undo := s.editWithUndo("landscape.yaml", "spec:\n", disabledComponentPatch("garden", "vpa"))
	report, c := s.mustApply()
	require.Len(t, report.Held, 1)
	held := report.Held[0]
	assert.Equal(t, runtimeCluster, held.Cluster)
	assert.Len(t, held.Objects, len(resources))
	assert.NotEmpty(t, held.Approval)
	assert.Empty(t, c.writtenObjects(), "nothing goes before it is approved")
	p, _ := s.planWithoutWaiting()
	for _, item := range p.Items {
		assert.Contains(t, item.Reason, "held", item.Object)
	}
	judged := s.newConverger().Status(testContext(t), landscape.StatusOptions{Components: true})
	var left []owner.BundleState
	for _, b := range judged.Owners[0].Bundles {
		if b.State != owner.StateHealthy && !isWaiting(b) {
			left = append(left, b)
		}
	}
	assert.Equal(t, []owner.BundleState{{
		Bundle: "vpa", Cluster: runtimeCluster, Objects: len(resources), State: owner.StateOrphaned,
		Message: "its component is no longer enabled: the next apply removes it",
	}}, left)
	assert.Len(t, p.Items, len(resources))

	_, c = s.mustApply(withApproval(held.Approval))
	want := []string{
		runtimeCluster + ": ConfigMap garden/pergola-inventory.garden.local.vpa",
		runtimeCluster + ": ManagedResource garden/vpa",
	}
	for _, r := range resources {
		m := r.(map[string]any)
		ref := apply.Ref{Kind: m["kind"].(string), Name: m["name"].(string)}
		ref.Namespace, _ = m["namespace"].(string)
		want = append(want, runtimeCluster+": "+ref.String())
	}
	var gone []string
	for _, name := range before.without(s.snapshot()) {
		// Its data Secret and its certificate have hashes in their names.
		if !strings.Contains(name, "Secret garden/managedresource-vpa-") && !strings.Contains(name, "Secret garden/vpa-admission-controller-server-") {
			gone = append(gone, name)
		}
	}
	assert.ElementsMatch(t, want, gone)
	assert.Empty(t, s.snapshot().without(before), "and nothing appears instead")
	written := c.writtenObjects()
	assertBefore(t, written, "deleted MutatingWebhookConfiguration zzz-vpa-webhook-config-source", "deleted Deployment garden/vpa-admission-controller")
	assertBefore(t, written, "deleted Deployment garden/vpa-updater", "deleted ServiceAccount garden/vpa-updater")

	undo()
	_, c = s.mustApply()
	assert.Contains(t, c.writtenObjects(), "created Deployment garden/vpa-updater")
	now := s.snapshot()
	for _, name := range want {
		assert.Contains(t, now, name)
	}
}

// assertBefore checks the reverse order: users are deleted before the objects they use.
func assertBefore(t *testing.T, list []string, first, second string) {
	t.Helper()
	i, j := indexOf(list, first), indexOf(list, second)
	assert.True(t, i >= 0 && j > i, "%q comes before %q in\n%s", first, second, strings.Join(list, "\n"))
}

// countTexts returns how many texts have one of the parts.
func countTexts(list []string, parts ...string) int {
	n := 0
	for _, s := range list {
		for _, part := range parts {
			if strings.Contains(s, part) {
				n++
			}
		}
	}
	return n
}

func indexOf(list []string, text string) int {
	for i, s := range list {
		if s == text {
			return i
		}
	}
	return -1
}

// testDisableSmallComponent: a component within the gate needs no approval; the rest of the flow
// runs.
func testDisableSmallComponent(t *testing.T, s *testStage) {
	before := s.snapshot()
	undo := s.editWithUndo("landscape.yaml", "spec:\n", disabledComponentPatch("seed", "system")+
		"  external: # etcd-druid needs it\n  - {kind: PriorityClass, name: gardener-system-800}\n")
	deployments := s.resource(seedCluster, "apps/v1", "deployments", "garden")
	s.delete(deployments, "etcd-druid")
	report, c := s.mustApply()
	assert.Empty(t, report.Held)
	assert.Equal(t, 2, countTexts(c.writtenObjects(), "ManagedResource garden/system", "Secret garden/managedresource-system-"), "each is said to be deleted once")
	assert.Empty(t, c.missingObjects(), "nothing was gone before")
	assert.Equal(t, 2, report.Written.DeliveryObjects)
	assert.Equal(t, 1, report.Written.Created)
	assert.Contains(t, c.writtenObjects(), "created Deployment garden/etcd-druid", "it comes after system, which is disabled")
	gone := before.without(s.snapshot())
	assert.Contains(t, gone, seedCluster+": ManagedResource garden/system")
	assert.Contains(t, gone, seedCluster+": ConfigMap garden/pergola-inventory.seed.local.system")
	classes := 0
	for _, name := range gone {
		if strings.Contains(name, "PriorityClass") {
			classes++
		} else {
			assert.Regexp(t, `: (ManagedResource garden/system|ConfigMap garden/pergola-inventory.seed.local.system|Secret garden/managedresource-system-\w+)$`, name)
		}
	}
	assert.Greater(t, classes, 5)
	assert.Equal(t, classes, report.Written.Deleted)

	undo()
	s.mustApply()
	assert.Empty(t, before.without(s.snapshot()))
}
