package gardenlet

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pergola-dev/pergola/internal/serving"
)

// TestGardenlet covers the whole path from the publication to the objects on the seed, and later
// changes.
func TestGardenlet(t *testing.T) {
	p := newPlace(t)
	p.shoot("one")
	p.overlay("first")
	p.publish("main@1")
	g := p.run()
	p.eventually("the Shoot is converged", func() bool {
		return p.operation("Shoot", "garden-"+p.project, "one", "state") == "Succeeded"
	})
	assert.Equal(t, "first", p.data("garden", "a-"+p.name, "overlaid"))
	assert.Equal(t, "here", p.data("garden", "a-"+p.name, "region"))
	one, err := p.of("Shoot", "garden-"+p.project).Get(p.ctx, "one", metav1.GetOptions{})
	require.NoError(t, err)
	for key, want := range map[string]string{"version": "1.34.1", "inProject": p.project, "onSeed": p.name, "fromProfile": "profile", "uid": string(one.GetUID())} {
		assert.Equal(t, want, p.data(p.controlPlane("one"), "c", key), key)
	}
	technical, _, _ := unstructured.NestedString(one.Object, "status", "technicalID")
	assert.Equal(t, p.controlPlane("one"), technical)
	for name, want := range map[string]string{
		"GardenletReady": "True GardenletReady", "SettingsUpToDate": "True PublicationInUse", "SeedSystemComponentsHealthy": "True SystemComponentsRunning",
	} {
		p.eventually(name, func() bool { return p.condition(name) == want })
	}
	p.eventually("it is ready", func() bool {
		return !slices.ContainsFunc(g.Ready(), func(q serving.Question) bool { return q.Ask() != nil })
	})

	for _, step := range []struct {
		name string
		test func(*testing.T, *place, *running)
	}{
		{"no requests while nothing changes", testQuiet},
		{"only what an overlay changes is written", testOverlay},
		{"a Shoot made by the API is converged, and no other is touched", testByAPI},
		{"a changed Shoot leaves the others alone", testOneShoot},
		{"drift is repaired", testDrift},
		{"somebody asks for a reconciliation", testAsked},
		{"a Shoot that is somewhere else is left alone", testElsewhere},
		{"a Shoot that cannot be rendered is in nobody's way", testBroken},
	} {
		if !t.Run(step.name, func(t *testing.T) { p.TB = t; step.test(t, p, g) }) {
			t.Fatalf("the rest is left out\n%s", p.logged)
		}
	}
	p.TB = t
	require.NoError(t, g.stop())
}

// testQuiet checks that an idle gardenlet only checks the seed's health and renews leases.
func testQuiet(t *testing.T, p *place, _ *running) {
	settled, atVirtual, atSeed := 0, 0, 0
	p.eventually("nothing but heartbeats for 15 of them", func() bool {
		requests, beats := p.toVirtual.since(atVirtual), 0
		other := slices.ContainsFunc(requests, func(r string) bool { return !beat(r) })
		if other || slices.ContainsFunc(p.toSeed.since(atSeed), func(r string) bool { return !beat(r) }) {
			settled++
			atVirtual, atSeed = atVirtual+len(requests), atSeed+len(p.toSeed.since(atSeed))
			return false
		}
		for range requests {
			beats++
		}
		return beats >= 15
	})
	assert.Less(t, settled, 20, "%v %v", p.toVirtual.since(0), p.toSeed.since(0))
	// The requests from here on must be heartbeats.
	atVirtual, atSeed = len(p.toVirtual.since(0)), len(p.toSeed.since(0))
	p.eventually("20 more heartbeats", func() bool { return len(p.toVirtual.since(atVirtual)) >= 20 })
	for _, r := range append(p.toVirtual.since(atVirtual), p.toSeed.since(atSeed)...) {
		assert.True(t, beat(r), r)
	}
}

func beat(request string) bool {
	return strings.Contains(request, "/leases/") || strings.HasSuffix(request, "GET /healthz")
}

// written returns the resource versions of the objects on the seed.
func (p *place) written() map[string]string {
	out := map[string]string{}
	for _, name := range []string{"a-" + p.name, "b-" + p.name} {
		out[name] = p.onSeed("garden", name).GetResourceVersion()
	}
	for _, shoot := range []string{"one", "two"} {
		if o := p.onSeed(p.controlPlane(shoot), "c"); o != nil {
			out[shoot] = o.GetResourceVersion()
		}
	}
	return out
}

func testOverlay(t *testing.T, p *place, _ *running) {
	before := p.written()
	touched := p.operation("Shoot", "garden-"+p.project, "one", "lastUpdateTime")
	p.overlay("second")
	p.publish("main@2")
	p.eventually("the overlay is in force", func() bool { return p.data("garden", "a-"+p.name, "overlaid") == "second" })
	p.eventually("that is told", func() bool {
		o, err := p.of("Seed", "").Get(p.ctx, p.name, metav1.GetOptions{})
		return err == nil && strings.Contains(toText(o), "since main@2")
	})
	after := p.written()
	assert.NotEqual(t, before["a-"+p.name], after["a-"+p.name])
	delete(before, "a-"+p.name)
	delete(after, "a-"+p.name)
	assert.Equal(t, before, after)
	assert.Equal(t, touched, p.operation("Shoot", "garden-"+p.project, "one", "lastUpdateTime"), "Shoots are not reconciled for an overlay of the Seed")
}

func toText(o *unstructured.Unstructured) string {
	text, err := o.MarshalJSON()
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func testByAPI(t *testing.T, p *place, _ *running) {
	before := p.written()
	p.shoot("two")
	p.eventually("it is converged", func() bool {
		return p.operation("Shoot", "garden-"+p.project, "two", "state") == "Succeeded"
	})
	after := p.written()
	assert.NotEmpty(t, after["two"])
	delete(after, "two")
	assert.Equal(t, before, after)
}

func testOneShoot(t *testing.T, p *place, _ *running) {
	before := p.written()
	one := p.operation("Shoot", "garden-"+p.project, "one", "lastUpdateTime")
	p.patch("Shoot", "garden-"+p.project, "two", `{"spec":{"kubernetes":{"version":"1.33.5"}}}`)
	p.eventually("the change is there", func() bool { return p.data(p.controlPlane("two"), "c", "version") == "1.33.5" })
	after := p.written()
	delete(before, "two")
	delete(after, "two")
	assert.Equal(t, before, after)
	assert.Equal(t, one, p.operation("Shoot", "garden-"+p.project, "one", "lastUpdateTime"))
}

func testDrift(t *testing.T, p *place, _ *running) {
	_, err := p.configMaps("garden").Patch(p.ctx, "b-"+p.name, types.MergePatchType, []byte(`{"data":{"x":"by hand"}}`), metav1.PatchOptions{FieldManager: "kubectl-edit"})
	require.NoError(t, err)
	p.eventually("the field is back", func() bool { return p.data("garden", "b-"+p.name, "x") == "1" })
	p.eventually("it is told", func() bool {
		return slices.ContainsFunc(p.events(reasonDriftRepaired, p.name), func(m string) bool { return strings.Contains(m, "was changed: data.x (by kubectl-edit): repaired") })
	})
	require.NoError(t, p.configMaps(p.controlPlane("one")).Delete(p.ctx, "c", metav1.DeleteOptions{}))
	p.eventually("the object is back", func() bool { return p.data(p.controlPlane("one"), "c", "version") == "1.34.1" })
}

func testAsked(t *testing.T, p *place, _ *running) {
	p.patch("Shoot", "garden-"+p.project, "one", `{"metadata":{"annotations":{"gardener.cloud/operation":"reconcile"}}}`)
	p.eventually("the annotation goes, and the Shoot was reconciled", func() bool {
		o, err := p.of("Shoot", "garden-"+p.project).Get(p.ctx, "one", metav1.GetOptions{})
		return err == nil && o.GetAnnotations()["gardener.cloud/operation"] == "" &&
			p.operation("Shoot", "garden-"+p.project, "one", "type") == "Reconcile" && p.operation("Shoot", "garden-"+p.project, "one", "state") == "Succeeded"
	})
	p.patch("Shoot", "garden-"+p.project, "one", `{"metadata":{"annotations":{"gardener.cloud/operation":"rotate-credentials-start"}}}`)
	p.eventually("others are seen", func() bool {
		o, err := p.of("Shoot", "garden-"+p.project).Get(p.ctx, "one", metav1.GetOptions{})
		return err == nil && o.GetAnnotations()["gardener.cloud/operation"] == "rotate-credentials-start"
	})
	p.eventually("that nobody does it is told", func() bool {
		told := p.events(reasonNotTakenUp, "one")
		return len(told) == 1 && strings.Contains(told[0], `the operation "rotate-credentials-start" of Shoot garden-`+p.project+"/one was not taken up yet") &&
			strings.Contains(told[0], "to withdraw it, take its annotation gardener.cloud/operation away; this gardenlet does") && !strings.Contains(told[0], "kubectl")
	})
	p.patch("Shoot", "garden-"+p.project, "one", `{"metadata":{"annotations":{"gardener.cloud/operation":null}}}`)
}

func testElsewhere(t *testing.T, p *place, g *running) {
	p.create(strings.NewReplacer("NAME", "moved", "seedName: SEED", "seedName: nowhere").Replace(shootText))
	p.patch("Shoot", "garden-"+p.project, "moved", `{"status":{"seedName":"nowhere","gardener":{"id":"x","name":"x","version":"x"},"hibernated":false,"technicalID":"x","uid":"x"}}`, "status")
	p.patch("Shoot", "garden-"+p.project, "moved", `{"spec":{"seedName":"`+p.name+`"}}`)
	p.eventually("it is told", func() bool {
		return slices.ContainsFunc(p.events(reasonLeftAlone, "moved"), func(m string) bool { return strings.Contains(m, "its control plane is on seed nowhere") })
	})
	assert.Nil(t, g.site("shoot garden-"+p.project+"/moved"))
	assert.Nil(t, p.onSeed(p.controlPlane("moved"), "c"))
}

func testBroken(t *testing.T, p *place, _ *running) {
	p.create(strings.NewReplacer("NAME", "broken", "name: profile", "name: nosuch").Replace(shootText))
	p.eventually("it says why", func() bool {
		return strings.Contains(p.operation("Shoot", "garden-"+p.project, "broken", "description"), `no CloudProfile "nosuch"`)
	})
	p.patch("Shoot", "garden-"+p.project, "two", `{"spec":{"kubernetes":{"version":"1.34.1"}}}`)
	p.eventually("others go on", func() bool { return p.data(p.controlPlane("two"), "c", "version") == "1.34.1" })
}
