// SPDX-License-Identifier: Apache-2.0

package gardenlet

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/schemas"
)

// Users read objects in the virtual garden rather than the gardenlet's log. So Events of an object
// report requests that the gardenlet does not handle.

// Reasons of Events.
const (
	reasonLeftAlone        = "LeftAlone"
	reasonOperationIgnored = "OperationNotTakenUp"
	reasonDriftRepaired    = "DriftRepaired"
	reasonDriftNotRepaired = "DriftNotRepaired"
	reasonApprovalLapsed   = "ApprovalLapsed"
	reasonAccessNotRenewed = "AccessNotRenewed"
)

// warn logs a warning and records it as an Event of an object in the virtual garden.
func (g *Gardenlet) warn(about *unstructured.Unstructured, reason, message string) {
	if about == nil {
		g.options.Log.Warn(message, "reason", reason)
		return
	}
	g.options.Log.Warn(message, "reason", reason, "object", apply.RefOf(about).String())
	g.services.recorder.Event(about, corev1.EventTypeWarning, reason, message)
}

// warnOnce reports a persistent problem of an object once until its message changes. An empty
// message says that the problem is solved.
func (g *Gardenlet) warnOnce(about *unstructured.Unstructured, reason, message string) {
	key := reason + " " + string(about.GetUID())
	g.mu.Lock()
	known := g.eventHistory.messages[key]
	if g.eventHistory.messages[key] = message; message == "" {
		delete(g.eventHistory.messages, key)
	}
	g.mu.Unlock()
	if message != "" && message != known {
		g.warn(about, reason, message)
	}
}

// resetWarnings makes say and reportDrift report persistent problems again.
func (g *Gardenlet) resetWarnings() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.eventHistory.messages, g.eventHistory.driftReports = map[string]string{}, nil
}

// ignoredOperationMessage returns why no one handles the operation of an object, or "" if there is
// none or the gardenlet does. The text has no command, because its reader may use another cluster.
func ignoredOperationMessage(o *unstructured.Unstructured, leftAlone string, done []string) string {
	operation := o.GetAnnotations()[gardencorev1beta1.GardenerOperation]
	waits := schemas.PendingOperationMessage(o) + "; " + schemas.WithdrawAdvice
	switch {
	case operation == "":
		return ""
	case leftAlone != "":
		return waits + "; the gardenlet ignores the object: " + leftAlone
	case slices.Contains(reconcileOperations(), operation), o.GetKind() == kindSeed && slices.Contains(done, operation):
		return ""
	case o.GetKind() == kindSeed && slices.Contains(renewalOperations(), operation):
		return waits + "; its access to the virtual garden comes from a file: renew it there"
	}
	return waits + "; this gardenlet supports only reconcile and retry"
}

// reportDepartedOwner reports that an owner was deleted or moved to another seed, and that its
// objects stay on this seed.
func (g *Gardenlet) reportDepartedOwner(ctx context.Context, o *unstructured.Unstructured) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	ref := apply.RefOf(o)
	live, err := g.connections.garden.GetLive(ctx, ref)
	switch {
	case apierrors.IsNotFound(err) && o.GetKind() == kindShoot:
		g.warn(g.objects.get(kindSeed, "", g.options.Seed), reasonLeftAlone,
			fmt.Sprintf("%s no longer exists in the virtual garden; its objects on the seed stay, unreconciled: delete unwanted ones there manually", ref))
	case apierrors.IsNotFound(err):
		g.options.Log.Warn("the Seed no longer exists in the virtual garden; the objects on the seed stay, unreconciled", "object", ref.String())
	case err != nil:
		g.options.Log.Warn("no longer reconciled", "object", ref.String(), "error", g.connections.garden.Explain(ref, "read", err))
	default:
		seed, _, _ := unstructured.NestedString(live.Object, "spec", "seedName")
		if seed == "" {
			seed = "none"
		}
		g.warn(live, reasonLeftAlone, fmt.Sprintf("spec.seedName changed from %s to %s, but this version cannot move control planes: "+
			"objects on seed %[1]s stay, unreconciled; to undo, reset it to %[1]s", g.options.Seed, seed))
	}
}

// reportDrift reports that drift on the seed was repaired, or why it was not.
func (g *Gardenlet) reportDrift(about *unstructured.Unstructured, e apply.DriftEvent, problem string) {
	if about == nil {
		return
	}
	what := fmt.Sprintf("%s on cluster %s %s", e.Ref, e.Cluster, landscape.DescribeDrift(e))
	if problem == "" {
		g.mu.Lock()
		g.eventHistory.driftReports.removeSet(about.GetUID(), e)
		g.mu.Unlock()
		g.services.recorder.Event(about, corev1.EventTypeNormal, reasonDriftRepaired, what+": repaired")
		return
	}
	g.mu.Lock()
	message := g.eventHistory.driftReports.newMessage(about.GetUID(), e, what+", and "+problem)
	g.mu.Unlock()
	if message != "" {
		g.warn(about, reasonDriftNotRepaired, message)
	}
}
