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

// TestPublications: an unusable publication is reported, and the previous one stays in use.
func TestPublications(t *testing.T) {
	p := newPlace(t)
	g := p.run()
	p.eventually("it says that it waits", func() bool { return p.condition("SettingsUpToDate") == "False PublicationMissing" })
	assert.Nil(t, p.onSeed("garden", "a-"+p.name), "overlays are not known yet, so nothing is applied")
	assert.ErrorIs(t, g.settingsKnown(), errNoPublication)
	p.overlay("first")
	p.publish("main@1")
	p.eventually("it begins", func() bool { return p.data("garden", "a-"+p.name, "overlaid") == "first" })
	p.eventually("it says so", func() bool { return p.condition("SettingsUpToDate") == "True PublicationInUse" })
	kept := func(t *testing.T, reason string) {
		t.Helper()
		p.TB = t
		p.eventually(reason, func() bool { return p.condition("SettingsUpToDate") == "False "+reason })
		p.eventually("an Event says so, too", func() bool {
			list, err := p.of("Event", "default").List(p.ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=" + p.name + ",reason=" + reason})
			return err == nil && len(list.Items) > 0
		})
		assert.Equal(t, "first", p.data("garden", "a-"+p.name, "overlaid"))
		// Drift is repaired to the previous settings.
		_, err := p.configMaps("garden").Patch(p.ctx, "a-"+p.name, types.MergePatchType, []byte(`{"data":{"overlaid":"by hand"}}`), metav1.PatchOptions{FieldManager: "kubectl-edit"})
		require.NoError(t, err)
		p.eventually("the former settings are kept", func() bool { return p.data("garden", "a-"+p.name, "overlaid") == "first" })
	}
	t.Run("for another catalogue", func(t *testing.T) {
		p.TB = t
		p.overlay("other catalogue")
		c := p.content()
		c.Catalogue = "9.9.9"
		_, err := p.publisher.Apply(p.ctx, p.publishing, c, p.name, "main@2")
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
		next.Since = time.Now()
		pointer := next.Pointer(p.name)
		_, err = p.of("ConfigMap", pointer.GetNamespace()).Apply(p.ctx, pointer.GetName(), pointer, metav1.ApplyOptions{FieldManager: "test", Force: true})
		require.NoError(t, err)
		kept(t, "PublicationIncomplete")
		for _, part := range next.Parts(p.name) {
			_, err := p.of("Secret", part.GetNamespace()).Create(p.ctx, part, metav1.CreateOptions{})
			require.NoError(t, err)
		}
		p.eventually("it goes on once the part is there", func() bool { return p.data("garden", "a-"+p.name, "overlaid") == "late" })
		p.overlay("first")
		_, err = p.publisher.Apply(p.ctx, p.publishing, p.content(), p.name, "main@5")
		if err != nil {
			require.Equal(t, apply.Conflict, apply.ReasonOf(err), "%v", err)
		}
	})
	t.Run("the pointer is no pointer", func(t *testing.T) {
		p.TB = t
		p.patch("ConfigMap", seedpublication.Namespace(p.name), seedpublication.PointerName, `{"data":{"digest":"nonsense"}}`)
		p.eventually("that is told", func() bool { return p.condition("SettingsUpToDate") == "False PublicationInvalid" })
		require.NoError(t, p.of("ConfigMap", seedpublication.Namespace(p.name)).Delete(p.ctx, seedpublication.PointerName, metav1.DeleteOptions{}))
		p.eventually("that, too", func() bool { return p.condition("SettingsUpToDate") == "False PublicationMissing" })
		assert.NotEmpty(t, p.data("garden", "a-"+p.name, "overlaid"))
		assert.NoError(t, g.settingsKnown(), "it still works with the former ones")
	})
}

// TestTwo: the second gardenlet of a seed waits, and takes over when the first ends.
func TestTwo(t *testing.T) {
	p := newPlace(t)
	p.overlay("first")
	p.publish("main@1")
	first := p.run()
	p.eventually("the first works", func() bool { return p.operation("Seed", "", p.name, "state") == "Succeeded" })
	second := p.run()
	p.eventually("the second waits", func() bool { return strings.Contains(p.logged.String(), "another gardenlet looks after the seed") })
	for _, q := range second.Ready() {
		assert.NoError(t, q.Ask(), "it is there to take over")
	}
	for _, r := range p.toVirtual.since(0) {
		t.Errorf("it asks the virtual garden for nothing: %s", r)
	}
	require.NoError(t, first.stop())
	p.overlay("second")
	p.publish("main@2")
	p.eventually("the second works", func() bool { return p.data("garden", "a-"+p.name, "overlaid") == "second" })
}

// TestGardenLost: the seed is maintained while the virtual garden is unreachable.
func TestGardenLost(t *testing.T) {
	p := newPlace(t)
	p.shoot("one")
	p.publish("main@1")
	g := p.run()
	p.eventually("the Shoot is converged", func() bool { return p.operation("Shoot", "garden-"+p.project, "one", "state") == "Succeeded" })
	p.eventually("it is heard", func() bool { return g.gardenHears() == nil })
	p.toVirtual.set(true)
	p.eventually("it says since when", func() bool {
		err := g.gardenHears()
		return err != nil && strings.Contains(err.Error(), "since ")
	})
	assert.Contains(t, p.logged.String(), "it is kept with what is known")
	require.NoError(t, p.configMaps(p.controlPlane("one")).Delete(p.ctx, "c", metav1.DeleteOptions{}))
	p.eventually("drift is repaired", func() bool { return p.onSeed(p.controlPlane("one"), "c") != nil })
	p.shoot("two")
	p.toVirtual.set(false)
	p.eventually("what came meanwhile is done", func() bool { return p.operation("Shoot", "garden-"+p.project, "two", "state") == "Succeeded" })
	p.eventually("it is heard again", func() bool { return g.gardenHears() == nil })
}

// TestKilled: the next process finishes the work of a killed one after its lease expires.
func TestKilled(t *testing.T) {
	p := newPlace(t)
	p.shoot("one")
	p.publish("main@1")
	dead := make(chan struct{})
	first := p.run(func(o *Options) {
		o.OnObject = func(_, bundle string, _ apply.ObjectResult) {
			if bundle == "a" {
				p.toVirtual.set(true)
				p.toSeed.set(true)
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
	assert.Nil(t, p.onSeed(p.controlPlane("one"), "c"))
	assert.NotEqual(t, "Succeeded", p.operation("Seed", "", p.name, "state"))
	p.run()
	p.eventually("the next one ends it", func() bool { return p.operation("Shoot", "garden-"+p.project, "one", "state") == "Succeeded" })
	assert.Equal(t, "1", p.data("garden", "b-"+p.name, "x"))
}

// TestLostLease: a gardenlet that loses the lease ends at once, since another may be active.
func TestLostLease(t *testing.T) {
	p := newPlace(t)
	p.publish("main@1")
	g := p.run()
	p.eventually("it works", func() bool { return p.operation("Seed", "", p.name, "state") == "Succeeded" })
	_, err := p.seed.Resource(leases()).Namespace("garden").Patch(p.ctx, "gardenlet-leader-election", types.MergePatchType,
		[]byte(`{"spec":{"holderIdentity":"somebody-else","renewTime":"`+time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")+`"}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	p.eventually("it ends by itself", func() bool { return g.ended() })
	require.ErrorContains(t, g.stop(), "somebody-else")
	_, err = p.seed.Resource(leases()).Namespace("garden").Patch(p.ctx, "gardenlet-leader-election", types.MergePatchType, []byte(`{"spec":{"holderIdentity":""}}`), metav1.PatchOptions{})
	require.NoError(t, err)
}

// TestGardenThatDoesNotSelect: if the API cannot select Shoots by seed, Shoots of other seeds are
// dropped.
func TestGardenThatDoesNotSelect(t *testing.T) {
	p := newPlace(t)
	p.create(strings.NewReplacer("NAME", "other", "seedName: SEED", "seedName: nowhere").Replace(shootText))
	p.shoot("one")
	p.publish("main@1")
	p.prepare = func(g *Gardenlet) { g.objects.of(kindShoot).fields = "spec.region=local" }
	g := p.run()
	p.eventually("the Shoot is converged", func() bool { return p.operation("Shoot", "garden-"+p.project, "one", "state") == "Succeeded" })
	assert.Nil(t, g.site("shoot garden-"+p.project+"/other"))
	assert.Nil(t, g.objects.get(kindShoot, "garden-"+p.project, "other"))
	p.patch("Shoot", "garden-"+p.project, "other", `{"spec":{"seedName":"`+p.name+`"}}`)
	p.eventually("it is ours now", func() bool { return p.operation("Shoot", "garden-"+p.project, "other", "state") == "Succeeded" })
	p.patch("Shoot", "garden-"+p.project, "other", `{"spec":{"seedName":"nowhere"}}`)
	p.eventually("and not any more", func() bool { return g.site("shoot garden-"+p.project+"/other") == nil })
	assert.NotNil(t, p.onSeed(p.controlPlane("other"), "c"), "what it has here stays")
}
