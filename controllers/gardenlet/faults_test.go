// SPDX-License-Identifier: Apache-2.0

package gardenlet

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/seedpublication"
)

// TestUnusablePublications: an unusable publication is reported, and the previous one stays in use.
func TestUnusablePublications(t *testing.T) {
	p := newTestSeed(t)
	g := p.runGardenlet()
	p.eventually("it says that it waits", func() bool { return p.condition("SettingsUpToDate") == "False PublicationMissing" })
	assert.Nil(t, p.seedConfigMap("garden", "a-"+p.name), "overlays are not known yet, so nothing is applied")
	assert.ErrorIs(t, g.checkSettings(), errNoPublication)
	p.overlay("first")
	p.publish("main@1")
	p.eventually("it begins", func() bool { return p.configMapValue("garden", "a-"+p.name, "overlaid") == "first" })
	p.eventually("it says so", func() bool { return p.condition("SettingsUpToDate") == "True PublicationInUse" })
	kept := func(t *testing.T, reason string) {
		t.Helper()
		p.TB = t
		p.eventually(reason, func() bool { return p.condition("SettingsUpToDate") == "False "+reason })
		p.eventually("an Event says so, too", func() bool {
			list, err := p.resourceClient("Event", "default").List(p.ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=" + p.name + ",reason=" + reason})
			return err == nil && len(list.Items) > 0
		})
		assert.Equal(t, "first", p.configMapValue("garden", "a-"+p.name, "overlaid"))
		// Drift is repaired to the previous settings.
		_, err := p.configMaps("garden").Patch(p.ctx, "a-"+p.name, types.MergePatchType, []byte(`{"data":{"overlaid":"by hand"}}`), metav1.PatchOptions{FieldManager: "kubectl-edit"})
		require.NoError(t, err)
		p.eventually("the former settings are kept", func() bool { return p.configMapValue("garden", "a-"+p.name, "overlaid") == "first" })
	}
	t.Run("for another catalogue", func(t *testing.T) {
		p.TB = t
		p.overlay("other catalogue")
		c := p.content()
		c.Catalogue = "9.9.9"
		_, err := p.publisher.Apply(p.ctx, p.virtualCluster, c, p.name, "main@2")
		require.NoError(t, err)
		kept(t, "CatalogueMismatch")
		p.overlay("first")
		p.publish("main@3")
		p.eventually("it is well again", func() bool { return p.condition("SettingsUpToDate") == "True PublicationInUse" })
	})
	t.Run("a part is missing", func(t *testing.T) {
		p.TB = t
		// As if the pointer had arrived before the parts.
		p.overlay("late")
		next, err := seedpublication.New(p.content(), "main@4")
		require.NoError(t, err)
		next.PublishedAt = time.Now()
		pointer := next.Pointer(p.name)
		_, err = p.resourceClient("ConfigMap", pointer.GetNamespace()).Apply(p.ctx, pointer.GetName(), pointer, metav1.ApplyOptions{FieldManager: "test", Force: true})
		require.NoError(t, err)
		kept(t, "PublicationIncomplete")
		for _, part := range next.Parts(p.name) {
			_, err := p.resourceClient("Secret", part.GetNamespace()).Create(p.ctx, part, metav1.CreateOptions{})
			require.NoError(t, err)
		}
		p.eventually("it goes on once the part is there", func() bool { return p.configMapValue("garden", "a-"+p.name, "overlaid") == "late" })
		p.overlay("first")
		_, err = p.publisher.Apply(p.ctx, p.virtualCluster, p.content(), p.name, "main@5")
		if err != nil {
			require.Equal(t, apply.ReasonConflict, apply.ReasonOf(err), "%v", err)
		}
	})
	t.Run("the pointer is no pointer", func(t *testing.T) {
		p.TB = t
		p.patch("ConfigMap", seedpublication.SeedNamespace(p.name), seedpublication.PointerName, `{"data":{"digest":"nonsense"}}`)
		p.eventually("that is told", func() bool { return p.condition("SettingsUpToDate") == "False PublicationInvalid" })
		require.NoError(t, p.resourceClient("ConfigMap", seedpublication.SeedNamespace(p.name)).Delete(p.ctx, seedpublication.PointerName, metav1.DeleteOptions{}))
		p.eventually("that, too", func() bool { return p.condition("SettingsUpToDate") == "False PublicationMissing" })
		assert.NotEmpty(t, p.configMapValue("garden", "a-"+p.name, "overlaid"))
		assert.NoError(t, g.checkSettings(), "it still works with the former ones")
	})
}

// TestSecondGardenletWaits: the second gardenlet of a seed waits, and takes over when the first
// ends.
func TestSecondGardenletWaits(t *testing.T) {
	p := newTestSeed(t)
	p.overlay("first")
	p.publish("main@1")
	first := p.runGardenlet()
	p.eventually("the first works", func() bool { return p.lastOperation("Seed", "", p.name, "state") == "Succeeded" })
	second := p.runGardenlet()
	p.eventually("the second waits", func() bool { return strings.Contains(p.logs.String(), "which another gardenlet holds") })
	for _, q := range second.Ready() {
		assert.NoError(t, q.Run(), "it is there to take over")
	}
	for _, r := range p.virtualConnection.requestsSince(0) {
		t.Errorf("it asks the virtual garden for nothing: %s", r)
	}
	require.NoError(t, first.stop())
	p.overlay("second")
	p.publish("main@2")
	p.eventually("the second works", func() bool { return p.configMapValue("garden", "a-"+p.name, "overlaid") == "second" })
}

// TestVirtualGardenUnreachable: the seed is maintained while the virtual garden is unreachable.
func TestVirtualGardenUnreachable(t *testing.T) {
	p := newTestSeed(t)
	p.createShoot("one")
	p.publish("main@1")
	g := p.runGardenlet()
	p.eventually("the Shoot is converged", func() bool { return p.lastOperation("Shoot", "garden-"+p.project, "one", "state") == "Succeeded" })
	p.eventually("it is heard", func() bool { return g.checkHeartbeat() == nil })
	p.virtualConnection.setCut(true)
	p.eventually("it says since when", func() bool {
		err := g.checkHeartbeat()
		return err != nil && strings.Contains(err.Error(), "since ")
	})
	assert.Contains(t, p.logs.String(), "maintains the seed with the last known objects")
	require.NoError(t, p.configMaps(p.controlPlane("one")).Delete(p.ctx, "c", metav1.DeleteOptions{}))
	p.eventually("drift is repaired", func() bool { return p.seedConfigMap(p.controlPlane("one"), "c") != nil })
	p.createShoot("two")
	p.virtualConnection.setCut(false)
	p.eventually("what came meanwhile is done", func() bool { return p.lastOperation("Shoot", "garden-"+p.project, "two", "state") == "Succeeded" })
	p.eventually("it is heard again", func() bool { return g.checkHeartbeat() == nil })
}

// TestKilledProcessIsReplaced: the next process finishes the work of a killed one after its lease
// expires.
func TestKilledProcessIsReplaced(t *testing.T) {
	p := newTestSeed(t)
	p.createShoot("one")
	p.publish("main@1")
	dead := make(chan struct{})
	first := p.runGardenlet(func(o *Options) {
		o.OnObject = func(_, bundle string, _ apply.ObjectResult) {
			if bundle == "a" {
				p.virtualConnection.setCut(true)
				p.seedConnection.setCut(true)
				close(dead)
			}
		}
	})
	select {
	case <-dead:
	case <-p.ctx.Done():
		t.Fatal("it did not begin")
	}
	_ = first.stop()
	assert.Nil(t, p.seedConfigMap(p.controlPlane("one"), "c"))
	assert.NotEqual(t, "Succeeded", p.lastOperation("Seed", "", p.name, "state"))
	p.runGardenlet()
	p.eventually("the next one ends it", func() bool { return p.lastOperation("Shoot", "garden-"+p.project, "one", "state") == "Succeeded" })
	assert.Equal(t, "1", p.configMapValue("garden", "b-"+p.name, "x"))
}

// TestLostLease: a gardenlet that loses the lease ends at once, since another may be active.
func TestLostLease(t *testing.T) {
	p := newTestSeed(t)
	p.publish("main@1")
	g := p.runGardenlet()
	p.eventually("it works", func() bool { return p.lastOperation("Seed", "", p.name, "state") == "Succeeded" })
	_, err := p.seed.Resource(leases()).Namespace("garden").Patch(p.ctx, "gardenlet-leader-election", types.MergePatchType,
		[]byte(`{"spec":{"holderIdentity":"somebody-else","renewTime":"`+time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")+`"}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	p.eventually("it ends by itself", func() bool { return g.hasEnded() })
	require.ErrorContains(t, g.stop(), "somebody-else")
	_, err = p.seed.Resource(leases()).Namespace("garden").Patch(p.ctx, "gardenlet-leader-election", types.MergePatchType, []byte(`{"spec":{"holderIdentity":""}}`), metav1.PatchOptions{})
	require.NoError(t, err)
}

// TestAPIWithoutShootFieldSelector: if the API cannot select Shoots by seed, Shoots of other seeds
// are dropped.
func TestAPIWithoutShootFieldSelector(t *testing.T) {
	p := newTestSeed(t)
	p.create(strings.NewReplacer("NAME", "other", "seedName: SEED", "seedName: nowhere").Replace(shootText))
	p.createShoot("one")
	p.publish("main@1")
	p.prepare = func(g *Gardenlet) { g.objects.watchedKind(kindShoot).fields = "spec.region=local" }
	g := p.runGardenlet()
	p.eventually("the Shoot is converged", func() bool { return p.lastOperation("Shoot", "garden-"+p.project, "one", "state") == "Succeeded" })
	assert.Nil(t, g.site("shoot garden-"+p.project+"/other"))
	assert.Nil(t, g.objects.get(kindShoot, "garden-"+p.project, "other"))
	p.patch("Shoot", "garden-"+p.project, "other", `{"spec":{"seedName":"`+p.name+`"}}`)
	p.eventually("it is ours now", func() bool { return p.lastOperation("Shoot", "garden-"+p.project, "other", "state") == "Succeeded" })
	p.patch("Shoot", "garden-"+p.project, "other", `{"spec":{"seedName":"nowhere"}}`)
	p.eventually("and not any more", func() bool { return g.site("shoot garden-"+p.project+"/other") == nil })
	assert.NotNil(t, p.seedConfigMap(p.controlPlane("other"), "c"), "what it has here stays")
}
