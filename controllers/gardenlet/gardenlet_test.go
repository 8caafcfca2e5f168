// SPDX-License-Identifier: Apache-2.0

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
	p := newTestSeed(t)
	p.createShoot("one")
	p.overlay("first")
	p.publish("main@1")
	g := p.runGardenlet()
	p.eventually("the Shoot is converged", func() bool {
		return p.lastOperation("Shoot", "garden-"+p.project, "one", "state") == "Succeeded"
	})
	assert.Equal(t, "first", p.configMapValue("garden", "a-"+p.name, "overlaid"))
	assert.Equal(t, "here", p.configMapValue("garden", "a-"+p.name, "region"))
	one, err := p.resourceClient("Shoot", "garden-"+p.project).Get(p.ctx, "one", metav1.GetOptions{})
	require.NoError(t, err)
	for key, want := range map[string]string{"version": "1.34.1", "inProject": p.project, "onSeed": p.name, "fromProfile": "profile", "uid": string(one.GetUID())} {
		assert.Equal(t, want, p.configMapValue(p.controlPlane("one"), "c", key), key)
	}
	technical, _, _ := unstructured.NestedString(one.Object, "status", "technicalID")
	assert.Equal(t, p.controlPlane("one"), technical)
	for name, want := range map[string]string{
		"GardenletReady": "True GardenletReady", "SettingsUpToDate": "True PublicationInUse", "SeedSystemComponentsHealthy": "True SystemComponentsRunning",
	} {
		p.eventually(name, func() bool { return p.condition(name) == want })
	}
	p.eventually("it is ready", func() bool {
		return !slices.ContainsFunc(g.Ready(), func(q serving.Check) bool { return q.Run() != nil })
	})

	for _, step := range []struct {
		name string
		test func(*testing.T, *testSeed, *runningGardenlet)
	}{
		{"no requests while nothing changes", testIdleRequests},
		{"only what an overlay changes is written", testOverlay},
		{"a Shoot made by the API is converged, and no other is touched", testShootCreatedThroughAPI},
		{"a changed Shoot leaves the others alone", testChangeOfOneShoot},
		{"drift is repaired", testDrift},
		{"somebody asks for a reconciliation", testOperations},
		{"a Shoot that is somewhere else is left alone", testShootFromOtherSeed},
		{"a Shoot that cannot be rendered is in nobody's way", testInvalidShoot},
	} {
		if !t.Run(step.name, func(t *testing.T) { p.TB = t; step.test(t, p, g) }) {
			t.Fatalf("the rest is left out\n%s", p.logs)
		}
	}
	p.TB = t
	require.NoError(t, g.stop())
}

// testIdleRequests checks that an idle gardenlet only checks the seed's health and renews leases.
func testIdleRequests(t *testing.T, p *testSeed, _ *runningGardenlet) {
	settled, atVirtual, atSeed := 0, 0, 0
	p.eventually("nothing but heartbeats for 15 of them", func() bool {
		requests, beats := p.virtualConnection.requestsSince(atVirtual), 0
		other := slices.ContainsFunc(requests, func(r string) bool { return !isHeartbeat(r) })
		if other || slices.ContainsFunc(p.seedConnection.requestsSince(atSeed), func(r string) bool { return !isHeartbeat(r) }) {
			settled++
			atVirtual, atSeed = atVirtual+len(requests), atSeed+len(p.seedConnection.requestsSince(atSeed))
			return false
		}
		for range requests {
			beats++
		}
		return beats >= 15
	})
	assert.Less(t, settled, 20, "%v %v", p.virtualConnection.requestsSince(0), p.seedConnection.requestsSince(0))
	// The requests from here on must be heartbeats.
	atVirtual, atSeed = len(p.virtualConnection.requestsSince(0)), len(p.seedConnection.requestsSince(0))
	p.eventually("20 more heartbeats", func() bool { return len(p.virtualConnection.requestsSince(atVirtual)) >= 20 })
	for _, r := range append(p.virtualConnection.requestsSince(atVirtual), p.seedConnection.requestsSince(atSeed)...) {
		assert.True(t, isHeartbeat(r), r)
	}
}

func isHeartbeat(request string) bool {
	return strings.Contains(request, "/leases/") || strings.HasSuffix(request, "GET /healthz")
}

// resourceVersions returns the resource versions of the objects on the seed.
func (p *testSeed) resourceVersions() map[string]string {
	out := map[string]string{}
	for _, name := range []string{"a-" + p.name, "b-" + p.name} {
		out[name] = p.seedConfigMap("garden", name).GetResourceVersion()
	}
	for _, shoot := range []string{"one", "two"} {
		if o := p.seedConfigMap(p.controlPlane(shoot), "c"); o != nil {
			out[shoot] = o.GetResourceVersion()
		}
	}
	return out
}

func testOverlay(t *testing.T, p *testSeed, _ *runningGardenlet) {
	before := p.resourceVersions()
	touched := p.lastOperation("Shoot", "garden-"+p.project, "one", "lastUpdateTime")
	p.overlay("second")
	p.publish("main@2")
	p.eventually("the overlay is in force", func() bool { return p.configMapValue("garden", "a-"+p.name, "overlaid") == "second" })
	p.eventually("that is told", func() bool {
		o, err := p.resourceClient("Seed", "").Get(p.ctx, p.name, metav1.GetOptions{})
		return err == nil && strings.Contains(toText(o), "since main@2")
	})
	after := p.resourceVersions()
	assert.NotEqual(t, before["a-"+p.name], after["a-"+p.name])
	delete(before, "a-"+p.name)
	delete(after, "a-"+p.name)
	assert.Equal(t, before, after)
	assert.Equal(t, touched, p.lastOperation("Shoot", "garden-"+p.project, "one", "lastUpdateTime"), "Shoots are not reconciled for an overlay of the Seed")
}

func toText(o *unstructured.Unstructured) string {
	text, err := o.MarshalJSON()
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func testShootCreatedThroughAPI(t *testing.T, p *testSeed, _ *runningGardenlet) {
	before := p.resourceVersions()
	p.createShoot("two")
	p.eventually("it is converged", func() bool {
		return p.lastOperation("Shoot", "garden-"+p.project, "two", "state") == "Succeeded"
	})
	after := p.resourceVersions()
	assert.NotEmpty(t, after["two"])
	delete(after, "two")
	assert.Equal(t, before, after)
}

func testChangeOfOneShoot(t *testing.T, p *testSeed, _ *runningGardenlet) {
	before := p.resourceVersions()
	one := p.lastOperation("Shoot", "garden-"+p.project, "one", "lastUpdateTime")
	p.patch("Shoot", "garden-"+p.project, "two", `{"spec":{"kubernetes":{"version":"1.33.5"}}}`)
	p.eventually("the change is there", func() bool { return p.configMapValue(p.controlPlane("two"), "c", "version") == "1.33.5" })
	after := p.resourceVersions()
	delete(before, "two")
	delete(after, "two")
	assert.Equal(t, before, after)
	assert.Equal(t, one, p.lastOperation("Shoot", "garden-"+p.project, "one", "lastUpdateTime"))
}

func testDrift(t *testing.T, p *testSeed, _ *runningGardenlet) {
	_, err := p.configMaps("garden").Patch(p.ctx, "b-"+p.name, types.MergePatchType, []byte(`{"data":{"x":"by hand"}}`), metav1.PatchOptions{FieldManager: "kubectl-edit"})
	require.NoError(t, err)
	p.eventually("the field is back", func() bool { return p.configMapValue("garden", "b-"+p.name, "x") == "1" })
	p.eventually("it is told", func() bool {
		return slices.ContainsFunc(p.eventMessages(reasonDriftRepaired, p.name), func(m string) bool { return strings.Contains(m, "was changed: data.x (by kubectl-edit): repaired") })
	})
	require.NoError(t, p.configMaps(p.controlPlane("one")).Delete(p.ctx, "c", metav1.DeleteOptions{}))
	p.eventually("the object is back", func() bool { return p.configMapValue(p.controlPlane("one"), "c", "version") == "1.34.1" })
}

func testOperations(t *testing.T, p *testSeed, _ *runningGardenlet) {
	p.patch("Shoot", "garden-"+p.project, "one", `{"metadata":{"annotations":{"gardener.cloud/operation":"reconcile"}}}`)
	p.eventually("the annotation goes, and the Shoot was reconciled", func() bool {
		o, err := p.resourceClient("Shoot", "garden-"+p.project).Get(p.ctx, "one", metav1.GetOptions{})
		return err == nil && o.GetAnnotations()["gardener.cloud/operation"] == "" &&
			p.lastOperation("Shoot", "garden-"+p.project, "one", "type") == "Reconcile" && p.lastOperation("Shoot", "garden-"+p.project, "one", "state") == "Succeeded"
	})
	p.patch("Shoot", "garden-"+p.project, "one", `{"metadata":{"annotations":{"gardener.cloud/operation":"rotate-credentials-start"}}}`)
	p.eventually("others are seen", func() bool {
		o, err := p.resourceClient("Shoot", "garden-"+p.project).Get(p.ctx, "one", metav1.GetOptions{})
		return err == nil && o.GetAnnotations()["gardener.cloud/operation"] == "rotate-credentials-start"
	})
	p.eventually("that nobody does it is told", func() bool {
		told := p.eventMessages(reasonOperationIgnored, "one")
		return len(told) == 1 && strings.Contains(told[0], `the operation "rotate-credentials-start" of Shoot garden-`+p.project+"/one has not started yet") &&
			strings.Contains(told[0], "to withdraw it, remove its annotation gardener.cloud/operation; this gardenlet supports") && !strings.Contains(told[0], "kubectl")
	})
	p.patch("Shoot", "garden-"+p.project, "one", `{"metadata":{"annotations":{"gardener.cloud/operation":null}}}`)
}

func testShootFromOtherSeed(t *testing.T, p *testSeed, g *runningGardenlet) {
	p.create(strings.NewReplacer("NAME", "moved", "seedName: SEED", "seedName: nowhere").Replace(shootText))
	p.patch("Shoot", "garden-"+p.project, "moved", `{"status":{"seedName":"nowhere","gardener":{"id":"x","name":"x","version":"x"},"hibernated":false,"technicalID":"x","uid":"x"}}`, "status")
	p.patch("Shoot", "garden-"+p.project, "moved", `{"spec":{"seedName":"`+p.name+`"}}`)
	p.eventually("it is told", func() bool {
		return slices.ContainsFunc(p.eventMessages(reasonLeftAlone, "moved"), func(m string) bool { return strings.Contains(m, "its control plane is on seed nowhere") })
	})
	assert.Nil(t, g.site("shoot garden-"+p.project+"/moved"))
	assert.Nil(t, p.seedConfigMap(p.controlPlane("moved"), "c"))
}

func testInvalidShoot(t *testing.T, p *testSeed, _ *runningGardenlet) {
	p.create(strings.NewReplacer("NAME", "broken", "name: profile", "name: nosuch").Replace(shootText))
	p.eventually("it says why", func() bool {
		return strings.Contains(p.lastOperation("Shoot", "garden-"+p.project, "broken", "description"), `no CloudProfile "nosuch"`)
	})
	p.patch("Shoot", "garden-"+p.project, "two", `{"spec":{"kubernetes":{"version":"1.34.1"}}}`)
	p.eventually("others go on", func() bool { return p.configMapValue(p.controlPlane("two"), "c", "version") == "1.34.1" })
}
