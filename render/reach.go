package render

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"runtime"
	"slices"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/internal/panics"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/schemas/mutation"
)

// Reach is what a change of a landscape can reach: the owners that are rendered from something else
// after it, or are on one side only.
type Reach struct {
	Old, New Side
	// Same are the owners that are rendered from the same on both sides, Shoots among them that
	// wait for their Seed.
	Same []Owner
	// Left are Shoots that were not compared, because others were in their place (Sample); Sampled
	// are these.
	Left, Sampled []Owner

	// cores that render.
	cores int
}

// Side is one state of a landscape: the owners that a change can reach, as they are in it.
type Side struct {
	Inputs  []Input
	Options Options
	// Alike are Shoots that are declared in another way on the other side, and render the same all
	// the same.
	Alike []Input
	// Partial says that what cannot be rendered is left out.
	Partial bool

	name    string
	builder *ownerBuilder
	facts   map[string]Facts
	byOwner map[string]Input
	shoots  map[string]*landscapes.Declaration
}

// State is one of the landscapes that are compared; nil is none.
type State struct {
	Landscape *landscapes.Landscape
	// Name stands before errors; empty for none.
	Name string
	// Partial is for one that is not valid: it is compared as far as it renders. The others have
	// passed CheckLandscape.
	Partial bool
}

// Reached compares what two states of a landscape are rendered from. Only what differs is read: of
// a Shoot whose declaration and whose surroundings are the same nothing at all.
func Reached(catalogue fs.FS, before, after State, settings ...Setting) (Reach, error) {
	var old, new *Side
	var oldErr, newErr error
	var group panics.Group
	group.Go(func() error { old, oldErr = newSide(catalogue, before, settingsOf(settings)); return nil })
	new, newErr = newSide(catalogue, after, settingsOf(settings))
	_ = group.Wait() // the errors are told in their order
	if oldErr != nil {
		return Reach{}, old.named(oldErr)
	}
	if newErr != nil {
		return Reach{}, new.named(newErr)
	}
	c := reaching{old: old, new: new, options: map[string][2]InputDigest{}, sample: sample{most: settingsOf(settings).sample}, sparing: settingsOf(settings).sparing}
	for _, kind := range ownerKinds {
		of, err := old.Options.digest(kind)
		if err != nil {
			return Reach{}, old.named(err)
		}
		after, err := new.Options.digest(kind)
		if err != nil {
			return Reach{}, new.named(err)
		}
		c.options[kind] = [2]InputDigest{of, after}
	}
	for i := range old.Inputs {
		// that one is gone is no reason not to show what takes its place
		old.Inputs[i].ChartsMatter = false
	}
	c.gardensAndSeeds()
	if err := c.shoots(); err != nil {
		return Reach{}, err
	}
	cores := runtime.GOMAXPROCS(0)
	if c.sparing {
		cores = 1
		if err := c.narrow(catalogue); err != nil {
			return Reach{}, err
		}
	}
	return Reach{Old: *old, New: *new, Same: c.same, Left: c.left, Sampled: c.sampled, cores: cores}, nil
}

// newSide builds the Garden and the Seeds, and finds the Shoots.
func newSide(catalogue fs.FS, state State, settings settings) (*Side, error) {
	s := &Side{name: state.Name, Partial: state.Partial, Options: Options{Catalogue: catalogue}, byOwner: map[string]Input{}, shoots: map[string]*landscapes.Declaration{}}
	l := state.Landscape
	if l == nil {
		return s, nil
	}
	s.Options = landscapeOptions(catalogue, l)
	if s.Partial {
		s.Options.Overlays = slices.DeleteFunc(s.Options.Overlays, func(o Overlay) bool {
			_, err := o.read()
			return err != nil
		})
	}
	var err error
	if s.facts, err = RecordedFacts(l); err != nil && !s.Partial {
		return s, err
	}
	s.builder = newOwnerBuilder(l, settings)
	inputs, err := s.builder.gardenAndSeeds()
	if err != nil && !s.Partial {
		return s, err
	}
	for _, in := range inputs {
		in.Facts = s.facts[in.Owner.String()]
		s.byOwner[in.Owner.String()] = in
		s.Inputs = append(s.Inputs, in)
	}
	kind := gardencorev1beta1.SchemeGroupVersion.WithKind("Shoot")
	for i := range l.Declarations {
		if d := &l.Declarations[i]; d.GroupVersionKind() == kind {
			s.shoots[shootOwner(d).String()] = d
		}
	}
	return s, nil
}

// named says which side an error is about.
func (s *Side) named(err error) error {
	if err == nil || s.name == "" {
		return err
	}
	return fmt.Errorf("%s: %w", s.name, err)
}

func shootOwner(d *landscapes.Declaration) Owner {
	return Owner{Kind: "shoot", Namespace: d.Namespace(), Name: d.Name()}
}

// reaching compares two sides.
type reaching struct {
	old, new *Side
	// options are those of owners of a kind, on both sides.
	options map[string][2]InputDigest
	sample  sample
	sparing bool
	same    []Owner
	// left and sampled are those of the sample.
	left, sampled []Owner
}

// isSame tells whether two inputs render alike.
func (c *reaching) isSame(old, new Input) bool {
	options := c.options[new.Owner.Kind]
	return digestInput(old, options[0]) == digestInput(new, options[1])
}

func (c *reaching) gardensAndSeeds() {
	same := map[string]bool{}
	for _, in := range c.new.Inputs {
		if old, ok := c.old.byOwner[in.Owner.String()]; ok && c.isSame(old, in) {
			same[in.Owner.String()] = true
			c.same = append(c.same, in.Owner)
		}
	}
	for _, s := range []*Side{c.old, c.new} {
		s.Inputs = slices.DeleteFunc(s.Inputs, func(in Input) bool { return same[in.Owner.String()] })
	}
}

func (c *reaching) shoots() error {
	sameAround := c.old.builder != nil && c.new.builder != nil && c.options["shoot"][0] == c.options["shoot"][1] &&
		c.old.builder.aroundShoots() == c.new.builder.aroundShoots()
	referring := map[string]bool{}
	if sameAround {
		referring = changedNamespaces(c.old.builder.referred, c.new.builder.referred)
	}
	seen := map[string]bool{}
	var problems []error
	for _, d := range slices.Concat(c.old.shootsInOrder(), c.new.shootsInOrder()) {
		name := shootOwner(d).String()
		if seen[name] {
			continue
		}
		seen[name] = true
		before, after := c.old.shoots[name], c.new.shoots[name]
		if sameAround && !referring[d.Namespace()] && before != nil && after != nil && before.Same(after) && reflect.DeepEqual(c.old.facts[name], c.new.facts[name]) {
			c.same = append(c.same, shootOwner(d))
			continue
		}
		if before != nil && after != nil && before.Same(after) && isBound(after) {
			if !c.sample.takes(after) {
				c.left = append(c.left, shootOwner(d))
				continue
			}
			c.sampled = append(c.sampled, shootOwner(d))
		}
		old, was, oldErr := c.old.shoot(before, nil)
		new, _, newErr := c.new.shoot(after, was)
		if err := errors.Join(c.old.named(oldErr), c.new.named(newErr)); err != nil {
			problems = append(problems, err)
			continue
		}
		if old != nil && new != nil && c.isSame(*old, *new) {
			c.same = append(c.same, new.Owner)
			if !before.Same(after) {
				c.old.Alike, c.new.Alike = append(c.old.Alike, *old), append(c.new.Alike, *new)
			}
			continue
		}
		c.old.take(old)
		c.new.take(new)
	}
	return errors.Join(problems...)
}

func (s *Side) shootsInOrder() []*landscapes.Declaration {
	out := make([]*landscapes.Declaration, 0, len(s.shoots))
	for _, name := range sortedKeys(s.shoots) {
		out = append(out, s.shoots[name])
	}
	return out
}

// shoot builds the input of a Shoot, nil if there is none, or it is not bound, and gives the Shoot
// with what is filled in. What it leaves open is as in the other one, from before.
func (s *Side) shoot(d *landscapes.Declaration, before *gardencorev1beta1.Shoot) (*Input, *gardencorev1beta1.Shoot, error) {
	if d == nil {
		return nil, nil, nil
	}
	typed, err := landscapes.ShootOf(d)
	var in Input
	bound := false
	if err == nil {
		in, bound, err = s.builder.shoot(typed, before)
	}
	if err != nil && s.Partial {
		return nil, nil, nil
	}
	if err != nil || !bound {
		return nil, typed.Object, err
	}
	in.Facts = s.facts[in.Owner.String()]
	return &in, typed.Object, nil
}

func (s *Side) take(in *Input) {
	if in != nil {
		s.Inputs = append(s.Inputs, *in)
	}
}

// Render renders the owners that a change reaches, before and after it. Objects and bundles that
// several of them have are errors, but what an owner has that is not reached is not known. What is
// wrong with the state before keeps nobody from comparing with what of it renders, so that its
// repair can be reviewed: it is given apart. A secret that a cluster generates, and that the change
// asks for in another way, has another symbolic name after it.
func (r Reach) Render() (before, after []Bundle, wrongBefore, err error) {
	old, new := newPending(r.Old.Inputs, r.Old.Options), newPending(r.New.Inputs, r.New.Options)
	runTasksOn(r.cores, r.New.Options.Catalogue, slices.Concat(old.tasks, new.tasks), nil)
	was, oldProblems := old.collect()
	is, newProblems := new.collect()
	r.renew(was, is)
	var group panics.Group
	var oldErr, newErr error
	group.Go(func() error { before, oldErr = r.Old.bundles(was, oldProblems); return nil })
	group.Go(func() error { after, newErr = r.New.bundles(is, newProblems); return nil })
	_ = group.Wait() // both errors are told
	return before, after, oldErr, r.New.named(newErr)
}

// renew marks the secrets that the new side requests in another way.
func (r Reach) renew(old, new []Result) {
	was := map[string]map[string]json.RawMessage{}
	for i, in := range r.Old.Inputs {
		if requests, err := old[i].Secrets(); err == nil { // the error is that of the side
			was[in.Owner.String()] = requests
		}
	}
	for i, in := range r.New.Inputs {
		if requests, err := new[i].Secrets(); err == nil {
			markRenewed(new[i].Bundles, in.Facts, renewed(was[in.Owner.String()], requests))
		}
	}
}

// bundles are those of a side that was rendered.
func (s *Side) bundles(results []Result, problems []error) ([]Bundle, error) {
	if !s.Partial {
		return checked(s.Inputs, results, problems, s.Options.Catalogue, s.ClusterOf())
	}
	var bundles []Bundle
	for _, result := range results {
		bundles = append(bundles, result.Bundles...)
	}
	return bundles, nil
}

// ClusterOf names the cluster a bundle of the side goes to.
func (s *Side) ClusterOf() func(Bundle) string {
	seeds := map[string]string{}
	for _, in := range s.Inputs {
		if spec, ok := in.Objects["shoot"]["spec"].(map[string]any); ok {
			if seed, ok := spec["seedName"].(string); ok {
				seeds[in.Owner.Namespace+"/"+in.Owner.Name] = seed
			}
		}
	}
	return ClusterOf(seeds)
}

// checked gives the bundles of all owners, and what is wrong with what they are together.
func checked(inputs []Input, results []Result, problems []error, catalogue fs.FS, clusterOf func(Bundle) string) ([]Bundle, error) {
	var bundles []Bundle
	for i, result := range results {
		bundles = append(bundles, result.Bundles...)
		if _, err := result.Secrets(); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", inputs[i].Owner, err))
		}
	}
	problems = append(problems, duplicatesBetween(bundles, clusterOf, false)...)
	problems = append(problems, duplicatePlaces(bundles, clusterOf)...)
	problems = append(problems, checkFlows(catalogue, inputs, bundles)...)
	return bundles, errors.Join(problems...)
}

// newOwnerBuilder looks at what stands around the owners of a landscape.
func newOwnerBuilder(l *landscapes.Landscape, settings settings) *ownerBuilder {
	around := aroundShoots(l)
	return &ownerBuilder{
		landscape: l, mutations: mutation.New(aroundAll(l), settings.now), around: around, shootMutations: mutation.New(around, settings.now),
		referred: referredIn(l), gardenAPI: cmp.Or(l.Config.Spec.GardenAPI, landscapev1alpha1.GardenAPICRD), gates: l.Config.Spec.FeatureGates, charts: settings.charts,
	}
}

// aroundShoots is the digest of all that Shoots are rendered from besides their own declaration,
// options and facts.
func (b *ownerBuilder) aroundShoots() InputDigest {
	d := newDigester()
	d.add([len(InputDigest{})]byte(b.around.digest()), b.garden, b.seeds, b.projects, b.projectOf, b.gardenAPI, b.gates)
	return d.sum()
}
