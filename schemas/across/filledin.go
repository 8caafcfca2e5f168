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

// fillersAround gives mutations the cloud profiles and Seeds: the sources of Shoot fields that
// rules check and the API can reject.
type fillersAround struct{ *index }

// Get implements mutation.Around.
func (f fillersAround) Get(kind schema.GroupKind, namespace, name string) *unstructured.Unstructured {
	if kind != kindCloudProfile && kind != kindNamespacedProfile && kind != kindSeed {
		return nil
	}
	in := f.objects[identity{kind, namespace, name}] // filled records the question
	if in == nil {
		return nil
	}
	return in.Content()
}

// List implements mutation.Around.
func (f fillersAround) List(schema.GroupKind) []*unstructured.Unstructured { return nil }

// filled returns the values that the API fills in for the current Shoot from its profile and Seed.
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
	if c.in.HasOld() {
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

// ruledFields are the fields that the API fills in from other objects and rules check.
var ruledFields = regexp.MustCompile(`^spec\.(networking\.(pods|services)|kubernetes\.version|provider\.workers\[\d+\]\.(kubernetes\.version|machine\.image(\..*)?))$`)

// stayingFields are the ruledFields that never change after the Shoot's creation.
var stayingFields = regexp.MustCompile(`^spec\.networking\.(pods|services)$`)

// rulesForFilled applies the single-object rules to the Shoot with the filled-in values and reports
// only additional findings. An unchanged Shoot keeps its unknown Kubernetes version if the time
// decides about it.
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
	plain.Object, plain.Lazy, plain.Positions = c.in.Content(), nil, nil
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
	var lasting map[fieldOfRule]bool // findings for every possible version
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

// rulesWith returns the findings about a Shoot with the changes and its previous revision; false if
// its structure is broken.
func (c *check) rulesWith(in schemas.Input, changes mutation.Result, former *unstructured.Unstructured) ([]schemas.Violation, bool) {
	in.Object = in.Object.DeepCopy()
	if changes.ApplyTo(in.Object) != nil {
		return nil, false
	}
	if former != nil {
		in.Old, in.OldLazy = former, nil
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

// lasting drops a Kubernetes version whose minor version depends on the time.
func (c *check) lasting(result mutation.Result) mutation.Result {
	const field = "spec.kubernetes.version"
	if text(c.object(), strings.Split(field, ".")...) != "" {
		return result
	}
	return mutation.Result{Changes: slices.DeleteFunc(slices.Clone(result.Changes), func(change mutation.Change) bool { return change.Field == field })}
}

// only returns the changes of matching fields.
func only(result mutation.Result, fields *regexp.Regexp) mutation.Result {
	return mutation.Result{Changes: slices.DeleteFunc(slices.Clone(result.Changes), func(change mutation.Change) bool { return !fields.MatchString(change.Field) })}
}

// formerlyAround gives mutations the Seeds before the change.
type formerlyAround struct{ *index }

// Get implements mutation.Around.
func (f formerlyAround) Get(kind schema.GroupKind, namespace, name string) *unstructured.Unstructured {
	in := f.objects[identity{kind, namespace, name}] // formerly asks
	if kind != kindSeed || in == nil || !in.HasOld() {
		return nil
	}
	return in.OldContent()
}

// List implements mutation.Around.
func (f formerlyAround) List(schema.GroupKind) []*unstructured.Unstructured { return nil }

// formerly returns the previous revision of the Shoot, with the values that the API had filled in
// from its Seed; nil for a new Shoot. Nothing is filled in without a Seed in both revisions.
func (c *check) formerly() (*unstructured.Unstructured, []mutation.Change) {
	if !c.in.HasOld() {
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

// fieldOfRule is the key of a finding.
type fieldOfRule struct{ field, rule string }

// reportRefusals reports the API's refusals that belong to the current rule. An unchanged Shoot
// keeps the version that the API chose for it.
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

// openVersion reports an incomplete Kubernetes version if the cloud profile is external.
func (c *check) openVersion() {
	version := text(c.object(), "spec", "kubernetes", "version")
	id, _ := profileField(c.object(), c.namespace())
	if version != "" && mutation.Open(version) && c.profileOf() == nil && c.isExternal(id) {
		c.report("spec.kubernetes.version", schemas.TypeInvalid, "%q leaves the version open, and the landscape has no cloud profile to choose one from; name it in full", version)
	}
}
