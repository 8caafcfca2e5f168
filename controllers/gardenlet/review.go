package gardenlet

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/controllers/seedpublication"
	"github.com/pergola-dev/pergola/plan"
	"github.com/pergola-dev/pergola/render"
)

// Where a review is demanded, what Git changes must not delete or recreate more than the review could show. Not all that changes comes from
// Git: whoever hibernates a Shoot by the API, or has it updated in its maintenance, needs no review of Git. So each owner has a basis, all of it
// that comes from Git: the published settings, and when the operator last changed an object that the owner is rendered from. As long as
// an owner has the basis with which it was converged last, nothing is held for the sake of the review.

// bases remembers with which basis owners were converged. It is kept in a ConfigMap on the seed, and outlives the process by that.
type bases struct {
	mu sync.Mutex
	// known is nil before it was read.
	known map[string]string
}

// basesName is that ConfigMap.
const basesName = "pergola-gardenlet-reviewed"

// basesRef refers to it.
func basesRef() apply.Ref {
	return apply.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: owner.InventoryNamespace, Name: basesName}
}

// basesKey is how an owner is named in it.
func basesKey(kind string, o *unstructured.Unstructured) string {
	return strings.TrimSuffix(strings.Join([]string{kind, o.GetName(), o.GetNamespace()}, "."), ".")
}

// basisOf says all that comes from Git of what an owner is rendered from. around are the objects that it is rendered from besides the
// settings, with the digest of these.
func basisOf(settings string, around []*unstructured.Unstructured) string {
	sum := sha256.New()
	fmt.Fprintln(sum, settings)
	for _, o := range around {
		if at := declaredAt(o); at != "" {
			fmt.Fprintln(sum, o.GetKind(), o.GetNamespace(), o.GetName(), at)
		}
	}
	return hex.EncodeToString(sum.Sum(nil))[:16]
}

// declaredAt is when the operator last changed what Git says of an object; empty for one that is not in Git.
func declaredAt(o *unstructured.Unstructured) string {
	if o == nil {
		return ""
	}
	for _, m := range o.GetManagedFields() {
		if m.Manager == landscape.FieldManager && m.Time != nil {
			return m.Time.UTC().Format(time.RFC3339)
		}
	}
	return ""
}

// bindsInGit is left of the managed fields of a Shoot whose Seed Git names. Of the others reviews show nothing of what runs for them.
const bindsInGit = `{"f:spec":{"f:seedName":{}}}`

// onlyDeclared keeps of the managed fields what is asked here: when the operator wrote last, and whether Git names the Seed.
func onlyDeclared(fields []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	var out []metav1.ManagedFieldsEntry
	for _, m := range fields {
		if m.Manager != landscape.FieldManager || m.Subresource != "" || m.Operation != metav1.ManagedFieldsOperationApply {
			continue
		}
		left := metav1.ManagedFieldsEntry{Manager: m.Manager, Operation: m.Operation, APIVersion: m.APIVersion, Time: m.Time}
		var sets struct {
			Spec map[string]any `json:"f:spec"`
		}
		if m.FieldsV1 != nil && json.Unmarshal(m.FieldsV1.Raw, &sets) == nil && sets.Spec["f:seedName"] != nil {
			left.FieldsType, left.FieldsV1 = m.FieldsType, &metav1.FieldsV1{Raw: []byte(bindsInGit)}
		}
		out = append(out, left)
	}
	return out
}

// isShown tells whether a difference of revisions shows what runs for an owner. Each Seed for which something is published is in Git.
func isShown(o *unstructured.Unstructured) bool {
	return o.GetKind() == kindSeed || slices.ContainsFunc(o.GetManagedFields(), func(m metav1.ManagedFieldsEntry) bool {
		return m.FieldsV1 != nil && string(m.FieldsV1.Raw) == bindsInGit
	})
}

// reviewed is the question that the gate asks for an owner: nil where no review is demanded.
func (g *Gardenlet) reviewed(from sources, o render.Owner, s *settings) func(cluster string, ref plan.Ref) bool {
	if !s.reviewed {
		return nil
	}
	controlPlane := ""
	if o.Kind == owner.Shoot {
		controlPlane = o.ControlPlaneNamespace
	}
	return func(_ string, ref plan.Ref) bool {
		if landscape.NeedsNoReview(ref) || g.basisIs(from) {
			return true
		}
		review, err := seedpublication.ReadReview(g.objects.get(kindReview, seedpublication.Namespace(g.Seed), seedpublication.ReviewName))
		if err != nil {
			g.say(g.objects.get(kindSeed, "", g.Seed), "ReviewUnreadable", err.Error())
		}
		return review.Has(o.String(), isShown(from.object), seedpublication.ObjectIn(controlPlane, ref))
	}
}

// basisIs tells whether an owner was converged with its basis before.
func (g *Gardenlet) basisIs(from sources) bool {
	g.bases.mu.Lock()
	defer g.bases.mu.Unlock()
	return from.basis != "" && g.bases.known[basesKey(from.kind, from.object)] == from.basis
}

// readBases reads what a former process has noted. While it cannot be read, all that is lost needs a review.
func (g *Gardenlet) readBases(ctx context.Context) {
	g.bases.mu.Lock()
	defer g.bases.mu.Unlock()
	if g.bases.known != nil {
		return
	}
	live, err := g.local.GetLive(ctx, basesRef())
	if err != nil && !apierrors.IsNotFound(err) {
		g.Log.Info("what was reviewed could not be read yet", "error", g.local.Explain(basesRef(), "read", err))
		return
	}
	g.bases.known = map[string]string{}
	if err == nil {
		data, _, _ := unstructured.NestedStringMap(live.Object, "data")
		for key, basis := range data {
			g.bases.known[key] = basis
		}
	}
}

// leaveBasis forgets the basis of an owner that is about to be converged with another one: should Git go back to the former one halfway,
// what came with the other one must not go unseen.
func (g *Gardenlet) leaveBasis(ctx context.Context, from sources) {
	g.bases.mu.Lock()
	defer g.bases.mu.Unlock()
	if was := g.bases.known[basesKey(from.kind, from.object)]; was != "" && was != from.basis {
		g.writeBasis(ctx, from, "")
		g.bases.known[basesKey(from.kind, from.object)] = ""
	}
}

// noteBasis remembers that an owner was converged with its basis, and nothing was held for the sake of the review.
func (g *Gardenlet) noteBasis(ctx context.Context, from sources) {
	key := basesKey(from.kind, from.object)
	g.bases.mu.Lock()
	defer g.bases.mu.Unlock()
	if g.bases.known != nil && g.bases.known[key] != from.basis && g.writeBasis(ctx, from, from.basis) {
		g.bases.known[key] = from.basis
	}
}

// writeBasis puts the basis of an owner into the ConfigMap; the lock is held.
func (g *Gardenlet) writeBasis(ctx context.Context, from sources, basis string) bool {
	data := map[string]any{basesKey(from.kind, from.object): basis}
	_, err := g.local.MergePatch(ctx, basesRef(), map[string]any{"data": data}, "gardenlet", "")
	if apierrors.IsNotFound(err) {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": data}}
		o.SetNamespace(basesRef().Namespace)
		o.SetName(basesName)
		_, err = g.local.Dynamic().Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(o.GetNamespace()).Create(ctx, o, metav1.CreateOptions{FieldManager: "gardenlet"})
	}
	if err != nil {
		g.Log.Info("what was reviewed could not be noted yet", "error", g.local.Explain(basesRef(), "note", err))
	}
	return err == nil
}

// heldUnreviewed tells whether something is held because no review could show it.
func heldUnreviewed(held []owner.HeldObjects) bool {
	return slices.ContainsFunc(held, func(h owner.HeldObjects) bool {
		return slices.ContainsFunc(h.Objects, func(o apply.Held) bool { return o.Reason == plan.NotReviewed })
	})
}

// seeReview converges owners again of which something was held when what was reviewed became known.
func (g *Gardenlet) seeReview() {
	review := g.objects.get(kindReview, seedpublication.Namespace(g.Seed), seedpublication.ReviewName)
	if review == nil || review.GetResourceVersion() == g.reviewSeen {
		return
	}
	g.reviewSeen = review.GetResourceVersion()
	for _, id := range g.ids() {
		if at := g.site(id); at != nil && at.waitsForReview() {
			at.poke()
		}
	}
}
