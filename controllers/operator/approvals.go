package operator

import (
	"slices"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/controllers/landscape"
)

// approvals are the ids by which the gate lets something pass: those of the object that were not used.
func approvals(object *landscapev1alpha1.Landscape) []string {
	return landscape.OpenApprovals(object.Spec.Approved, object.Status.UsedApprovals)
}

// passed notes that something passed by an approval.
func (j *job) passed(id string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !slices.Contains(j.used, id) {
		j.used = append(j.used, id)
	}
}

// useUp notes in the status what passed in a sync that went well, and forgets what the object does not have any more.
func (s *syncer) useUp(j *job) {
	j.mu.Lock()
	defer j.mu.Unlock()
	s.status.now.UsedApprovals = landscape.UseUp(s.object.Spec.Approved, s.status.now.UsedApprovals, j.used)
	j.used = nil
}
