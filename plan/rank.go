package plan

import (
	"slices"

	"github.com/pergola-dev/pergola/change"
)

// rank is how bad it is to overlook an object among others to which the same happens, the worst
// first: what others go with, what has data, what runs, and the rest.
func rank(r change.Ref) int {
	switch {
	case !known(r):
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
