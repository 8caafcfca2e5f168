package operator

import (
	"fmt"
	"slices"
	"strings"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
)

// An approval counts once. The id of what is held follows from the objects alone, so that a difference before the merge and the cluster give the
// same one; the second time that it would be needed people get it with -2 at its end, then with -3.

// approvals are the ids by which the gate lets something pass: those of the object that were not used.
func approvals(object *landscapev1alpha1.Landscape) []string {
	var out []string
	for _, id := range object.Spec.Approved {
		plain, _, _ := strings.Cut(id, "-")
		if id == shownApproval(plain, object.Status.UsedApprovals) && !slices.Contains(object.Status.UsedApprovals, id) {
			out = append(out, plain)
		}
	}
	return out
}

// shownApproval is the id that people approve something by: one that was not used.
func shownApproval(id string, used []string) string {
	shown := id
	for n := 2; slices.Contains(used, shown); n++ {
		shown = fmt.Sprintf("%s-%d", id, n)
	}
	return shown
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
	used := s.status.now.UsedApprovals
	for _, id := range j.used {
		if shown := shownApproval(id, used); slices.Contains(s.object.Spec.Approved, shown) {
			used = append(slices.Clone(used), shown)
		}
	}
	j.used = nil
	s.status.now.UsedApprovals = slices.DeleteFunc(slices.Clone(used), func(id string) bool { return !slices.Contains(s.object.Spec.Approved, id) })
}
