// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/render"
	"github.com/pergola-dev/pergola/schemas/mutation"
)

// A Shoot may leave versions, images, networks and its domain open. They are chosen at creation and
// written into the Shoot. So later offers of a cloud profile or a Seed do not change an untouched
// cluster. Admission webhooks of a virtual garden do the same, but need not exist.

// completeDeclaration returns a declaration with the open values filled, from the live object if it
// exists.
func (c *Converger) completeDeclaration(declared, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	chosen := c.chosenValues(declared, live)
	if len(chosen.Changes) == 0 {
		return declared, nil
	}
	out := declared.DeepCopy()
	return out, chosen.ApplyTo(out)
}

// chosenValues returns the values that a declaration leaves open, from the live object or newly
// chosen.
func (c *Converger) chosenValues(declared, live *unstructured.Unstructured) mutation.Result {
	if declared.GetKind() != "Shoot" {
		return mutation.Result{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dryRun.shootMutations == nil {
		c.dryRun.shootMutations = mutation.New(render.RelatedObjectsOfShoots(c.landscape), c.options.Clock.Now())
	}
	return c.dryRun.shootMutations.MutateRevision(declared, live).PersistentChanges()
}
