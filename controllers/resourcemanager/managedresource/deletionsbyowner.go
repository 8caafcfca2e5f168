// SPDX-License-Identifier: Apache-2.0

package managedresource

import (
	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
)

// AnnotationDeletions on a ManagedResource says who deletes its former objects. With
// DeletionsByOwner its author does, after the landscape's deletion gate and approvals, which a
// resource manager does not know.
const (
	AnnotationDeletions = "landscape.pergola.dev/deletions"
	DeletionsByOwner    = "by-owner"
)

// isDeletionByOwner reports whether the author of a ManagedResource deletes its former objects, and
// all objects of a deleted ManagedResource.
func (r *Reconciler) isDeletionByOwner(mr *resourcesv1alpha1.ManagedResource) bool {
	return r.Deletion.AllowByOwner && mr.Annotations[AnnotationDeletions] == DeletionsByOwner
}

// withoutDeletions returns options that delete nothing, not even to recreate it.
func withoutDeletions(o apply.ApplyOptions) apply.ApplyOptions {
	o.NoDelete = true
	o.HoldRecreate = func(apply.Entry) *change.Reason {
		return &change.Reason{Code: landscapev1alpha1.HeldForManagedResourceWriter, Detail: "it must be recreated, which is left to the author of the ManagedResource"}
	}
	return o
}
