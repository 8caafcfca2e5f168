package across

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/mutation"
)

// profilesAround shows the cloud profiles of a landscape to mutations: only what they take from these can be refused.
type profilesAround struct{ *index }

// Get implements mutation.Around.
func (p profilesAround) Get(kind schema.GroupKind, namespace, name string) *unstructured.Unstructured {
	if kind != kindCloudProfile && kind != kindNamespacedProfile {
		return nil
	}
	in := p.objects[identity{kind, namespace, name}] // profileOf asks
	if in == nil {
		return nil
	}
	return in.Content()
}

// List implements mutation.Around.
func (p profilesAround) List(schema.GroupKind) []*unstructured.Unstructured { return nil }

// refusals are what the API cannot fill in of the Shoot that is looked at, as none of what its profile offers fits.
func (c *check) refusals() []schemas.Violation {
	if c.profileOf() == nil {
		return nil
	}
	if c.refusedOf == c.in {
		return c.refused
	}
	c.refusedOf, c.refused = c.in, nil
	shoot := &gardencorev1beta1.Shoot{}
	if !typed(c.in.Content(), shoot) {
		return nil
	}
	var old *gardencorev1beta1.Shoot
	if c.in.Changed() {
		old = &gardencorev1beta1.Shoot{}
		if !typed(c.in.OldContent(), old) {
			return nil
		}
	}
	if c.mutations == nil {
		c.mutations = mutation.New(profilesAround{c.index}, c.Now)
	}
	c.refused = c.mutations.Shoot(shoot, old).Problems
	return c.refused
}

// reportRefusals reports those that belong to the rule.
func (c *check) reportRefusals() {
	for _, problem := range c.refusals() {
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
