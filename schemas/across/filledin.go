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

// fillersAround shows to mutations what Shoots get values from that other rules look at, and that
// the API can refuse: cloud profiles and Seeds.
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

// filled is what the API fills in of the Shoot that is looked at, from its cloud profile and its
// Seed.
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
		before, _ := c.formerly()
		old = &gardencorev1beta1.Shoot{}
		if !typed(before, old) {
			return c.fill
		}
	}
	if c.mutations == nil {
		c.mutations = mutation.New(fillersAround{c.index}, c.Now)
	}
	c.fill = c.mutations.Shoot(shoot, old)
	return c.fill
}

// ruledFields are what is filled in from other objects and what rules look at. The rest holds them
// by itself.
var ruledFields = regexp.MustCompile(`^spec\.(networking\.(pods|services)|kubernetes\.version|provider\.workers\[\d+\]\.(kubernetes\.version|machine\.image(\..*)?))$`)

// stayingFields are those of them that the API filled in when the Shoot was made, and that never
// change. What it fills in of the others is as old as the last change.
var stayingFields = regexp.MustCompile(`^spec\.networking\.(pods|services)$`)

// rulesForFilled holds a Shoot against its rules as it is when the API has filled it in, and as it
// was, and reports what is found only then. A Kubernetes version that is left open altogether is
// chosen by the clock: a Shoot that has not changed keeps its own, which nobody knows here.
func (c *check) rulesForFilled() {
	if c.Rules == nil {
		return
	}
	changes := only(c.filled(), ruledFields)
	if _, same := c.in.AsNew(); same {
		changes = c.lasting(changes)
	}
	former, before := c.formerly()
	if len(changes.Changes)+len(before) == 0 {
		return
	}
	plain := *c.in
	plain.Object, plain.Later, plain.Positions = c.in.Content(), nil, nil
	known := rulesAt(c.Rules(plain))
	found, ok := c.rulesWith(plain, changes, former)
	if !ok {
		return
	}
	var reasons []string
	for _, change := range changes.Changes {
		reasons = append(reasons, fmt.Sprintf("%s is %v: %s", change.Field, change.Value, change.Reason))
	}
	for _, change := range before {
		reasons = append(reasons, fmt.Sprintf("%s was left open before, and is %v: %s", change.Field, change.Value, change.Reason))
	}
	var lasting map[fieldOfRule]bool // what is found whichever version is chosen
	for _, v := range found {
		if known[fieldOfRule{v.Field, v.Rule}] {
			continue
		}
		if lasting == nil {
			without, _ := c.rulesWith(plain, c.lasting(changes), former)
			lasting = rulesAt(without)
		}
		v.NewOnly = !lasting[fieldOfRule{v.Field, v.Rule}]
		v.Message += "; the API fills in what is left open (" + strings.Join(reasons, "; ") + ")"
		if c.in.Positions != nil {
			p := c.in.Positions.Position(v.Field)
			v.File, v.Line, v.Column = p.File, p.Line, p.Column
		}
		c.found = append(c.found, v)
	}
}

// rulesWith gives the findings about a Shoot that is filled in, and as it was before; false where
// its form is broken, which the structure says.
func (c *check) rulesWith(in schemas.Input, changes mutation.Result, former *unstructured.Unstructured) ([]schemas.Violation, bool) {
	in.Object = in.Object.DeepCopy()
	if changes.ApplyTo(in.Object) != nil {
		return nil, false
	}
	if former != nil {
		in.Old, in.OldLater = former, nil
	}
	return c.Rules(in), true
}

func rulesAt(found []schemas.Violation) map[fieldOfRule]bool {
	out := map[fieldOfRule]bool{}
	for _, v := range found {
		out[fieldOfRule{v.Field, v.Rule}] = true
	}
	return out
}

// lasting gives the changes without a Kubernetes version whose minor version depends on the time.
func (c *check) lasting(result mutation.Result) mutation.Result {
	const field = "spec.kubernetes.version"
	if text(c.object(), strings.Split(field, ".")...) != "" {
		return result
	}
	return mutation.Result{Changes: slices.DeleteFunc(slices.Clone(result.Changes), func(change mutation.Change) bool { return change.Field == field })}
}

// only gives the changes of some fields.
func only(result mutation.Result, fields *regexp.Regexp) mutation.Result {
	return mutation.Result{Changes: slices.DeleteFunc(slices.Clone(result.Changes), func(change mutation.Change) bool { return !fields.MatchString(change.Field) })}
}

// formerlyAround shows to mutations the Seeds as they were before the change.
type formerlyAround struct{ *index }

// Get implements mutation.Around.
func (f formerlyAround) Get(kind schema.GroupKind, namespace, name string) *unstructured.Unstructured {
	in := f.objects[identity{kind, namespace, name}] // formerly asks
	if kind != kindSeed || in == nil || !in.Changed() {
		return nil
	}
	return in.OldContent()
}

// List implements mutation.Around.
func (f formerlyAround) List(schema.GroupKind) []*unstructured.Unstructured { return nil }

// formerly is the Shoot as it was before, with what the API had filled in of it then from its Seed,
// and what that was; nil if it is new. Nothing is filled in where that Seed is not in the
// landscape, then and now.
func (c *check) formerly() (*unstructured.Unstructured, []mutation.Change) {
	if !c.in.Changed() {
		return nil, nil
	}
	was, old := c.in.OldContent(), &gardencorev1beta1.Shoot{}
	if text(was.Object, "spec", "networking", "pods") != "" && text(was.Object, "spec", "networking", "services") != "" {
		return was, nil
	}
	c.ask(question{aboutFormer, identity{kind: kindSeed, name: text(was.Object, "spec", "seedName")}})
	if c.formerFor == c.in {
		return c.former, c.formerFilled
	}
	c.formerFor, c.former, c.formerFilled = c.in, was, nil
	if !typed(was, old) {
		return was, nil
	}
	filled := only(mutation.New(formerlyAround{c.index}, c.Now).Shoot(old, nil), stayingFields)
	if full := was.DeepCopy(); len(filled.Changes) > 0 && filled.ApplyTo(full) == nil {
		c.former, c.formerFilled = full, filled.Changes
	}
	return c.former, c.formerFilled
}

// fieldOfRule tells findings apart.
type fieldOfRule struct{ field, rule string }

// reportRefusals reports those that belong to the rule. A Shoot that has not changed keeps the
// version that was chosen for it.
func (c *check) reportRefusals() {
	_, same := c.in.AsNew()
	for _, problem := range c.filled().Problems {
		if problem.Rule != c.rule.ID || problem.NewOnly && same {
			continue
		}
		c.report(problem.Field, problem.Type, "%s", problem.Message)
		c.found[len(c.found)-1].NewOnly = problem.NewOnly
	}
}

// openVersion: a version that is left open can only be filled in from a profile that is known, not
// from one elsewhere.
func (c *check) openVersion() {
	version := text(c.object(), "spec", "kubernetes", "version")
	id, _ := profileField(c.object(), c.namespace())
	if version != "" && mutation.Open(version) && c.profileOf() == nil && c.isExternal(id) {
		c.report("spec.kubernetes.version", schemas.TypeInvalid, "%q leaves the version open, and the landscape has no cloud profile to choose one from; name it in full", version)
	}
}
