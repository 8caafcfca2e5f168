// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/health"
	"github.com/pergola-dev/pergola/health/condition"
	"github.com/pergola-dev/pergola/internal/panics"
	"github.com/pergola-dev/pergola/render"
)

// BundleHealth is the health of a bundle, worst first.
type BundleHealth string

// The states. notApplied: an object was never applied, or the ManagedResource reports a failure.
// waiting: no pod serves the API server of the Shoot. leftOver: the component is no longer enabled.
const (
	StateUnknown     BundleHealth = "unknown"
	StateNotApplied  BundleHealth = "notApplied"
	StateUnhealthy   BundleHealth = "unhealthy"
	StateProgressing BundleHealth = "progressing"
	StateWaiting     BundleHealth = "waiting"
	StateOrphaned    BundleHealth = "leftOver"
	StateHealthy     BundleHealth = "healthy"
)

// BundleState is the state of one bundle.
type BundleState struct {
	Bundle    string       `json:"bundle"`
	Component string       `json:"component,omitempty"`
	Cluster   string       `json:"cluster"`
	Objects   int          `json:"objects"`
	State     BundleHealth `json:"state"`
	// Reason and Message are the reason and the message of the first unhealthy object.
	Reason  string   `json:"reason,omitempty"`
	Message string   `json:"message,omitempty"`
	Codes   []string `json:"codes,omitempty"`

	conditions []string
}

// Inspection is the current state of an owner.
type Inspection struct {
	Conditions []gardencorev1beta1.Condition
	Bundles    []BundleState
}

func (r *Reconciler) inspect(ctx context.Context, o *ownerSession) (_ *Inspection, err error) {
	defer panics.Catch(&err)
	_, status, err := ReadStatus(ctx, o.ObjectCluster, o.Ref)
	if err != nil {
		return nil, err
	}
	now := *r
	now.ConditionSettings.Thresholds = nil
	b := condition.New(r.Clock, nil)
	out := &Inspection{Conditions: status.Conditions}
	look := &servingCache{}
	out.Conditions = condition.Merge(out.Conditions, now.apiServerConditions(ctx, o, b, status, look)...)
	var others map[string]*health.Verdict
	if out.Bundles, others, err = now.inspectBundles(ctx, o, look); err != nil {
		out.Conditions = condition.Merge(out.Conditions, unknownConditions(b, o, out.Conditions, strings.Join(apply.Problems(err), "; "))...)
		return out, err
	}
	byCondition := map[string][]BundleState{}
	for _, s := range out.Bundles {
		for _, name := range s.conditions {
			byCondition[name] = append(byCondition[name], s)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(byCondition)) {
		old := b.GetOrInit(out.Conditions, gardencorev1beta1.ConditionType(name))
		judged := summaryCondition(b, old, settingsByKind[o.Input.Owner.Kind].healthyReasons[name], byCondition[name])
		if v := others[name]; v != nil && judged.Status == gardencorev1beta1.ConditionTrue {
			judged = b.Update(old, gardencorev1beta1.ConditionFalse, v.Reason, v.Message, errorCodes(v.Codes)...)
		}
		out.Conditions = condition.Merge(out.Conditions, judged)
	}
	return out, nil
}

// summaryCondition returns the condition of bundles: the worst bundle decides. Missing objects come
// after failures, which may be their cause.
func summaryCondition(b *condition.Builder, old gardencorev1beta1.Condition, running [2]string, bundles []BundleState) gardencorev1beta1.Condition {
	for _, is := range []func(BundleState) bool{
		func(s BundleState) bool { return s.State == StateUnknown },
		func(s BundleState) bool { return s.State == StateNotApplied && s.Reason != reasonPending },
		func(s BundleState) bool { return s.State == StateUnhealthy },
		func(s BundleState) bool { return s.State == StateNotApplied },
		func(s BundleState) bool { return s.State == StateProgressing },
	} {
		i := slices.IndexFunc(bundles, is)
		if i < 0 {
			continue
		}
		first := bundles[i]
		switch first.State {
		case StateUnknown:
			return b.Unknown(old, condition.ReasonCheckError, first.Message)
		case StateProgressing:
			return b.Progressing(old, first.Reason, first.Message, errorCodes(first.Codes)...)
		}
		return b.Update(old, gardencorev1beta1.ConditionFalse, first.Reason, first.Message, errorCodes(first.Codes)...)
	}
	return b.OK(old, running[0], running[1])
}

// reasonPending is the reason of a bundle that was not applied yet.
const reasonPending = "Pending"

// inspectBundles inspects all declared and left-over bundles, and judges foreign ManagedResources
// (see others).
func (r *Reconciler) inspectBundles(ctx context.Context, o *ownerSession, look *servingCache) ([]BundleState, map[string]*health.Verdict, error) {
	facts, err := r.readFacts(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	result, err := r.renderWith(ctx, o, facts)
	if err != nil {
		return nil, nil, err
	}
	var out []BundleState
	for _, b := range result.Bundles {
		s := BundleState{Bundle: b.Name, Component: b.Component, Cluster: o.ClusterName(b), Objects: len(b.Objects), State: StateHealthy, conditions: conditionsOf(b)}
		r.inspectBundle(ctx, o, b, look, &s)
		out = append(out, s)
	}
	gone, err := r.orphans(ctx, o, result.Bundles)
	if err != nil {
		return nil, nil, err
	}
	for _, orphan := range gone {
		entries, err := r.orphanObjects(ctx, o, orphan)
		if err != nil {
			return nil, nil, fmt.Errorf("bundle %s: %w", orphan.bundle.Name, err)
		}
		out = append(out, BundleState{
			Bundle: orphan.bundle.Name, Cluster: o.ClusterName(orphan.bundle), Objects: len(entries), State: StateOrphaned,
			Message: "its component is no longer enabled: the next apply removes it",
		})
	}
	sortBundles(out)
	others, err := r.unhealthyForeignResources(ctx, o, result.Bundles)
	return out, others, err
}

// sortBundles sorts by name, because people do not know the order of rendering.
func sortBundles(bundles []BundleState) {
	slices.SortStableFunc(bundles, func(a, b BundleState) int {
		return cmp.Or(strings.Compare(a.Bundle, b.Bundle), strings.Compare(a.Cluster, b.Cluster))
	})
}

// inspectBundle sets the state of a bundle.
func (r *Reconciler) inspectBundle(ctx context.Context, o *ownerSession, b render.Bundle, look *servingCache, s *BundleState) {
	say := func(state BundleHealth, reason, message string) {
		s.State, s.Reason, s.Message = state, reason, message
	}
	if len(b.Unresolved) > 0 {
		say(StateNotApplied, reasonPending, "not known yet: "+strings.Join(b.Unresolved, ", "))
		return
	}
	cluster, err := o.clusterForRole(b.Cluster)
	if err != nil {
		say(StateUnknown, "", err.Error())
		return
	}
	entries, refusal, err := r.appliedEntries(ctx, o, b)
	if err != nil {
		say(StateUnknown, "", strings.Join(apply.Problems(err), "; "))
		return
	}
	known := map[apply.Ref]bool{}
	for _, e := range entries {
		known[e.Ref] = true
	}
	refs := make([]apply.Ref, 0, len(b.Objects))
	var missing []string
	for _, obj := range b.Objects {
		ref := apply.RefOf(obj.Unstructured)
		refs = append(refs, ref)
		if !known[ref] && !hasIgnoreAnnotation(obj.Unstructured) {
			missing = append(missing, ref.String())
		}
	}
	served, err := look.canApply(ctx, o, b)
	switch {
	case err != nil:
		say(StateUnknown, "", strings.Join(apply.Problems(err), "; "))
		return
	case !served && len(missing) > 0:
		say(StateWaiting, "NotServed", o.waitReason(b)+"; not applied until that changes: "+joinFirstThree(missing))
		return
	case !served:
		say(StateWaiting, "NotServed", o.waitReason(b)+"; its applied objects are judged once that changes")
		return
	case refusal != nil:
		say(StateNotApplied, refusal.Reason, refusal.Message)
		return
	case len(missing) > 0:
		say(StateNotApplied, reasonPending, "not applied yet: "+joinFirstThree(missing))
		return
	}
	bad, rolling, err := r.judgeForCluster(cluster).FirstProblems(ctx, refs)
	switch {
	case err != nil:
		say(StateUnknown, "", strings.Join(apply.Problems(err), "; "))
	case bad != nil:
		say(StateUnhealthy, bad.Reason, describeVerdict(cluster.Name(), *bad))
		s.Codes = bad.Codes
	case rolling != nil:
		say(StateProgressing, rolling.Reason, describeVerdict(cluster.Name(), *rolling))
	}
}

// appliedEntries returns the inventory of a bundle, and the condition of its ManagedResource that
// reports a failed apply.
func (r *Reconciler) appliedEntries(ctx context.Context, o *ownerSession, b render.Bundle) ([]apply.Entry, *gardencorev1beta1.Condition, error) {
	if b.Delivery.Direct {
		entries, err := r.inventory(o, b).Load(ctx)
		return entries, nil, err
	}
	rm, err := r.resourceManager(o, b)
	if err != nil {
		return nil, nil, err
	}
	inventory, err := managedInventory(ctx, rm, b)
	if err != nil {
		return nil, nil, err
	}
	entries, err := inventory.Load(ctx)
	if err != nil || len(entries) == 0 {
		return entries, nil, err
	}
	mr, err := rm.Read(ctx, b.Namespace, b.Name)
	if err != nil {
		return nil, nil, err
	}
	// During pending deletions all declared objects are applied.
	if c := condition.Get(mr.Status.Conditions, resourcesv1alpha1.ResourcesApplied); c != nil && c.Status != gardencorev1beta1.ConditionTrue &&
		c.Reason != resourcesv1alpha1.ConditionDeletionPending {
		return entries, c, nil
	}
	return entries, nil, nil
}

// hasIgnoreAnnotation reports whether an object has an annotation against its apply: then no
// inventory has it.
func hasIgnoreAnnotation(o *unstructured.Unstructured) bool {
	return o.GetAnnotations()[resourcesv1alpha1.Ignore] == "true" || o.GetAnnotations()[resourcesv1alpha1.Mode] == resourcesv1alpha1.ModeIgnore
}

// joinFirstThree lists the first three of many names.
func joinFirstThree(names []string) string {
	const shown = 3
	if len(names) <= shown {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:shown], ", "), len(names)-shown)
}
