package gardenlet

import (
	"encoding/json"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/seedpublication"
	"github.com/pergola-dev/pergola/plan"
)

// optional adds a component to the catalogue that a Shoot has unless it is hibernated.
func (p *place) optional() {
	catalogue := catalogueFiles()
	for _, name := range []string{"shoot/flow.cue", "shoot/c/component.cue"} {
		text, err := fs.ReadFile(catalogue, name)
		require.NoError(p, err)
		switch name {
		case "shoot/flow.cue":
			text = []byte(strings.ReplaceAll(string(text), `c: bundles: ["c"]`, `c: bundles: ["c"]`+"\n"+`d: {bundles: ["d"], if: !shoot.spec.hibernation.enabled}`))
			text = []byte(strings.Replace(string(text), "shoot: _", "shoot: {spec: {hibernation: {enabled: bool | *false, ...}, ...}, ...}", 1))
			catalogue[name] = &fstest.MapFile{Data: text}
		default:
			text = []byte("package component\n\ncomponent: {\n\tcondition: \"ControlPlaneHealthy\"\n\tenabled: !_asleep\n\t_asleep: *shoot.spec.hibernation.enabled | false\n\tsecrets: ca: {kind: \"ca\", commonName: \"test\"}\n" +
				"\tbundles: d: {cluster: \"seed\", direct: true, source: cue: [{\n" +
				"\t\tapiVersion: \"v1\"\n\t\tkind: \"ConfigMap\"\n\t\tmetadata: {name: \"d\", namespace: owner.controlPlaneNamespace}\n\t\tdata: {x: \"1\"}\n\t}]}\n}\n")
			catalogue["shoot/d/component.cue"] = &fstest.MapFile{Data: text}
		}
	}
	p.catalogue = catalogue
}

// declare applies an object as the operator does from Git.
func (p *place) declare(text string) {
	p.Helper()
	o := p.object(text)
	raw, err := json.Marshal(o.Object)
	require.NoError(p, err)
	force := true
	_, err = p.of(o.GetKind(), o.GetNamespace()).Patch(p.ctx, o.GetName(), types.ApplyPatchType, raw, metav1.PatchOptions{FieldManager: landscape.FieldManager, Force: &force})
	require.NoError(p, err)
}

// seen publishes that a reviewer could see what owners lose.
func (p *place) seen(base string, lost map[string][]string) {
	p.Helper()
	c := seedpublication.Change{Base: base}
	for object, owners := range lost {
		for _, owner := range owners {
			seedpublication.Note(&c.Lost, object, owner)
		}
	}
	require.NoError(p, p.publisher.ApplyReview(p.ctx, p.publishing, c, p.name))
}

func (p *place) unreviewed(about, object string) func() bool {
	return func() bool {
		return slices.ContainsFunc(p.events("DeletionHeld", about), func(m string) bool {
			return strings.Contains(m, object) && strings.Contains(m, plan.NotReviewed) && strings.Contains(m, "pergola approve demo ")
		})
	}
}

// TestNothingGoesUnseen: what a Seed loses by the settings is held until a review has shown it, also with another process, and by an approval.
func TestNothingGoesUnseen(t *testing.T) {
	const without = ", components: {seed: {b: {enabled: false}}}"
	p := newPlace(t)
	p.review = landscapev1alpha1.ReviewRequired
	b := "b-" + p.name
	ref := plan.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "garden", Name: b}
	object := seedpublication.ObjectIn("", ref)
	there := func() bool { return p.onSeed("garden", b) != nil }
	p.publish("main@1")
	g := p.run()
	p.eventually("it is there", there)
	p.eventually("its basis is noted", func() bool { return p.onSeed("garden", basesName) != nil })

	p.spec = without
	p.publish("main@2")
	p.eventually("its deletion is held", p.unreviewed(p.name, "ConfigMap garden/"+b))
	require.NoError(t, g.stop())
	g = p.run()
	p.eventually("another process has converged it", func() bool { return p.operation("Seed", "", p.name, "state") == "Succeeded" && len(g.ids()) == 1 })
	assert.True(t, there())
	p.seen("1", map[string][]string{object: {"seed another"}})
	r, err := seedpublication.ReadReview(mustGet(t, p, seedpublication.ReviewName))
	require.NoError(t, err)
	assert.False(t, r.Has("seed "+p.name, true, object), "what another Seed loses is not what this one does")
	assert.True(t, r.Has("seed another", true, object))
	p.seen("2", map[string][]string{object: {"seed " + p.name}})
	p.eventually("it was to be seen", func() bool { return !there() })

	p.spec = ""
	p.publish("main@3")
	p.eventually("it is there again", there)
	c := seedpublication.Change{Base: "3"}
	seedpublication.Note(&c.Made, object, "seed "+p.name)
	require.NoError(t, p.publisher.ApplyReview(p.ctx, p.publishing, c, p.name))
	p.spec = without
	p.publish("main@4")
	p.eventually("the former review does not count any more", func() bool {
		r := g.site("seed " + p.name)
		return r != nil && r.waitsForReview()
	})
	assert.True(t, there())
	p.approved = []string{plan.ApprovalOf(p.name, ref)}
	p.publish("main@4")
	p.eventually("it passes by an approval", func() bool { return !there() })
	require.NoError(t, g.stop())
}

// TestWhatPeopleDoByTheAPI needs no review of Git; what Git does to the same Shoots does, declared or not.
func TestWhatPeopleDoByTheAPI(t *testing.T) {
	const asleep, awake = `{"spec": {"hibernation": {"enabled": true}}}`, `{"spec": {"hibernation": {"enabled": false}}}`
	p := newPlace(t)
	p.review = landscapev1alpha1.ReviewRequired
	p.optional()
	p.publish("main@1")
	p.shoot("made")
	p.declare(strings.ReplaceAll(shootText, "NAME", "declared"))
	namespace := "garden-" + p.project
	there := func(shoot string) func() bool {
		return func() bool { return p.onSeed(p.controlPlane(shoot), "d") != nil }
	}
	gone := func(shoot string) func() bool { return func() bool { return !there(shoot)() } }
	g := p.run()
	for _, shoot := range []string{"made", "declared"} {
		p.eventually("it is there", there(shoot))
		p.eventually("its basis is noted", func() bool { return p.data("garden", basesName, "shoot."+shoot+"."+namespace) != "" })
		p.patch("Shoot", namespace, shoot, asleep)
		p.eventually("whoever hibernates a Shoot needs no review", gone(shoot))
		p.patch("Shoot", namespace, shoot, awake)
		p.eventually("it is there again", there(shoot))
	}

	// Git hibernates the Shoot that it declares. The second that the API server notes has to be another one than that of the first.
	before := p.declaredAt(namespace, "declared")
	p.eventually("Git changes it", func() bool {
		p.declare(strings.ReplaceAll(shootText, "NAME", "declared") + "  hibernation: {enabled: true}\n")
		if p.declaredAt(namespace, "declared") != before {
			return true
		}
		p.declare(strings.ReplaceAll(shootText, "NAME", "declared"))
		return false
	})
	p.eventually("what nobody could see is held", p.unreviewed("declared", "/d"))
	assert.True(t, there("declared")())
	object := seedpublication.ObjectIn(p.controlPlane("declared"), plan.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: p.controlPlane("declared"), Name: "d"})
	p.seen("1", map[string][]string{object: {"shoot " + namespace + "/declared"}})
	p.eventually("it was to be seen", gone("declared"))

	// Of one that Git does not bind reviews show nothing: what others lose counts for it.
	p.declare(strings.Replace(strings.ReplaceAll(shootText, "NAME", "unbound"), "  seedName: SEED\n", "", 1))
	p.patch("Shoot", namespace, "unbound", `{"spec": {"seedName": "`+p.name+`"}}`)
	p.eventually("it is there", there("unbound"))
	o := g.objects.get(kindShoot, namespace, "unbound")
	assert.False(t, isShown(o))
	assert.NotEmpty(t, declaredAt(o))
	assert.True(t, isShown(g.objects.get(kindShoot, namespace, "declared")))

	// A setting takes the component from all Shoots.
	assert.True(t, there("made")())
	p.seen("2", nil)
	r, err := seedpublication.ReadReview(g.objects.get(kindReview, seedpublication.Namespace(p.name), seedpublication.ReviewName))
	require.NoError(t, err)
	assert.True(t, r.Has("shoot "+namespace+"/made", false, object), "what those in Git were seen to lose")
	p.spec = ", components: {shoot: {c: {enabled: false}}}"
	p.publish("main@2")
	p.eventually("what no review of any Shoot has shown is held", p.unreviewed("made", "/c"))
	assert.NotNil(t, p.onSeed(p.controlPlane("made"), "c"))
	c := seedpublication.ObjectIn(p.controlPlane("declared"), plan.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: p.controlPlane("declared"), Name: "c"})
	p.seen("3", map[string][]string{c: {"shoot " + namespace + "/declared"}})
	p.eventually("what was seen of a declared Shoot counts for the others", func() bool { return p.onSeed(p.controlPlane("made"), "c") == nil })
	require.NoError(t, g.stop())
}

func mustGet(t *testing.T, p *place, configMap string) *unstructured.Unstructured {
	t.Helper()
	o, err := p.of("ConfigMap", seedpublication.Namespace(p.name)).Get(p.ctx, configMap, metav1.GetOptions{})
	require.NoError(t, err)
	return o
}

func (p *place) declaredAt(namespace, shoot string) string {
	o, err := p.of("Shoot", namespace).Get(p.ctx, shoot, metav1.GetOptions{})
	require.NoError(p, err)
	return declaredAt(o)
}
