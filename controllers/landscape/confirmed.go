package landscape

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/plan"
)

// The removal of a Garden, Seed, Shoot or Project takes a confirmation: the annotation that the API demands for its deletion, in the file before that
// is removed or on the live object, or an approval by the id of the removal. An approval is not used up by that: nothing passes.

// annotationDeletion confirms that an object may be deleted (upstream's).
const annotationDeletion = "confirmation.gardener.cloud/deletion"

// confirmed tells whether somebody has confirmed that an object of which the file is gone shall go.
func (c *Converger) confirmed(ctx context.Context, cluster string, e apply.Entry) bool {
	if id := plan.ApprovalOf(cluster, e.Ref); isConfirmed(e.Annotations) || c.options.Gate.Approved[id] || slices.Contains(c.approved, id) {
		return true
	}
	live := c.clusters[cluster].Cached(e.Ref)
	if live == nil {
		// An object that cannot be read is not confirmed: it is held either way.
		live, _ = c.clusters[cluster].GetLive(ctx, e.Ref)
	}
	return live != nil && isConfirmed(live.GetAnnotations())
}

// heldOwner says why an object is not deleted because its file is gone, and the id that confirms its removal; empty when it is confirmed.
func (c *Converger) heldOwner(ctx context.Context, cluster string, e apply.Entry) (reason, id string) {
	return removalHeld(cluster, e.Ref, c.confirmed(ctx, cluster, e))
}

// RemovalHeld says why an object of a kind of HoldsRemoval stays although its file is gone, and the id that confirms its removal, as far as
// its last declaration tells; see heldOwner.
func RemovalHeld(cluster string, declared *unstructured.Unstructured) (reason, id string) {
	return removalHeld(cluster, apply.RefOf(declared), isConfirmed(declared.GetAnnotations()))
}

func removalHeld(cluster string, ref apply.Ref, confirmed bool) (reason, id string) {
	if confirmed {
		return fmt.Sprintf("its file is gone and its deletion is confirmed, but this version cannot take down a %[1]s with what runs for it: "+
			"delete it by hand, with everything that belongs to it, or put the file back", ref.Kind), ""
	}
	id = plan.ApprovalOf(cluster, ref)
	return fmt.Sprintf("its file is gone, but that alone does not delete a %s: what runs for it would be left behind. Put the file back, or confirm the removal "+
		"by approving %s, or by: kubectl annotate %s %s=true", ref.Kind, id, apply.KubectlName(ref), annotationDeletion), id
}

func isConfirmed(annotations map[string]string) bool {
	ok, err := strconv.ParseBool(annotations[annotationDeletion])
	return err == nil && ok
}
