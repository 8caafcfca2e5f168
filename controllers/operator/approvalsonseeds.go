// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"fmt"
	"slices"
	"strings"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/controllers/landscape"
)

// The operator knows held deletions of a seed and their ids only from the seed's report. Anyone who
// knows object names can compute an id. So an approval for a seed counts on that seed only:
// spec.approved has SEED/ID for it and ID for the operator's own clusters.

// ApprovalText returns an id as `pergola approve` and spec.approved take it, or "" for no id.
func ApprovalText(cluster, id string) string {
	if id == "" || !isClusterOfSeed(cluster) {
		return id
	}
	return cluster + "/" + id
}

// isClusterOfSeed reports whether a cluster of status.held belongs to a gardenlet, not to the
// operator.
func isClusterOfSeed(cluster string) bool {
	return cluster != landscape.Runtime && cluster != landscape.Virtual
}

// resolveApproval resolves an id that a person gives. The cluster is an optional prefix, required
// if the id is ambiguous. With onSeed and a seed prefix the id need not be in status.held.
func resolveApproval(held []landscapev1alpha1.HeldDeletion, given string, onSeed bool) (string, error) {
	cluster, id, named := strings.Cut(given, "/")
	if !named {
		cluster, id = "", given
	}
	var found, choices []string
	for _, h := range held {
		if id == "" || h.Approval != id && h.Together != id || named && h.Cluster != cluster || onSeed && !isOnSeed(h) {
			continue
		}
		if text := ApprovalText(h.Cluster, id); !slices.Contains(found, text) {
			found, choices = append(found, text), append(choices, h.Cluster+"/"+id)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return "", fmt.Errorf("several clusters hold something with the id %q: choose %s", id, strings.Join(choices, " or "))
	case onSeed && named && cluster != "" && id != "":
		return given, nil
	case onSeed:
		return "", fmt.Errorf("--on-seed: the Landscape lists no held deletion on a seed with the id %q: name the seed, as in SEED/%s", given, id)
	}
	return "", fmt.Errorf("no held deletion has the id %q: see status.held of the Landscape; if only an Event DeletionHeld shows the id, add --on-seed", given)
}
