// SPDX-License-Identifier: Apache-2.0

package gardenlet

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/permit"
)

// patchByHand patches the ConfigMap of the Seed whose name has a prefix.
func (p *testSeed) patchByHand(prefix, patch string) {
	p.Helper()
	_, err := p.configMaps("garden").Patch(p.ctx, prefix+"-"+p.name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "kubectl-edit"})
	require.NoError(p, err)
}

// TestDriftDuringAConvergence: drift during a reconciliation is repaired and reported after it, for
// each object, before the next round of care.
func TestDriftDuringAConvergence(t *testing.T) {
	p := newTestSeed(t)
	p.overlays["components/seed/a/kustomization.yaml"] = "resources: [e.yaml]\n"
	p.overlays["components/seed/a/e.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra-SEED, namespace: garden}\ndata: {x: \"1\"}\n"
	p.publish("main@1")
	slow := newStepBrake()
	g := p.runGardenlet(func(o *Options) { o.Timing.CareInterval, o.OnEvent = time.Hour, slow.onEvent })
	p.eventually("it is reconciled", p.isReconciled("Seed", "", p.name))
	step := "seed " + p.name + " b"
	slow.stepPrefix.Store(&step)
	p.patch("Seed", "", p.name, `{"metadata":{"annotations":{"gardener.cloud/operation":"reconcile"}}}`)
	select {
	case <-slow.reached:
	case <-p.ctx.Done():
		t.Fatal("it is not converged again")
	}
	p.patchByHand("a", `{"data":{"region":"by hand"}}`)
	p.patchByHand("extra", `{"data":{"x":"by hand"}}`)
	p.eventually("both are found", func() bool { return g.fleet.Statuses()["seed "+p.name].DriftedObjects == 2 })
	assert.Empty(t, p.eventMessages(reasonDriftRepaired, p.name))
	close(slow.release)
	p.eventually("what was changed is told", p.hasEvent(reasonDriftRepaired, p.name, "ConfigMap garden/a-"+p.name, "data.region (by kubectl-edit): repaired"))
	p.eventually("of each object", p.hasEvent(reasonDriftRepaired, p.name, "ConfigMap garden/extra-"+p.name, "data.x (by kubectl-edit): repaired"))
	assert.Equal(t, "here", p.configMapValue("garden", "a-"+p.name, "region"))
	assert.Equal(t, "1", p.configMapValue("garden", "extra-"+p.name, "x"))
	require.NoError(t, g.stop())
}

// TestHeldRepair: a held repair is not reported as done. The object stays changed, and the
// report lists the approval.
func TestHeldRepair(t *testing.T) {
	p := newTestSeed(t)
	p.spec = holdAllGate
	p.publish("main@1")
	g := p.runGardenlet(func(o *Options) { o.Timing.CareInterval = time.Hour })
	p.eventually("it is reconciled", p.isReconciled("Seed", "", p.name))
	p.patchByHand("b", `{"data":{"x":"by hand"},"immutable":true}`)
	id := permit.ApprovalID(p.name, change.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "garden", Name: "b-" + p.name})
	p.eventually("that it is held is told", p.hasEvent(reasonDriftNotRepaired, p.name, "ConfigMap garden/b-"+p.name, "and is not repaired: held: every deletion", "pergola approve demo "+p.name+"/"+id))
	p.eventually("it is in the report", func() bool { held := p.readReport().Held; return len(held) == 1 && held[0].Approval == id })
	assert.Equal(t, "by hand", p.configMapValue("garden", "b-"+p.name, "x"))
	assert.Empty(t, p.eventMessages(reasonDriftRepaired, p.name))
	p.approvals = []string{id}
	p.publish("main@1")
	p.eventually("it is repaired when that is approved", func() bool { return p.configMapValue("garden", "b-"+p.name, "x") == "1" })
	require.NoError(t, g.stop())
}

// TestRepairRestoresAppliedRevision: after a failed step, a repair restores the applied revision of
// later steps. The new one is applied in its turn.
func TestRepairRestoresAppliedRevision(t *testing.T) {
	p := newTestSeed(t)
	configMap := func(name, namespace, x string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: " + namespace + "}\ndata: {x: \"" + x + "\"}\n"
	}
	p.overlays["components/seed/b/kustomization.yaml"] = "resources: [e.yaml]\n"
	p.overlays["components/seed/b/e.yaml"] = configMap("extra-SEED", "garden", "1") + "---\n" + configMap("same-SEED", "garden", "1")
	p.publish("main@1")
	g := p.runGardenlet(func(o *Options) { o.Timing.CareInterval, o.Timing.RetryInterval = time.Hour, time.Hour })
	p.eventually("it is reconciled", p.isReconciled("Seed", "", p.name))
	p.overlays["components/seed/a/kustomization.yaml"] = "resources: [e.yaml]\n"
	p.overlays["components/seed/a/e.yaml"] = configMap("refused-SEED", "missing-SEED", "1")
	p.overlays["components/seed/b/e.yaml"] = configMap("same-SEED", "garden", "1")
	p.overlays["components/seed/b/kustomization.yaml"] = "resources: [e.yaml]\npatches: [{path: p.yaml}]\n"
	p.overlays["components/seed/b/p.yaml"] = configMap("b-SEED", "garden", "2")
	p.publish("main@2")
	p.eventually("it fails", func() bool { return p.lastOperation("Seed", "", p.name, "state") == "Error" })
	require.Equal(t, "1", p.configMapValue("garden", "b-"+p.name, "x"))

	p.patchByHand("b", `{"data":{"x":"by hand"}}`)
	p.patchByHand("same", `{"data":{"x":"by hand"}}`)
	p.eventually("what is declared as before is repaired", p.hasEvent(reasonDriftRepaired, p.name, "ConfigMap garden/same-"+p.name))
	p.eventually("of what is not that is told", p.hasEvent(reasonDriftNotRepaired, p.name, "ConfigMap garden/b-"+p.name, "is not repaired: its declaration changed"))
	p.patchByHand("extra", `{"data":{"x":"by hand"}}`)
	p.eventually("and of what is to go", p.hasEvent(reasonDriftNotRepaired, p.name, "ConfigMap garden/extra-"+p.name, "is not repaired: its declaration changed"))
	assert.Equal(t, "1", p.configMapValue("garden", "same-"+p.name, "x"))
	assert.Equal(t, "by hand", p.configMapValue("garden", "b-"+p.name, "x"))
	assert.NotNil(t, p.seedConfigMap("garden", "extra-"+p.name), "nothing goes")

	delete(p.overlays, "components/seed/a/e.yaml")
	delete(p.overlays, "components/seed/a/kustomization.yaml")
	p.publish("main@3")
	p.eventually("its turn comes", func() bool {
		return p.configMapValue("garden", "b-"+p.name, "x") == "2" && p.seedConfigMap("garden", "extra-"+p.name) == nil
	})
	require.NoError(t, g.stop())
}

// TestDriftRepairAfterFailedStep: objects behind a failed step are repaired, also after a restart,
// and after Git reverts its change.
func TestDriftRepairAfterFailedStep(t *testing.T) {
	p := newTestSeed(t)
	extra := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra-SEED, namespace: garden}\ndata: {x: \"1\"}\n"
	p.overlays["components/seed/b/kustomization.yaml"] = "resources: [e.yaml]\n"
	p.overlays["components/seed/b/e.yaml"] = extra
	p.publish("main@1")
	impatient := func(o *Options) { o.Timing.CareInterval, o.Timing.RetryInterval = time.Second, time.Second }
	g := p.runGardenlet(impatient)
	p.eventually("it is reconciled", p.isReconciled("Seed", "", p.name))
	p.overlays["components/seed/a/kustomization.yaml"] = "resources: [e.yaml]\n"
	p.overlays["components/seed/a/e.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: refused-SEED, namespace: missing-SEED}\n"
	p.overlays["components/seed/b/e.yaml"] = extra + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: more-SEED, namespace: garden}\n"
	p.overlays["components/seed/b/kustomization.yaml"] = "resources: [e.yaml]\npatches: [{path: p.yaml}]\n"
	p.overlays["components/seed/b/p.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b-SEED, namespace: garden}\ndata: {x: \"2\"}\n"
	p.publish("main@2")
	p.eventually("it fails", func() bool { return p.lastOperation("Seed", "", p.name, "state") == "Error" })
	require.NoError(t, g.stop())

	p.patchByHand("extra", `{"data":{"x":"while nobody looks"}}`)
	g = p.runGardenlet(impatient)
	p.eventually("another process repairs it", func() bool { return p.configMapValue("garden", "extra-"+p.name, "x") == "1" })
	require.NoError(t, p.configMaps("garden").Delete(p.ctx, "extra-"+p.name, metav1.DeleteOptions{}))
	p.eventually("and makes it anew", func() bool { return p.configMapValue("garden", "extra-"+p.name, "x") == "1" })
	p.patchByHand("b", `{"data":{"x":"by hand"}}`)
	p.eventually("what is declared otherwise stays", p.hasEvent(reasonDriftNotRepaired, p.name, "ConfigMap garden/b-"+p.name, "is not repaired: its declaration changed"))
	assert.Nil(t, p.seedConfigMap("garden", "more-"+p.name), "its turn has not come")
	delete(p.overlays, "components/seed/b/p.yaml")
	p.overlays["components/seed/b/kustomization.yaml"] = "resources: [e.yaml]\n"
	p.overlays["components/seed/b/e.yaml"] = extra
	p.publish("main@3")
	p.eventually("it is as Git has it again", func() bool { return p.configMapValue("garden", "b-"+p.name, "x") == "1" })
	assert.Equal(t, "Error", p.lastOperation("Seed", "", p.name, "state"))
	require.NoError(t, g.stop())
}

// TestIgnoredObjectIsNotRepaired: an ignored object is neither repaired nor reported as repaired.
func TestIgnoredObjectIsNotRepaired(t *testing.T) {
	p := newTestSeed(t)
	p.publish("main@1")
	g := p.runGardenlet()
	p.eventually("it is reconciled", p.isReconciled("Seed", "", p.name))
	p.patchByHand("b", `{"metadata":{"annotations":{"resources.gardener.cloud/ignore":"true"}},"data":{"x":"by hand"}}`)
	require.NoError(t, p.configMaps("garden").Delete(p.ctx, "a-"+p.name, metav1.DeleteOptions{}))
	p.eventually("the other one is", p.hasEvent(reasonDriftRepaired, p.name, "ConfigMap garden/a-"+p.name))
	p.publish("main@2")
	p.eventually("it is reconciled again", func() bool { return p.readReport().Digest != "" && len(p.readReport().Converging) == 0 })
	assert.Equal(t, "by hand", p.configMapValue("garden", "b-"+p.name, "x"))
	for _, e := range p.eventMessages(reasonDriftRepaired, p.name) {
		assert.NotContains(t, e, "b-"+p.name)
	}
	require.NoError(t, g.stop())
}
