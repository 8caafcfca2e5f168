package managedresource

import (
	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
)

// AnnotationDeletions says on a ManagedResource who deletes what leaves it. With DeletionsByOwner
// that is who wrote it, who asks the deletion gate of the landscape and the approvals before, which
// a resource manager does not know.
const (
	AnnotationDeletions = "landscape.pergola.dev/deletions"
	DeletionsByOwner    = "by-owner"
)

// leavesDeletions tells whether what a ManagedResource loses is for somebody else to delete: all of
// it with the ManagedResource itself, too.
func (r *Reconciler) leavesDeletions(mr *resourcesv1alpha1.ManagedResource) bool {
	return r.Deletion.LeaveDeletions && mr.Annotations[AnnotationDeletions] == DeletionsByOwner
}

// withoutDeletions are options by which nothing is lost, not even to come back at once as another
// object.
func withoutDeletions(o apply.ApplyOptions) apply.ApplyOptions {
	o.NoDelete = true
	o.HoldRecreate = func(apply.Entry) *change.Reason {
		return &change.Reason{Code: landscapev1alpha1.HeldForWriter, Detail: "it has to be made anew, which is left to who wrote the ManagedResource"}
	}
	return o
}
