package operator

import (
	"fmt"
	"slices"
	"strings"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/controllers/landscape"
)

// approvals are the ids by which the gate lets something pass: those of the object that were not used.
func approvals(object *landscapev1alpha1.Landscape) []string {
	return landscape.OpenApprovals(object.Spec.Approved, object.Status.UsedApprovals)
}

// mostCommands is how many ids a command is shown with.
const mostCommands = 5

// toApprove is how somebody lets pass what is held, for those who have pushed it.
func (s *syncer) toApprove() string {
	var ids []string
	for _, h := range s.status.now.Held {
		if h.Approval != "" && !slices.Contains(ids, h.Approval) {
			ids = append(ids, h.Approval)
		}
	}
	shown := strings.Join(ids, " ")
	switch {
	case len(ids) == 0:
		return fmt.Sprintf(": pergola history %s shows what and why", s.key)
	case len(ids) > mostCommands:
		shown = "ID..."
	}
	return fmt.Sprintf(": pergola history %[1]s shows what and why, pergola approve %[1]s %[2]s lets it pass", s.key, shown)
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
