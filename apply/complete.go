package apply

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// complete calls ApplyOptions.Complete to fill in fields that the declaration leaves open.
func (r *run) complete(w *wanted, d *desired, live *unstructured.Unstructured) error {
	if r.opts.Complete == nil {
		return nil
	}
	full, err := r.opts.Complete(d.obj, live)
	if err != nil {
		return fmt.Errorf("filling in what its declaration leaves open: %w", err)
	}
	if full == d.obj {
		return nil
	}
	completed := *d
	completed.obj = full
	w.desired, w.send, w.handed, w.reclaimed = &completed, full, nil, nil
	if live != nil {
		r.yield(w, live)
		w.adjust(live, r.set.FieldManager)
	}
	return nil
}
