// SPDX-License-Identifier: Apache-2.0

package gardenlet

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/permit"
	"github.com/pergola-dev/pergola/controllers/seedpublication"
	"github.com/pergola-dev/pergola/hack/smallcatalogue"
)

// addAwakeComponent adds a component to the catalogue that only awake Shoots have.
func (p *testSeed) addAwakeComponent() {
	catalogue := catalogueFiles()
	flow := smallcatalogue.Flow("shoot", `c: apply: ["c"], d: {apply: ["d"], if: !shoot.spec.hibernation.enabled}`, `all: remove: ["c", "d"]`)
	flow.Data = bytes.Replace(flow.Data, []byte("shoot: _"), []byte("shoot: {spec: {hibernation: {enabled: bool | *false, ...}, ...}, ...}"), 1)
	catalogue["shoot/flow.cue"] = flow
	catalogue["shoot/d/component.cue"] = &fstest.MapFile{Data: []byte("package component\n\ncomponent: {\n\tcondition: \"ControlPlaneHealthy\"\n\tenabled: !_asleep\n\t_asleep: *shoot.spec.hibernation.enabled | false\n\tsecrets: ca: {kind: \"ca\", commonName: \"test\"}\n" +
		"\tbundles: d: {cluster: \"seed\", direct: true, source: cue: [{\n" +
		"\t\tapiVersion: \"v1\"\n\t\tkind: \"ConfigMap\"\n\t\tmetadata: {name: \"d\", namespace: owner.controlPlaneNamespace}\n\t\tdata: {x: \"1\"}\n\t}]}\n}\n")}
	p.catalogue = catalogue
}

// newReviewedTestSeed returns a place that requires reviews, with the optional component for
// Shoots.
func newReviewedTestSeed(t *testing.T) *testSeed {
	t.Helper()
	p := newTestSeed(t)
	p.review = landscapev1alpha1.ReviewRequired
	p.addAwakeComponent()
	return p
}

// declare applies an object as the operator does from Git.
func (p *testSeed) declare(text string) {
	p.Helper()
	o := p.parseObject(text)
	raw, err := json.Marshal(o.Object)
	require.NoError(p, err)
	force := true
	_, err = p.resourceClient(o.GetKind(), o.GetNamespace()).Patch(p.ctx, o.GetName(), types.ApplyPatchType, raw, metav1.PatchOptions{FieldManager: landscape.FieldManager, Force: &force})
	require.NoError(p, err)
}

// publishReview publishes a review that shows which owners lose which objects.
func (p *testSeed) publishReview(id string, lost map[string][]string) {
	p.Helper()
	c := permit.SeedChange{ID: id}
	for object, owners := range lost {
		for _, owner := range owners {
			c.AddLost(object, owner)
		}
	}
	require.NoError(p, p.publisher.PublishReview(p.ctx, p.virtualCluster, c, p.name))
}

func (p *testSeed) isHeldForReview(about, object string) func() bool {
	return func() bool {
		return slices.ContainsFunc(p.eventMessages("DeletionHeld", about), func(m string) bool {
			return strings.Contains(m, object) && strings.Contains(m, "it is not in the reviewed difference") && strings.Contains(m, "pergola approve demo ")
		})
	}
}

// TestUnreviewedDeletionIsHeld: objects that the settings take from a Seed are held until a review
// or an approval, also after a restart.
func TestUnreviewedDeletionIsHeld(t *testing.T) {
	const without = ", components: {seed: {b: {enabled: false}}}"
	p := newTestSeed(t)
	p.review = landscapev1alpha1.ReviewRequired
	b := "b-" + p.name
	ref := change.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "garden", Name: b}
	object := permit.NormalizedObject("", ref)
	there := func() bool { return p.seedConfigMap("garden", b) != nil }
	p.publish("main@1")
	g := p.runGardenlet()
	p.eventually("it is there", there)
	p.eventually("its basis is noted", func() bool { return p.seedConfigMap("garden", recordsConfigMap) != nil })

	p.spec = without
	p.publish("main@2")
	p.eventually("its deletion is held", p.isHeldForReview(p.name, "ConfigMap garden/"+b))
	require.NoError(t, g.stop())
	g = p.runGardenlet()
	p.eventually("another process has converged it", func() bool {
		return p.lastOperation("Seed", "", p.name, "state") == "Succeeded" && len(g.fleet.IDs()) == 1
	})
	assert.True(t, there())
	p.publishReview("1", map[string][]string{object: {"seed another"}})
	r, err := seedpublication.ReadReview(getPublishedConfigMap(t, p, seedpublication.ReviewName))
	require.NoError(t, err)
	assert.False(t, r.HasLoss("seed "+p.name, true, object, 0), "what another Seed loses is not what this one does")
	assert.True(t, r.HasLoss("seed another", true, object, 0))
	p.publishReview("2", map[string][]string{object: {"seed " + p.name}})
	p.eventually("it was to be seen", func() bool { return !there() })

	p.spec = ""
	p.publish("main@3")
	p.eventually("it is there again", there)
	c := permit.SeedChange{ID: "3"}
	c.AddCreated(object, "seed "+p.name)
	require.NoError(t, p.publisher.PublishReview(p.ctx, p.virtualCluster, c, p.name))
	p.spec = without
	p.publish("main@4")
	p.eventually("the former review does not count any more", func() bool {
		r := g.site("seed " + p.name)
		return r != nil && r.isAwaitingReview()
	})
	assert.True(t, there())
	p.approvals = []string{permit.ApprovalID(p.name, ref)}
	p.publish("main@4")
	p.eventually("it passes by an approval", func() bool { return !there() })
	require.NoError(t, g.stop())
}

// TestAPIChangesNeedNoReview: changes through the API need no review; changes in Git do, for all
// Shoots that they affect.
func TestAPIChangesNeedNoReview(t *testing.T) {
	p := newReviewedTestSeed(t)
	p.publish("main@1")
	p.createShoot("made")
	p.declare(strings.ReplaceAll(shootText, "NAME", "declared"))
	namespace := "garden-" + p.project
	there := func(shoot string) func() bool {
		return func() bool { return p.seedConfigMap(p.controlPlane(shoot), "d") != nil }
	}
	gone := func(shoot string) func() bool { return func() bool { return !there(shoot)() } }
	g := p.runGardenlet()
	for _, shoot := range []string{"made", "declared"} {
		p.eventually("it is there", there(shoot))
		p.eventually("its basis is noted", func() bool { return p.configMapValue("garden", recordsConfigMap, "shoot."+shoot+"."+namespace) != "" })
		p.patch("Shoot", namespace, shoot, hibernatePatch)
		p.eventually("whoever hibernates a Shoot needs no review", gone(shoot))
		p.patch("Shoot", namespace, shoot, wakeUpPatch)
		p.eventually("it is there again", there(shoot))
	}

	// Git hibernates the Shoot that it declares. The API server must note a different second than
	// for the first declaration.
	before := p.declaredAt(namespace, "declared")
	p.eventually("Git changes it", func() bool {
		p.declare(strings.ReplaceAll(shootText, "NAME", "declared") + "  hibernation: {enabled: true}\n")
		if p.declaredAt(namespace, "declared") != before {
			return true
		}
		p.declare(strings.ReplaceAll(shootText, "NAME", "declared"))
		return false
	})
	p.eventually("what nobody could see is held", p.isHeldForReview("declared", "/d"))
	assert.True(t, there("declared")())
	object := permit.NormalizedObject(p.controlPlane("declared"), change.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: p.controlPlane("declared"), Name: "d"})
	p.publishReview("1", map[string][]string{object: {"shoot " + namespace + "/declared"}})
	p.eventually("it was to be seen", gone("declared"))

	// Reviews do not show Shoots that Git does not bind: the losses of other Shoots count for them.
	p.declare(strings.Replace(strings.ReplaceAll(shootText, "NAME", "unbound"), "  seedName: SEED\n", "", 1))
	p.patch("Shoot", namespace, "unbound", `{"spec": {"seedName": "`+p.name+`"}}`)
	p.eventually("it is there", there("unbound"))
	o := g.objects.get(kindShoot, namespace, "unbound")
	assert.False(t, isInReviews(o))
	assert.NotEmpty(t, declarationTime(o))
	assert.True(t, isInReviews(g.objects.get(kindShoot, namespace, "declared")))

	// A setting removes the component from all Shoots.
	assert.True(t, there("made")())
	p.publishReview("2", nil)
	r, err := seedpublication.ReadReview(g.objects.get(kindPublicationReview, seedpublication.SeedNamespace(p.name), seedpublication.ReviewName))
	require.NoError(t, err)
	assert.True(t, r.HasLoss("shoot "+namespace+"/made", false, object, 0), "what those in Git were seen to lose")
	p.spec = ", components: {shoot: {c: {enabled: false}}}"
	p.publish("main@2")
	p.eventually("what no review of any Shoot has shown is held", p.isHeldForReview("made", "/c"))
	assert.NotNil(t, p.seedConfigMap(p.controlPlane("made"), "c"))
	c := permit.NormalizedObject(p.controlPlane("declared"), change.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: p.controlPlane("declared"), Name: "c"})
	p.publishReview("3", map[string][]string{c: {"shoot " + namespace + "/declared"}})
	p.eventually("what was seen of a declared Shoot counts for the others", func() bool { return p.seedConfigMap(p.controlPlane("made"), "c") == nil })
	require.NoError(t, g.stop())
}

// addFailingDeployment adds a Deployment to component c of Shoots that becomes ready when ready is
// called.
func (p *testSeed) addFailingDeployment() (ready func()) {
	p.Helper()
	catalogue, ok := p.catalogue.(fstest.MapFS)
	require.True(p, ok)
	const file = "shoot/c/component.cue"
	text := strings.Replace(string(catalogue[file].Data), "}]}\n}\n", `}, {
		apiVersion: "apps/v1"
		kind: "Deployment"
		metadata: {name: "slow", namespace: owner.controlPlaneNamespace}
		spec: {replicas: 1, selector: matchLabels: a: "b", template: {metadata: labels: a: "b", spec: containers: [{name: "x", image: "x"}]}}
	}]}
}
`, 1)
	catalogue[file] = &fstest.MapFile{Data: []byte(text)}
	return func() {
		p.Helper()
		deployments := p.seed.Resource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}).Namespace(p.controlPlane("one"))
		o, err := deployments.Get(p.ctx, "slow", metav1.GetOptions{})
		require.NoError(p, err)
		status := fmt.Sprintf(`{"status": {"observedGeneration": %d, "replicas": 1, "readyReplicas": 1, "updatedReplicas": 1, "availableReplicas": 1, "conditions": [`+
			`{"type": "Available", "status": "True"}, {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"}]}}`, o.GetGeneration())
		_, err = deployments.Patch(p.ctx, "slow", types.MergePatchType, []byte(status), metav1.PatchOptions{}, "status")
		require.NoError(p, err)
	}
}

// setExtraObject adds an object of Shoot one by an overlay, or removes it.
func (p *testSeed) setExtraObject(there bool) {
	p.overlays = map[string]string{}
	if there {
		p.overlays["components/shoot/c/kustomization.yaml"] = "resources: [e.yaml]\n"
		p.overlays["components/shoot/c/e.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra, namespace: " + p.controlPlane("one") + "}\n"
	}
}

// hasConfigMap reports whether Shoot one has a ConfigMap on the seed.
func (p *testSeed) hasConfigMap(name string) func() bool {
	return func() bool { return p.seedConfigMap(p.controlPlane("one"), name) != nil }
}

func (p *testSeed) hasNoConfigMap(name string) func() bool {
	return func() bool { return !p.hasConfigMap(name)() }
}

// hasRecord reports whether Shoot one has a record with a basis and these held objects.
func (p *testSeed) hasRecord(held ...string) func() bool {
	return func() bool {
		var r permit.ConvergenceRecord
		_ = json.Unmarshal([]byte(p.configMapValue("garden", recordsConfigMap, "shoot.one.garden-"+p.project)), &r)
		return r.GitDigest != "" && slices.Equal(r.HeldUnreviewed, held)
	}
}

// objectOfOne returns the name of a ConfigMap of Shoot one in a review.
func (p *testSeed) objectOfOne(name string) string {
	return permit.NormalizedObject(p.controlPlane("one"), change.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: p.controlPlane("one"), Name: name})
}

const hibernatePatch, wakeUpPatch = `{"spec": {"hibernation": {"enabled": true}}}`, `{"spec": {"hibernation": {"enabled": false}}}`

// TestAReviewCountsOnce: a review does not allow a second deletion of an object that was created
// again.
func TestAReviewCountsOnce(t *testing.T) {
	p := newReviewedTestSeed(t)
	p.setExtraObject(true)
	p.publish("main@1")
	p.createShoot("one")
	namespace := "garden-" + p.project
	g := p.runGardenlet()
	p.eventually("it is there", func() bool { return p.hasConfigMap("extra")() && p.hasRecord()() })

	p.publishReview("1", map[string][]string{p.objectOfOne("extra"): {"shoot " + namespace + "/another"}, p.objectOfOne("d"): {"shoot " + namespace + "/another"}})
	p.setExtraObject(false)
	p.publish("main@2")
	p.eventually("it was to be seen", p.hasNoConfigMap("extra"))
	require.NoError(t, p.publisher.CompleteReview(p.ctx, p.virtualCluster, p.name))
	p.eventually("all of it is done", func() bool { r, err := g.readReview(); return err == nil && r.CompleteNumber > 0 })
	p.patch("Shoot", namespace, "one", hibernatePatch)
	p.eventually("somebody hibernates it", p.hasNoConfigMap("d"))
	p.patch("Shoot", namespace, "one", wakeUpPatch)
	p.eventually("and wakes it", func() bool {
		text := p.configMapValue("garden", recordsConfigMap, "shoot.one."+namespace)
		return p.hasConfigMap("d")() && p.hasRecord()() && strings.Contains(text, `"done":`)
	})
	p.spec = ", components: {shoot: {d: {enabled: false}}}"
	p.publish("main@3")
	p.eventually("a review of long ago says nothing", p.isHeldForReview("one", "/d"))
	assert.True(t, p.hasConfigMap("d")())
	require.NoError(t, g.stop())
}

// TestReviewSwitchedOff: no review shows objects that were added while none was required.
func TestReviewSwitchedOff(t *testing.T) {
	p := newReviewedTestSeed(t)
	p.publish("main@1")
	p.createShoot("one")
	g := p.runGardenlet()
	p.eventually("it is converged", p.hasRecord())
	p.review = ""
	p.setExtraObject(true)
	p.publish("main@2")
	p.eventually("it is there", func() bool { return p.hasConfigMap("extra")() && !p.hasRecord()() })
	p.review = landscapev1alpha1.ReviewRequired
	p.setExtraObject(false)
	p.publish("main@3")
	p.eventually("the settings are those of the beginning, and what came meanwhile is held", p.isHeldForReview("one", "/extra"))
	assert.True(t, p.hasConfigMap("extra")())
	require.NoError(t, g.stop())
}

// TestHoldDoesNotBlockAPIChanges: a hold does not block changes of its owner through the API. It
// ends with a review even if nothing else changes.
func TestHoldDoesNotBlockAPIChanges(t *testing.T) {
	p := newReviewedTestSeed(t)
	p.setExtraObject(true)
	p.publish("main@1")
	p.createShoot("one")
	namespace := "garden-" + p.project
	g := p.runGardenlet()
	p.eventually("it is there", func() bool { return p.hasConfigMap("extra")() && p.hasRecord()() })
	p.setExtraObject(false)
	p.publish("main@2")
	held := "ConfigMap " + p.controlPlane("one") + "/extra"
	p.eventually("it is held", func() bool { return p.isHeldForReview("one", "/extra")() && p.hasRecord(held)() })
	p.patch("Shoot", namespace, "one", hibernatePatch)
	p.eventually("somebody hibernates it", p.hasNoConfigMap("d"))
	require.NoError(t, g.stop())
	g = p.runGardenlet()
	p.patch("Shoot", namespace, "one", wakeUpPatch)
	p.eventually("and wakes it", func() bool { return p.hasConfigMap("d")() && p.hasRecord(held)() })
	assert.True(t, p.hasConfigMap("extra")(), "held all the time")
	p.publishReview("1", map[string][]string{p.objectOfOne("extra"): {"shoot " + namespace + "/another"}})
	p.eventually("until a review shows it", func() bool { return p.hasNoConfigMap("extra")() && p.hasRecord()() })
	require.NoError(t, g.stop())
}

// TestReviewDuringReconciliation: a review that arrives while an owner waits for its health takes
// effect. An owner that was never reconciled may be hibernated. An approval is used even if the
// reconciliation fails.
func TestReviewDuringReconciliation(t *testing.T) {
	p := newReviewedTestSeed(t)
	ready := p.addFailingDeployment()
	p.setExtraObject(true)
	p.publish("main@1")
	p.createShoot("one")
	namespace := "garden-" + p.project
	short := func(o *Options) { o.Timing.StepTimeout = 2 * time.Second }
	g := p.runGardenlet(short)
	p.eventually("it fails", func() bool {
		return p.lastOperation("Shoot", namespace, "one", "state") == "Error" && p.hasConfigMap("extra")()
	})
	p.setExtraObject(false)
	p.publish("main@2")
	p.eventually("it is held", p.isHeldForReview("one", "/extra"))
	id := permit.ApprovalID(p.name, change.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: p.controlPlane("one"), Name: "extra"})
	p.approvals = []string{id}
	p.publish("main@2")
	p.eventually("it passes by an approval", p.hasNoConfigMap("extra"))
	p.eventually("which is spent, though the Shoot is not healthy", func() bool { return p.usedApprovals() == id })
	p.setExtraObject(true)
	p.publish("main@3")
	p.eventually("it is made anew", p.hasConfigMap("extra"))
	require.NoError(t, g.stop())

	// This run has enough time.
	g = p.runGardenlet()
	p.setExtraObject(false)
	p.publish("main@4")
	p.eventually("it is asked for", func() bool {
		return strings.Contains(p.logs.String(), "revision=main@4") && p.lastOperation("Shoot", namespace, "one", "state") == "Processing"
	})
	p.publishReview("1", map[string][]string{p.objectOfOne("extra"): {"shoot " + namespace + "/another"}})
	ready()
	p.eventually("the review came in time", p.hasNoConfigMap("extra"))
	require.NoError(t, g.stop())
}

// TestHibernationBeforeFirstSuccess: a Shoot made through the API that was never healthy may be
// hibernated.
func TestHibernationBeforeFirstSuccess(t *testing.T) {
	p := newReviewedTestSeed(t)
	ready := p.addFailingDeployment()
	p.publish("main@1")
	p.createShoot("one")
	namespace := "garden-" + p.project
	g := p.runGardenlet(func(o *Options) { o.Timing.StepTimeout = 2 * time.Second })
	p.eventually("it fails", func() bool {
		return p.lastOperation("Shoot", namespace, "one", "state") == "Error" && p.hasConfigMap("d")()
	})
	p.patch("Shoot", namespace, "one", hibernatePatch)
	ready()
	p.eventually("nothing of it came from Git", p.hasNoConfigMap("d"))
	require.NoError(t, g.stop())
}

// TestRecreatedShootNeedsReview: deleting objects of an earlier Shoot of the same name needs a
// review or an approval. The diff that creates the Shoot shows no deletion. Reviews of the earlier
// Shoot do not count.
func TestRecreatedShootNeedsReview(t *testing.T) {
	p := newReviewedTestSeed(t)
	p.publish("main@1")
	namespace := "garden-" + p.project
	text := strings.ReplaceAll(shootText, "NAME", "one")
	p.declare(text)
	p.publishReview("1", map[string][]string{p.objectOfOne("d"): {"shoot " + namespace + "/one"}})
	require.NoError(t, p.publisher.CompleteReview(p.ctx, p.virtualCluster, p.name))
	g := p.runGardenlet()
	p.eventually("it is there", func() bool { return p.hasConfigMap("d")() && p.hasRecord()() })
	require.NoError(t, p.resourceClient("Shoot", namespace).Delete(p.ctx, "one", metav1.DeleteOptions{}))
	p.eventually("it is forgotten", func() bool { return p.configMapValue("garden", recordsConfigMap, "shoot.one."+namespace) == "" })
	assert.True(t, p.hasConfigMap("d")(), "what it had stays")

	p.declare(text + "  hibernation: {enabled: true}\n")
	p.eventually("what the former one has left is held", p.isHeldForReview("one", "/d"))
	p.eventually("the rest is converged", p.hasRecord("ConfigMap "+p.controlPlane("one")+"/d"))
	assert.True(t, p.hasConfigMap("d")())
	require.NoError(t, g.stop())
	g = p.runGardenlet()
	p.approvals = []string{permit.ApprovalID(p.name, change.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: p.controlPlane("one"), Name: "d"})}
	p.publish("main@1")
	p.eventually("it goes by an approval", p.hasNoConfigMap("d"))
	require.NoError(t, g.stop())
}

func getPublishedConfigMap(t *testing.T, p *testSeed, configMap string) *unstructured.Unstructured {
	t.Helper()
	o, err := p.resourceClient("ConfigMap", seedpublication.SeedNamespace(p.name)).Get(p.ctx, configMap, metav1.GetOptions{})
	require.NoError(t, err)
	return o
}

func (p *testSeed) declaredAt(namespace, shoot string) string {
	o, err := p.resourceClient("Shoot", namespace).Get(p.ctx, shoot, metav1.GetOptions{})
	require.NoError(p, err)
	return declarationTime(o)
}
