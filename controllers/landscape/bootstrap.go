// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"context"
	"errors"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/api/crds"
	operatorv1alpha1 "github.com/pergola-dev/pergola/api/operator/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/owner"
)

// bootstrapSet is the set that all landscapes of a runtime cluster share.
const bootstrapSet = "landscape/bootstrap"

// An operator applies all its landscapes at once when it starts, and each writes the inventory of
// the shared definitions. After a conflict, a landscape waits until its cache has the other write,
// and retries.
const (
	bootstrapAttempts = 40
	bootstrapPause    = 250 * time.Millisecond
)

// isInventoryConflict reports whether the only error is a conflict on the inventory.
func isInventoryConflict(err error) bool {
	var all apply.Errors
	return errors.As(err, &all) && !slices.ContainsFunc(all, func(e *apply.ObjectError) bool { return e.Object != (apply.Ref{}) || !apierrors.IsConflict(e.Err) })
}

func (c *Converger) bootstrapInventory() apply.Inventory {
	return apply.NewConfigMapInventory(c.connections.clusters[Runtime], owner.InventoryNamespace, owner.InventoryPrefix+"landscape-bootstrap",
		map[string]string{owner.LabelBundle: "bootstrap", owner.LabelCluster: Runtime})
}

// applyBootstrap applies the CRDs that everything else needs, and waits until they are served.
func (c *Converger) applyBootstrap(ctx context.Context) error {
	objects, err := bootstrapObjects()
	if err != nil {
		return err
	}
	s := apply.Set{Name: bootstrapSet, PreviousNames: []string{c.nameOfSet("bootstrap")}, Objects: objects, FieldManager: FieldManager}
	for attempt := 1; ; attempt++ {
		err := c.applySet(ctx, Runtime, "bootstrap", s, c.bootstrapInventory(), apply.ApplyOptions{})
		if err == nil {
			return apply.WaitForServedKinds(ctx, c.options.Clock, c.connections.clusters[Runtime], objects)
		}
		if attempt == bootstrapAttempts || !isInventoryConflict(err) {
			return err
		}
		timer := c.options.Clock.NewTimer(bootstrapPause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return err
		case <-timer.C():
		}
	}
}

// bootstrapObjects returns the CRDs that the runtime cluster needs for a Garden; upstream installs
// them with the operator's chart.
func bootstrapObjects() ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, crd := range crds.ByGroup(operatorv1alpha1.SchemeGroupVersion.Group) {
		obj, err := crds.ToUnstructured(crd)
		if err != nil {
			return nil, err
		}
		out = append(out, obj)
	}
	return out, nil
}
