package landscape

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/render"
	"github.com/pergola-dev/pergola/schemas/mutation"
)

// A Shoot may leave versions, images, networks and its domain open. They are chosen when it is
// made, and written into it, so that they stay: whatever a cloud profile or a Seed offers later
// does not move a cluster that nobody touched. Admission webhooks of a virtual garden do the same;
// it does not need to have any.

// complete is a declaration with what is chosen for the object: what lives, if it does already.
func (c *Converger) complete(declared, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	chosen := c.chosen(declared, live)
	if len(chosen.Changes) == 0 {
		return declared, nil
	}
	out := declared.DeepCopy()
	return out, chosen.ApplyTo(out)
}

// chosen is what a declaration leaves open and the object has, or gets.
func (c *Converger) chosen(declared, live *unstructured.Unstructured) mutation.Result {
	if declared.GetKind() != "Shoot" {
		return mutation.Result{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ahead.mutations == nil {
		c.ahead.mutations = mutation.New(render.AroundShoots(c.landscape), c.options.Clock.Now())
	}
	return c.ahead.mutations.Since(declared, live).Lasting()
}
