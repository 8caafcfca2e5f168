// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/change"
)

// outcome is the result for one object, of a run or of a plan.
type outcome struct {
	ref             Ref
	action          Action
	message         string
	err             *ObjectError
	immutableFields []string // fields that are declared differently, but cannot change
	droppedFields   []string // declared fields that we own and the live object lacks
	handedOver      []change.HandedOver

	takenBack       []string // with their managers
	waitsForOthers  bool     // it has to be deleted, but its deletion is not requested yet
	deleteRequested bool     // this run requested its deletion

	fields             []change.Field             // plan: fields that differ
	restoredByWebhooks []change.Field             // plan: fields that would differ without webhooks
	old, new           *unstructured.Unstructured // plan: before and after, if known
}

func (o outcome) result() ObjectResult {
	return ObjectResult{Ref: o.ref, Action: o.action, Message: o.message, ImmutableFields: o.immutableFields, Dropped: o.droppedFields, HandedOver: o.handedOver, TakenBack: o.takenBack, Err: o.err, IsDeletionPending: o.waitsForOthers, DeleteRequested: o.deleteRequested}
}

// abort fails every object of the set for one reason.
func (r *setRun) abort(op string, err error) {
	cause := r.cluster.objectErrorFor(Ref{}, op, err)
	r.clusterErrors = append(r.clusterErrors, cause)
	for _, d := range r.desired {
		r.outcomes[objectKeyOf(d.ref)] = outcome{ref: d.ref, action: Failed, message: cause.Message, err: cause}
	}
}

// recordOutcome records and reports the outcome of an object.
func (r *setRun) recordOutcome(o outcome) {
	r.mu.Lock()
	r.outcomes[objectKeyOf(o.ref)] = o
	r.mu.Unlock()
	r.reportOutcome(o)
}

func (r *setRun) reportOutcome(o outcome) {
	if r.opts.OnObject != nil {
		r.onObjectMu.Lock()
		defer r.onObjectMu.Unlock()
		result := o.result()
		result.Cluster = r.cluster.Name()
		r.opts.OnObject(result)
	}
}

func (r *setRun) failOutcome(d *desiredObject, err error) outcome {
	e := r.cluster.objectErrorFor(d.ref, "apply", err)
	e.Source = d.source
	explainSize(e, d.obj)
	if e.Reason == ReasonConflict {
		e.Hint = r.cluster.RewriteKubectl(conflictHint(d.ref, r.engine.forceHint(d.ref)))
	}
	if e.Reason == ReasonImmutable {
		e.Hint = immutableHint(" with the annotation " + r.engine.keys.DeleteOnInvalidUpdate + "=true")
	}
	return outcome{ref: d.ref, action: Failed, message: e.Message, err: e}
}

// sortedOutcomes returns the outcomes in order of application, then the deletions.
func (r *setRun) sortedOutcomes() []outcome {
	out := make([]outcome, 0, len(r.outcomes)+len(r.deletionOutcomes))
	for _, o := range r.outcomes {
		out = append(out, o)
	}
	slices.SortFunc(out, func(a, b outcome) int { return compareRefs(a.ref, b.ref) })
	return append(out, r.deletionOutcomes...)
}

func (r *setRun) result() (*Result, error) {
	out := &Result{Cluster: r.cluster.name, Set: r.set.Name, Complete: len(r.clusterErrors) == 0}
	for _, o := range r.sortedOutcomes() {
		out.Objects = append(out.Objects, o.result())
		switch o.action {
		case Failed, Skipped, HeldBack, Deleting:
			out.Complete = false
		}
	}
	sums := map[string]string{}
	for _, d := range r.desired {
		sums[d.ref.String()+d.ref.APIVersion] = d.digest
	}
	out.Digest = digest(sums)
	return out, r.errors()
}

// errors joins all errors; an error of the whole cluster appears once.
func (r *setRun) errors() error {
	all := slices.Clone(r.clusterErrors)
	once := map[Reason]*ObjectError{}
	for _, e := range all {
		once[e.Reason] = e
	}
	for _, o := range r.sortedOutcomes() {
		switch {
		case o.err == nil || slices.Contains(all, o.err):
			continue
		case o.err.Reason == ReasonUnreachable || o.err.Reason == ReasonCanceled || o.err.Reason == ReasonUnauthorized || o.err.Reason == ReasonCertificateExpired:
			if once[o.err.Reason] != nil {
				continue
			}
			once[o.err.Reason] = o.err
		}
		all = append(all, o.err)
	}
	return joinErrors(all)
}
