package operator

import (
	"fmt"
	"slices"
	"strings"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/controllers/landscape"
)

// What a seed holds, and by which id that passes, the operator knows from the seed alone, and an id
// can be computed by whoever knows the names of objects. So an approval of something on a seed
// counts there and nowhere else: in spec.approved it stands as SEED/ID, one of the operator as ID.

// ApprovalText is how an id of what is held on a cluster is given to `pergola approve`, and stands
// in spec.approved; empty for no id.
func ApprovalText(cluster, id string) string {
	if id == "" || !isClusterOfSeed(cluster) {
		return id
	}
	return cluster + "/" + id
}

// isClusterOfSeed tells the clusters of which status.held speaks for gardenlets: those of the
// operator are the two others.
func isClusterOfSeed(cluster string) bool {
	return cluster != landscape.Runtime && cluster != landscape.Virtual
}

// approvalOf finds what an id that a person gives stands for: it may begin with the cluster, and
// has to where several show it. With onSeed it need not be held, if it says the seed.
func approvalOf(held []landscapev1alpha1.HeldDeletion, given string, onSeed bool) (string, error) {
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
		return "", fmt.Errorf("several clusters say that they hold something with the id %q: give the one that you mean, %s", id, strings.Join(choices, " or "))
	case onSeed && named && cluster != "" && id != "":
		return given, nil
	case onSeed:
		return "", fmt.Errorf("--on-seed: the Landscape lists nothing on a seed with the id %q: say on which one it is, as in SEED/%s", given, id)
	}
	return "", fmt.Errorf("nothing that is held has the id %q: status.held of the Landscape shows what waits. An id of an Event DeletionHeld of a Seed or Shoot that is not there, because it is new or there are too many, takes --on-seed", given)
}
