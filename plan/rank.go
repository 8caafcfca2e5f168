package plan

import "slices"

// rank is how bad it is to overlook an object among others to which the same happens, the worst first: what others go with, what has data,
// what runs, and the rest.
func (r Ref) rank() int {
	switch {
	case !r.known():
	case deletions[r.Kind] != "":
		return 0
	case r.Kind == "StatefulSet":
		return 1
	case slices.Contains(workloads, r.Kind):
		return 2
	}
	return 3
}

// workloads are the kinds that have pods, besides those with data.
var workloads = []string{"Deployment", "DaemonSet", "ReplicaSet", "ReplicationController", "CronJob", "Job", "Pod"}
