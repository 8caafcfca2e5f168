// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// admitChange asks ApplyOptions.Admit whether an existing object may change. If the dry run fails,
// it returns nil: the apply reports that error itself.
func (r *setRun) admitChange(ctx context.Context, w applyRequest, live *unstructured.Unstructured) error {
	if r.opts.Admit == nil || live == nil {
		return nil
	}
	answer, _, err := r.cluster.patchApply(ctx, w.toSend, patchOptions{manager: r.set.FieldManager, force: true, dry: true})
	if err != nil {
		return nil
	}
	if err := r.opts.Admit(ctx, live, answer); err != nil {
		return &ObjectError{Cluster: r.cluster.name, Object: w.ref, Op: "apply", Reason: ReasonInvalid, Source: w.source, Message: err.Error(),
			Hint: "revert the change, or make it in an allowed way"}
	}
	return nil
}
