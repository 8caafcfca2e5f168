package across

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/mutation"
)

// fillersAround shows to mutations what Shoots get values from that other rules look at, and that the API can refuse: cloud
// profiles and Seeds.
type fillersAround struct{ *index }

// Get implements mutation.Around.
func (f fillersAround) Get(kind schema.GroupKind, namespace, name string) *unstructured.Unstructured {
	if kind != kindCloudProfile && kind != kindNamespacedProfile && kind != kindSeed {
		return nil
	}
	in := f.objects[identity{kind, namespace, name}] // filled asks
	if in == nil {
		return nil
	}
	return in.Content()
}

// List implements mutation.Around.
func (f fillersAround) List(schema.GroupKind) []*unstructured.Unstructured { return nil }

// filled is what the API fills in of the Shoot that is looked at, from its cloud profile and its Seed.
func (c *check) filled() mutation.Result {
	id, _ := profileField(c.object(), c.namespace())
	c.ask(question{aboutProfile, id})
	c.ask(question{aboutContent, identity{kind: kindSeed, name: text(c.object(), "spec", "seedName")}})
	if c.filledFor == c.in {
		return c.fill
	}
	c.filledFor, c.fill = c.in, mutation.Result{}
	shoot := &gardencorev1beta1.Shoot{}
	if !typed(c.in.Content(), shoot) {
		return c.fill
	}
	var old *gardencorev1beta1.Shoot
	if c.in.Changed() {
		old = &gardencorev1beta1.Shoot{}
		if !typed(c.in.OldContent(), old) {
			return c.fill
		}
	}
	if c.mutations == nil {
		c.mutations = mutation.New(fillersAround{c.index}, c.Now)
	}
	c.fill = c.mutations.Shoot(shoot, old)
	return c.fill
}

// ruledFields are what is filled in from other objects and what rules look at. The rest holds them by itself.
var ruledFields = regexp.MustCompile(`^spec\.(networking\.(pods|services)|kubernetes\.version|provider\.workers\[\d+\]\.(kubernetes\.version|machine\.image(\..*)?))$`)

// rulesForFilled holds a Shoot against its rules as it is when the API has filled it in, and reports what is found only then.
func (c *check) rulesForFilled() {
	if c.Rules == nil {
		return
	}
	changes := mutation.Result{Changes: slices.DeleteFunc(slices.Clone(c.filled().Changes), func(change mutation.Change) bool { return !ruledFields.MatchString(change.Field) })}
	if len(changes.Changes) == 0 {
		return
	}
	full := *c.in
	full.Object, full.Later, full.Positions = c.in.Content().DeepCopy(), nil, nil
	if changes.ApplyTo(full.Object) != nil {
		return // its form is broken, which the structure says
	}
	plain := full
	plain.Object = c.in.Content()
	known := map[fieldOfRule]bool{}
	for _, v := range c.Rules(plain) {
		known[fieldOfRule{v.Field, v.Rule}] = true
	}
	var reasons []string
	for _, change := range changes.Changes {
		reasons = append(reasons, fmt.Sprintf("%s is %v: %s", change.Field, change.Value, change.Reason))
	}
	for _, v := range c.Rules(full) {
		if known[fieldOfRule{v.Field, v.Rule}] {
			continue
		}
		v.Message += "; the API fills in what is left open (" + strings.Join(reasons, "; ") + ")"
		if c.in.Positions != nil {
			p := c.in.Positions.Position(v.Field)
			v.File, v.Line, v.Column = p.File, p.Line, p.Column
		}
		c.found = append(c.found, v)
	}
}

// fieldOfRule tells findings apart.
type fieldOfRule struct{ field, rule string }

// reportRefusals reports those that belong to the rule.
func (c *check) reportRefusals() {
	for _, problem := range c.filled().Problems {
		if problem.Rule == c.rule.ID {
			c.report(problem.Field, problem.Type, "%s", problem.Message)
		}
	}
}

// openVersion: a version that is left open can only be filled in from a profile that is known, not from one elsewhere.
func (c *check) openVersion() {
	version := text(c.object(), "spec", "kubernetes", "version")
	id, _ := profileField(c.object(), c.namespace())
	if version != "" && mutation.Open(version) && c.profileOf() == nil && c.isExternal(id) {
		c.report("spec.kubernetes.version", schemas.TypeInvalid, "%q leaves the version open, and the landscape has no cloud profile to choose one from; name it in full", version)
	}
}
