// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"github.com/pergola-dev/pergola/change"
)

// displayRank is the risk of overlooking an object among others with the same change, highest
// first. Kinds in deletions precede StatefulSets, other workloads, and the rest.
func displayRank(r change.Ref) int {
	switch {
	case !isKnownGroup(r):
	case deletionEffects[r.Kind] != "":
		return 0
	case r.Kind == "StatefulSet":
		return 1
	case slices.Contains(workloads, r.Kind):
		return 2
	}
	return 3
}

// workloads are the kinds with pods, except StatefulSets.
var workloads = []string{"Deployment", "DaemonSet", "ReplicaSet", "ReplicationController", "CronJob", "Job", "Pod"}
