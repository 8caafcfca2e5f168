// SPDX-License-Identifier: Apache-2.0

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

// Affected is the effect of a change to a landscape: the owners whose inputs differ, or that exist
// on only one side.
type Affected struct {
	Old, New StateInputs
	// Unaffected are the owners with equal inputs on both sides, including Shoots that wait for
	// their Seed.
	Unaffected []Owner
	// Unsampled are Shoots that were not compared because Sampled ones represent them.
	Unsampled, Sampled []Owner

	// cores limits the parallelism of Render.
	cores int
}

// StateInputs is one state of a landscape: the affected owners in it.
type StateInputs struct {
	Inputs  []Input
	Options Options
	// EqualShoots are Shoots whose declaration differs on the other side, but whose inputs are
	// equal.
	EqualShoots []Input
	// IsPartial omits parts that cannot be rendered.
	IsPartial bool

	name    string
	builder *ownerBuilder
	facts   map[string]Facts
	byOwner map[string]Input
	shoots  map[string]*landscapes.Declaration
}

// State is one of the compared landscapes; nil means none.
type State struct {
	Landscape *landscapes.Landscape
	// Name precedes errors; it is empty for none.
	Name string
	// IsPartial is for an invalid landscape: its valid parts are compared. Other landscapes have
	// passed CheckLandscape.
	IsPartial bool
}

// FindAffected compares the inputs of two states of a landscape. It reads only differences, and
// skips Shoots with equal declarations and surroundings.
func FindAffected(catalogue fs.FS, before, after State, settings ...Setting) (Affected, error) {
	var old, new *StateInputs
	var oldErr, newErr error
	var group panics.Group
	group.Go(func() error { old, oldErr = newStateInputs(catalogue, before, settingsOf(settings)); return nil })
	new, newErr = newStateInputs(catalogue, after, settingsOf(settings))
	_ = group.Wait() // the errors are reported in a fixed order
	if oldErr != nil {
		return Affected{}, old.wrapError(oldErr)
	}
	if newErr != nil {
		return Affected{}, new.wrapError(newErr)
	}
	c := ownerComparison{old: old, new: new, options: map[string][2]InputDigest{}, sample: shootSample{limit: settingsOf(settings).maxSampledShoots}, sampling: settingsOf(settings).sampling}
	for _, kind := range ownerKinds {
		of, err := old.Options.digest(kind)
		if err != nil {
			return Affected{}, old.wrapError(err)
		}
		after, err := new.Options.digest(kind)
		if err != nil {
			return Affected{}, new.wrapError(err)
		}
		c.options[kind] = [2]InputDigest{of, after}
	}
	for i := range old.Inputs {
		// a removed chart must not hide its replacement
		old.Inputs[i].ChartsRequired = false
	}
	c.gardensAndSeeds()
	if err := c.shoots(); err != nil {
		return Affected{}, err
	}
	cores := runtime.GOMAXPROCS(0)
	if c.sampling {
		cores = 1
		if err := c.limitComponents(catalogue); err != nil {
			return Affected{}, err
		}
	}
	return Affected{Old: *old, New: *new, Unaffected: c.same, Unsampled: c.unsampled, Sampled: c.sampled, cores: cores}, nil
}

// newStateInputs builds the Garden and the Seeds, and finds the Shoots.
func newStateInputs(catalogue fs.FS, state State, settings settings) (*StateInputs, error) {
	s := &StateInputs{name: state.Name, IsPartial: state.IsPartial, Options: Options{Catalogue: catalogue}, byOwner: map[string]Input{}, shoots: map[string]*landscapes.Declaration{}}
	l := state.Landscape
	if l == nil {
		return s, nil
	}
	s.Options = landscapeOptions(catalogue, l)
	if s.IsPartial {
		s.Options.Overlays = slices.DeleteFunc(s.Options.Overlays, func(o Overlay) bool {
			_, err := o.loadFiles()
			return err != nil
		})
	}
	var err error
	if s.facts, err = RecordedFacts(l); err != nil && !s.IsPartial {
		return s, err
	}
	s.builder = newOwnerBuilder(l, settings)
	inputs, err := s.builder.gardenAndSeeds()
	if err != nil && !s.IsPartial {
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

// wrapError adds the name of the side to an error.
func (s *StateInputs) wrapError(err error) error {
	if err == nil || s.name == "" {
		return err
	}
	return fmt.Errorf("%s: %w", s.name, err)
}

func shootOwner(d *landscapes.Declaration) Owner {
	return Owner{Kind: "shoot", Namespace: d.Namespace(), Name: d.Name()}
}

// ownerComparison compares two sides.
type ownerComparison struct {
	old, new *StateInputs
	// options are the digests for owners of a kind on both sides.
	options  map[string][2]InputDigest
	sample   shootSample
	sampling bool
	same     []Owner
	// unsampled and sampled become Reach.Left and Reach.Sampled.
	unsampled, sampled []Owner
}

// isSame reports whether two inputs render to equal bytes.
func (c *ownerComparison) isSame(old, new Input) bool {
	options := c.options[new.Owner.Kind]
	return digestInput(old, options[0]) == digestInput(new, options[1])
}

func (c *ownerComparison) gardensAndSeeds() {
	same := map[string]bool{}
	for _, in := range c.new.Inputs {
		if old, ok := c.old.byOwner[in.Owner.String()]; ok && c.isSame(old, in) {
			same[in.Owner.String()] = true
			c.same = append(c.same, in.Owner)
		}
	}
	for _, s := range []*StateInputs{c.old, c.new} {
		s.Inputs = slices.DeleteFunc(s.Inputs, func(in Input) bool { return same[in.Owner.String()] })
	}
}

func (c *ownerComparison) shoots() error {
	sameAround := c.old.builder != nil && c.new.builder != nil && c.options["shoot"][0] == c.options["shoot"][1] &&
		c.old.builder.sharedShootInputsDigest() == c.new.builder.sharedShootInputsDigest()
	referring := map[string]bool{}
	if sameAround {
		referring = changedNamespaces(c.old.builder.referenceDeclarations, c.new.builder.referenceDeclarations)
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
		if sameAround && !referring[d.Namespace()] && before != nil && after != nil && before.HasSameContent(after) && reflect.DeepEqual(c.old.facts[name], c.new.facts[name]) {
			c.same = append(c.same, shootOwner(d))
			continue
		}
		if before != nil && after != nil && before.HasSameContent(after) && hasSeed(after) {
			if !c.sample.include(after) {
				c.unsampled = append(c.unsampled, shootOwner(d))
				continue
			}
			c.sampled = append(c.sampled, shootOwner(d))
		}
		old, was, oldErr := c.old.shoot(before, nil)
		new, _, newErr := c.new.shoot(after, was)
		if err := errors.Join(c.old.wrapError(oldErr), c.new.wrapError(newErr)); err != nil {
			problems = append(problems, err)
			continue
		}
		if old != nil && new != nil && c.isSame(*old, *new) {
			c.same = append(c.same, new.Owner)
			if !before.HasSameContent(after) {
				c.old.EqualShoots, c.new.EqualShoots = append(c.old.EqualShoots, *old), append(c.new.EqualShoots, *new)
			}
			continue
		}
		c.old.addInput(old)
		c.new.addInput(new)
	}
	return errors.Join(problems...)
}

func (s *StateInputs) shootsInOrder() []*landscapes.Declaration {
	out := make([]*landscapes.Declaration, 0, len(s.shoots))
	for _, name := range sortedKeys(s.shoots) {
		out = append(out, s.shoots[name])
	}
	return out
}

// shoot builds the input of a Shoot, and returns the filled-in Shoot. The input is nil if the Shoot
// does not exist or is not bound. Open fields keep their values of before.
func (s *StateInputs) shoot(d *landscapes.Declaration, before *gardencorev1beta1.Shoot) (*Input, *gardencorev1beta1.Shoot, error) {
	if d == nil {
		return nil, nil, nil
	}
	typed, err := landscapes.ShootOf(d)
	var in Input
	bound := false
	if err == nil {
		in, bound, err = s.builder.shoot(typed, before)
	}
	if err != nil && s.IsPartial {
		return nil, nil, nil
	}
	if err != nil || !bound {
		return nil, typed.Object, err
	}
	in.Facts = s.facts[in.Owner.String()]
	return &in, typed.Object, nil
}

func (s *StateInputs) addInput(in *Input) {
	if in != nil {
		s.Inputs = append(s.Inputs, *in)
	}
}

// Render renders the affected owners before and after the change. Duplicates among them are errors;
// other owners are not checked. Errors of the old state are returned separately, so that its repair
// can be reviewed. Secrets that the change requests differently get another symbolic name.
func (r Affected) Render() (before, after []Bundle, wrongBefore, err error) {
	old, new := newPending(r.Old.Inputs, r.Old.Options), newPending(r.New.Inputs, r.New.Options)
	runTasksOn(r.cores, r.New.Options.Catalogue, slices.Concat(old.tasks, new.tasks), nil)
	was, oldProblems := old.results()
	is, newProblems := new.results()
	r.markRegeneratedSecrets(was, is)
	var group panics.Group
	var oldErr, newErr error
	group.Go(func() error { before, oldErr = r.Old.bundles(was, oldProblems); return nil })
	group.Go(func() error { after, newErr = r.New.bundles(is, newProblems); return nil })
	_ = group.Wait() // both errors are returned
	return before, after, oldErr, r.New.wrapError(newErr)
}

// markRegeneratedSecrets marks secrets that the new side requests differently.
func (r Affected) markRegeneratedSecrets(old, new []Result) {
	was := map[string]map[string]json.RawMessage{}
	for i, in := range r.Old.Inputs {
		if requests, err := old[i].Secrets(); err == nil { // the side reports the error
			was[in.Owner.String()] = requests
		}
	}
	for i, in := range r.New.Inputs {
		if requests, err := new[i].Secrets(); err == nil {
			markRegenerated(new[i].Bundles, in.Facts, regeneratedSecrets(was[in.Owner.String()], requests))
		}
	}
}

// bundles returns the bundles of a rendered side.
func (s *StateInputs) bundles(results []Result, problems []error) ([]Bundle, error) {
	if !s.IsPartial {
		return checkResults(s.Inputs, results, problems, s.Options.Catalogue, s.ClusterNamer())
	}
	var bundles []Bundle
	for _, result := range results {
		bundles = append(bundles, result.Bundles...)
	}
	return bundles, nil
}

// ClusterNamer names the cluster of a bundle of the side.
func (s *StateInputs) ClusterNamer() func(Bundle) string {
	seeds := map[string]string{}
	for _, in := range s.Inputs {
		if spec, ok := in.Objects["shoot"]["spec"].(map[string]any); ok {
			if seed, ok := spec["seedName"].(string); ok {
				seeds[in.Owner.Namespace+"/"+in.Owner.Name] = seed
			}
		}
	}
	return ClusterNamer(seeds)
}

// checkResults returns the bundles of all owners and the errors of their combination.
func checkResults(inputs []Input, results []Result, problems []error, catalogue fs.FS, clusterOf func(Bundle) string) ([]Bundle, error) {
	var bundles []Bundle
	for i, result := range results {
		bundles = append(bundles, result.Bundles...)
		if _, err := result.Secrets(); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", inputs[i].Owner, err))
		}
	}
	problems = append(problems, duplicateObjectsAcrossBundles(bundles, clusterOf, false)...)
	problems = append(problems, duplicateBundleNames(bundles, clusterOf)...)
	problems = append(problems, checkFlows(catalogue, inputs, bundles)...)
	return bundles, errors.Join(problems...)
}

// newOwnerBuilder prepares the objects that owners of a landscape see.
func newOwnerBuilder(l *landscapes.Landscape, settings settings) *ownerBuilder {
	around := relatedObjectsOfShoots(l)
	return &ownerBuilder{
		landscape: l, mutations: mutation.New(relatedObjectsOfOwners(l), settings.now), shootObjects: around, shootMutations: mutation.New(around, settings.now),
		referenceDeclarations: referenceDeclarationsIn(l), gardenAPI: cmp.Or(l.Config.Spec.GardenAPI, landscapev1alpha1.GardenAPICRD), gates: l.Config.Spec.FeatureGates, charts: settings.charts,
	}
}

// sharedShootInputsDigest is the digest of all inputs that Shoots share, except options and facts.
func (b *ownerBuilder) sharedShootInputsDigest() InputDigest {
	d := newDigester()
	d.add([len(InputDigest{})]byte(b.shootObjects.digest()), b.garden, b.seeds, b.projects, b.projectOf, b.gardenAPI, b.gates)
	return d.sum()
}
