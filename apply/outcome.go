package apply

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/change"
)

// outcome is the result for one object, of a run or of a plan.
type outcome struct {
	ref     Ref
	action  Action
	message string
	err     *ObjectError
	kept    []string // fields that are declared differently, but cannot change
	dropped []string // declared fields that we own and the live object lacks
	handed  []change.HandedOver

	takenBack []string // with their managers
	waits     bool     // it has to be deleted, but its deletion is not requested yet
	told      bool     // this run requested its deletion

	fields   []change.Field             // plan: fields that differ
	putBack  []change.Field             // plan: fields that would differ without webhooks
	old, new *unstructured.Unstructured // plan: before and after, if known
}

func (o outcome) result() ObjectResult {
	return ObjectResult{Ref: o.ref, Action: o.action, Message: o.message, Kept: o.kept, Dropped: o.dropped, HandedOver: o.handed, TakenBack: o.takenBack, Err: o.err, Waits: o.waits, Told: o.told}
}

// abort fails every object of the set for one reason.
func (r *run) abort(op string, err error) {
	cause := r.c.explain(Ref{}, op, err)
	r.extra = append(r.extra, cause)
	for _, d := range r.desired {
		r.outcomes[keyOf(d.ref)] = outcome{ref: d.ref, action: Failed, message: cause.Message, err: cause}
	}
}

// finished records and reports the outcome of an object.
func (r *run) finished(o outcome) {
	r.mu.Lock()
	r.outcomes[keyOf(o.ref)] = o
	r.mu.Unlock()
	r.tell(o)
}

func (r *run) tell(o outcome) {
	if r.opts.OnObject != nil {
		r.telling.Lock()
		defer r.telling.Unlock()
		result := o.result()
		result.Cluster = r.c.Name()
		r.opts.OnObject(result)
	}
}

func (r *run) fail(d *desired, err error) outcome {
	e := r.c.explain(d.ref, "apply", err)
	e.Source = d.source
	explainSize(e, d.obj)
	if e.Reason == Conflict {
		e.Hint = r.c.Commands(conflictHint(d.ref, r.e.forceHint(d.ref)))
	}
	if e.Reason == Immutable {
		e.Hint = immutableHint(" with the annotation " + r.e.keys.DeleteOnInvalidUpdate + "=true")
	}
	return outcome{ref: d.ref, action: Failed, message: e.Message, err: e}
}

// ordered returns the outcomes in order of application, then the deletions.
func (r *run) ordered() []outcome {
	out := make([]outcome, 0, len(r.outcomes)+len(r.deletion))
	for _, o := range r.outcomes {
		out = append(out, o)
	}
	slices.SortFunc(out, func(a, b outcome) int { return compareRefs(a.ref, b.ref) })
	return append(out, r.deletion...)
}

func (r *run) result() (*Result, error) {
	out := &Result{Cluster: r.c.name, Set: r.set.Name, Complete: len(r.extra) == 0}
	for _, o := range r.ordered() {
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
func (r *run) errors() error {
	all := slices.Clone(r.extra)
	once := map[Reason]*ObjectError{}
	for _, e := range all {
		once[e.Reason] = e
	}
	for _, o := range r.ordered() {
		switch {
		case o.err == nil || slices.Contains(all, o.err):
			continue
		case o.err.Reason == Unreachable || o.err.Reason == Canceled || o.err.Reason == Unauthorized || o.err.Reason == CertificateExpired:
			if once[o.err.Reason] != nil {
				continue
			}
			once[o.err.Reason] = o.err
		}
		all = append(all, o.err)
	}
	return join(all)
}
