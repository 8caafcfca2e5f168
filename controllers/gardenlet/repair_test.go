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

// byHand patches the ConfigMap of the Seed whose name has a prefix.
func (p *place) byHand(prefix, patch string) {
	p.Helper()
	_, err := p.configMaps("garden").Patch(p.ctx, prefix+"-"+p.name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "kubectl-edit"})
	require.NoError(p, err)
}

// TestDriftDuringAConvergence: drift during a reconciliation is repaired and reported after it, for
// each object, before the next round of care.
func TestDriftDuringAConvergence(t *testing.T) {
	p := newPlace(t)
	p.overlays["components/seed/a/kustomization.yaml"] = "resources: [e.yaml]\n"
	p.overlays["components/seed/a/e.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra-SEED, namespace: garden}\ndata: {x: \"1\"}\n"
	p.publish("main@1")
	slow := newBrake()
	g := p.run(func(o *Options) { o.Pace.CareInterval, o.OnEvent = time.Hour, slow.hear })
	p.eventually("it is reconciled", p.done("Seed", "", p.name))
	step := "seed " + p.name + " b"
	slow.on.Store(&step)
	p.patch("Seed", "", p.name, `{"metadata":{"annotations":{"gardener.cloud/operation":"reconcile"}}}`)
	select {
	case <-slow.reached:
	case <-p.ctx.Done():
		t.Fatal("it is not converged again")
	}
	p.byHand("a", `{"data":{"region":"by hand"}}`)
	p.byHand("extra", `{"data":{"x":"by hand"}}`)
	p.eventually("both are found", func() bool { return g.fleet.Statuses()["seed "+p.name].DriftedObjects == 2 })
	assert.Empty(t, p.events(reasonDriftRepaired, p.name))
	close(slow.release)
	p.eventually("what was changed is told", p.told(reasonDriftRepaired, p.name, "ConfigMap garden/a-"+p.name, "data.region (by kubectl-edit): repaired"))
	p.eventually("of each object", p.told(reasonDriftRepaired, p.name, "ConfigMap garden/extra-"+p.name, "data.x (by kubectl-edit): repaired"))
	assert.Equal(t, "here", p.data("garden", "a-"+p.name, "region"))
	assert.Equal(t, "1", p.data("garden", "extra-"+p.name, "x"))
	require.NoError(t, g.stop())
}

// TestARepairThatIsHeld: a held repair is not reported as done. The object stays changed, and the
// report lists the approval.
func TestARepairThatIsHeld(t *testing.T) {
	p := newPlace(t)
	p.spec = holdsEverything
	p.publish("main@1")
	g := p.run(func(o *Options) { o.Pace.CareInterval = time.Hour })
	p.eventually("it is reconciled", p.done("Seed", "", p.name))
	p.byHand("b", `{"data":{"x":"by hand"},"immutable":true}`)
	id := permit.ApprovalID(p.name, change.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "garden", Name: "b-" + p.name})
	p.eventually("that it is held is told", p.told(reasonDriftStays, p.name, "ConfigMap garden/b-"+p.name, "and is not repaired: held: every deletion", "pergola approve demo "+p.name+"/"+id))
	p.eventually("it is in the report", func() bool { held := p.reported().Held; return len(held) == 1 && held[0].Approval == id })
	assert.Equal(t, "by hand", p.data("garden", "b-"+p.name, "x"))
	assert.Empty(t, p.events(reasonDriftRepaired, p.name))
	p.approved = []string{id}
	p.publish("main@1")
	p.eventually("it is repaired when that is approved", func() bool { return p.data("garden", "b-"+p.name, "x") == "1" })
	require.NoError(t, g.stop())
}

// TestARepairDoesNotGoAhead: after a failed step, a repair restores the applied revision of later
// steps. The new one is applied in its turn.
func TestARepairDoesNotGoAhead(t *testing.T) {
	p := newPlace(t)
	configMap := func(name, namespace, x string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: " + namespace + "}\ndata: {x: \"" + x + "\"}\n"
	}
	p.overlays["components/seed/b/kustomization.yaml"] = "resources: [e.yaml]\n"
	p.overlays["components/seed/b/e.yaml"] = configMap("extra-SEED", "garden", "1") + "---\n" + configMap("same-SEED", "garden", "1")
	p.publish("main@1")
	g := p.run(func(o *Options) { o.Pace.CareInterval, o.Pace.RetryInterval = time.Hour, time.Hour })
	p.eventually("it is reconciled", p.done("Seed", "", p.name))
	p.overlays["components/seed/a/kustomization.yaml"] = "resources: [e.yaml]\n"
	p.overlays["components/seed/a/e.yaml"] = configMap("refused-SEED", "missing-SEED", "1")
	p.overlays["components/seed/b/e.yaml"] = configMap("same-SEED", "garden", "1")
	p.overlays["components/seed/b/kustomization.yaml"] = "resources: [e.yaml]\npatches: [{path: p.yaml}]\n"
	p.overlays["components/seed/b/p.yaml"] = configMap("b-SEED", "garden", "2")
	p.publish("main@2")
	p.eventually("it fails", func() bool { return p.operation("Seed", "", p.name, "state") == "Error" })
	require.Equal(t, "1", p.data("garden", "b-"+p.name, "x"))

	p.byHand("b", `{"data":{"x":"by hand"}}`)
	p.byHand("same", `{"data":{"x":"by hand"}}`)
	p.eventually("what is declared as before is repaired", p.told(reasonDriftRepaired, p.name, "ConfigMap garden/same-"+p.name))
	p.eventually("of what is not that is told", p.told(reasonDriftStays, p.name, "ConfigMap garden/b-"+p.name, "is not repaired: it is declared otherwise"))
	p.byHand("extra", `{"data":{"x":"by hand"}}`)
	p.eventually("and of what is to go", p.told(reasonDriftStays, p.name, "ConfigMap garden/extra-"+p.name, "is not repaired: it is declared otherwise"))
	assert.Equal(t, "1", p.data("garden", "same-"+p.name, "x"))
	assert.Equal(t, "by hand", p.data("garden", "b-"+p.name, "x"))
	assert.NotNil(t, p.onSeed("garden", "extra-"+p.name), "nothing goes")

	delete(p.overlays, "components/seed/a/e.yaml")
	delete(p.overlays, "components/seed/a/kustomization.yaml")
	p.publish("main@3")
	p.eventually("its turn comes", func() bool {
		return p.data("garden", "b-"+p.name, "x") == "2" && p.onSeed("garden", "extra-"+p.name) == nil
	})
	require.NoError(t, g.stop())
}

// TestDriftBehindAStepThatFails: objects behind a failed step are repaired, also after a restart,
// and after Git reverts its change.
func TestDriftBehindAStepThatFails(t *testing.T) {
	p := newPlace(t)
	extra := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra-SEED, namespace: garden}\ndata: {x: \"1\"}\n"
	p.overlays["components/seed/b/kustomization.yaml"] = "resources: [e.yaml]\n"
	p.overlays["components/seed/b/e.yaml"] = extra
	p.publish("main@1")
	impatient := func(o *Options) { o.Pace.CareInterval, o.Pace.RetryInterval = time.Second, time.Second }
	g := p.run(impatient)
	p.eventually("it is reconciled", p.done("Seed", "", p.name))
	p.overlays["components/seed/a/kustomization.yaml"] = "resources: [e.yaml]\n"
	p.overlays["components/seed/a/e.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: refused-SEED, namespace: missing-SEED}\n"
	p.overlays["components/seed/b/e.yaml"] = extra + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: more-SEED, namespace: garden}\n"
	p.overlays["components/seed/b/kustomization.yaml"] = "resources: [e.yaml]\npatches: [{path: p.yaml}]\n"
	p.overlays["components/seed/b/p.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b-SEED, namespace: garden}\ndata: {x: \"2\"}\n"
	p.publish("main@2")
	p.eventually("it fails", func() bool { return p.operation("Seed", "", p.name, "state") == "Error" })
	require.NoError(t, g.stop())

	p.byHand("extra", `{"data":{"x":"while nobody looks"}}`)
	g = p.run(impatient)
	p.eventually("another process repairs it", func() bool { return p.data("garden", "extra-"+p.name, "x") == "1" })
	require.NoError(t, p.configMaps("garden").Delete(p.ctx, "extra-"+p.name, metav1.DeleteOptions{}))
	p.eventually("and makes it anew", func() bool { return p.data("garden", "extra-"+p.name, "x") == "1" })
	p.byHand("b", `{"data":{"x":"by hand"}}`)
	p.eventually("what is declared otherwise stays", p.told(reasonDriftStays, p.name, "ConfigMap garden/b-"+p.name, "is not repaired: it is declared otherwise"))
	assert.Nil(t, p.onSeed("garden", "more-"+p.name), "its turn has not come")
	delete(p.overlays, "components/seed/b/p.yaml")
	p.overlays["components/seed/b/kustomization.yaml"] = "resources: [e.yaml]\n"
	p.overlays["components/seed/b/e.yaml"] = extra
	p.publish("main@3")
	p.eventually("it is as Git has it again", func() bool { return p.data("garden", "b-"+p.name, "x") == "1" })
	assert.Equal(t, "Error", p.operation("Seed", "", p.name, "state"))
	require.NoError(t, g.stop())
}

// TestIgnoredIsNotRepaired: an ignored object is neither repaired nor reported as repaired.
func TestIgnoredIsNotRepaired(t *testing.T) {
	p := newPlace(t)
	p.publish("main@1")
	g := p.run()
	p.eventually("it is reconciled", p.done("Seed", "", p.name))
	p.byHand("b", `{"metadata":{"annotations":{"resources.gardener.cloud/ignore":"true"}},"data":{"x":"by hand"}}`)
	require.NoError(t, p.configMaps("garden").Delete(p.ctx, "a-"+p.name, metav1.DeleteOptions{}))
	p.eventually("the other one is", p.told(reasonDriftRepaired, p.name, "ConfigMap garden/a-"+p.name))
	p.publish("main@2")
	p.eventually("it is reconciled again", func() bool { return p.reported().Digest != "" && len(p.reported().Converging) == 0 })
	assert.Equal(t, "by hand", p.data("garden", "b-"+p.name, "x"))
	for _, e := range p.events(reasonDriftRepaired, p.name) {
		assert.NotContains(t, e, "b-"+p.name)
	}
	require.NoError(t, g.stop())
}
