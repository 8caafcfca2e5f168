// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// completeDeclaration calls ApplyOptions.Complete to fill in fields that the declaration leaves
// open.
func (r *setRun) completeDeclaration(w *applyRequest, d *desiredObject, live *unstructured.Unstructured) error {
	if r.opts.CompleteDeclaration == nil {
		return nil
	}
	full, err := r.opts.CompleteDeclaration(d.obj, live)
	if err != nil {
		return fmt.Errorf("completing its declaration: %w", err)
	}
	if full == d.obj {
		return nil
	}
	completed := *d
	completed.obj = full
	w.desiredObject, w.toSend, w.handedOver, w.fieldsToTakeBack = &completed, full, nil, nil
	if live != nil {
		r.deferFields(w, live)
		w.adjustToLive(live, r.set.FieldManager)
	}
	return nil
}
