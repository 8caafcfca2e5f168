// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/internal/panics"
	"github.com/pergola-dev/pergola/render"
)

// Annotations by which people confirm a deletion (upstream's).
const (
	AnnotationConfirmDeletion = "confirmation.gardener.cloud/deletion"
	// AnnotationForceDeletion on a Garden that is being deleted gives up a virtual garden that does
	// not answer. Upstream has it for Shoots.
	AnnotationForceDeletion = "confirmation.gardener.cloud/force-deletion"
)

// IsConfirmed reports whether someone has confirmed the deletion of an object.
func IsConfirmed(live *unstructured.Unstructured) bool {
	return isTrueValue(live.GetAnnotations()[AnnotationConfirmDeletion])
}

func isTrueValue(value string) bool {
	is, err := strconv.ParseBool(value)
	return err == nil && is
}

func (r *Reconciler) delete(ctx context.Context, o *ownerSession) (*Report, error) {
	status := r.newStatus(o)
	status.deleting = true
	defer status.stop()
	live, err := o.ObjectCluster.GetLive(ctx, o.Ref)
	if apierrors.IsNotFound(err) {
		return &Report{Owner: o.String()}, nil
	}
	if err != nil {
		return nil, o.ObjectCluster.Explain(o.Ref, "read", err)
	}
	if live.GetDeletionTimestamp() == nil {
		return nil, fmt.Errorf("%s is not being deleted", o)
	}
	if err := status.start(ctx); err != nil {
		return nil, err
	}
	end := &flowSteps{run: &run{reconciler: r, owner: o, status: status, report: &Report{Owner: o.String()}}, live: live}
	err = panics.AsError(func() error { return end.runDeletion(ctx) })()
	if err != nil {
		err = end.run.writeOutcome(ctx, err, func() error { return nil })
	}
	return end.run.report, err
}

// runDeletion runs the flow of deletion once it is confirmed.
func (s *flowSteps) runDeletion(ctx context.Context) error {
	if !IsConfirmed(s.live) {
		return errors.New(s.run.owner.ObjectCluster.RewriteKubectlOrNameCluster(fmt.Sprintf("the deletion cannot be undone, and nothing is deleted until it is confirmed: kubectl annotate %s %s=true",
			apply.KubectlName(s.run.owner.Ref), AnnotationConfirmDeletion)))
	}
	if err := s.run.reconciler.readExtensions(ctx, s.run.owner); err != nil {
		return err
	}
	definition, err := render.LoadFlow(s.run.reconciler.Render.Catalogue, "delete", s.run.owner.Input)
	if err != nil {
		return err
	}
	if s.existingBundles, err = s.run.reconciler.orphans(ctx, s.run.owner, nil); err != nil {
		return err
	}
	if kind := settingsByKind[s.run.owner.Input.Owner.Kind]; kind.firstDeletionState == "" {
		s.stopMaintenance()
	} else if err := orderAfterState(definition, kind); err != nil {
		return err
	}
	if err := s.runFlow(ctx, definition); err != nil {
		return err
	}
	return s.finishDeletion(ctx)
}

// orderAfterState makes all nodes of a flow depend on the node for kind.firstDeletionState, and
// rejects a flow without the required tasks.
func orderAfterState(definition render.Flow, kind kindSettings) error {
	first := ""
	for _, name := range append([]string{kind.firstDeletionState}, kind.deletionTasks...) {
		i := slices.IndexFunc(definition.Nodes, func(n render.FlowNode) bool { return n.Name == name && n.If })
		if i < 0 {
			return fmt.Errorf("the flow of deletion has no node for %s: nothing is deleted without it", name)
		}
		first = cmp.Or(first, definition.Nodes[i].ID)
	}
	for i, n := range definition.Nodes {
		if len(n.After) == 0 && n.ID != first {
			definition.Nodes[i].After = map[string]string{first: "healthy"}
		}
	}
	return nil
}

// stopMaintenance marks the start of the deletion: from now on, nothing is repaired, judged or
// requested for the components.
func (s *flowSteps) stopMaintenance() {
	s.run.reconciler.Tokens.Stop(s.run.owner.ControlPlane())
	s.run.owner.updateState(func(now *State) { now.reset("the " + s.run.owner.Ref.Kind + " is being deleted") })
}
