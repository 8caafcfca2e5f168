package gardenlet

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/controllers/permit"
	"github.com/pergola-dev/pergola/controllers/seedpublication"
	"github.com/pergola-dev/pergola/render"
)

// Where a review is demanded, what Git changes must not delete or recreate more than the review
// could show. Not all that changes comes from Git: whoever hibernates a Shoot by the API, or has it
// updated in its maintenance, needs no review of Git. So each owner has a basis, all of it that
// comes from Git: the published settings, and when the operator last changed an object that the
// owner is rendered from. As long as an owner has the basis with which it was converged last,
// nothing is held for the sake of the review.

// recordsName is the ConfigMap on the seed that has a permit.Converged of each owner.
const recordsName = "pergola-gardenlet-reviewed"

// recordKey is how an owner is named in it.
func recordKey(kind string, o *unstructured.Unstructured) string {
	return strings.TrimSuffix(strings.Join([]string{kind, o.GetName(), o.GetNamespace()}, "."), ".")
}

// basisOf says all that comes from Git of what an owner is rendered from. around are the objects
// that it is rendered from besides the settings, with the digest of these.
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

// declaredAt is when the operator last changed what Git says of an object; empty for one that is
// not in Git.
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

// bindsInGit is left of the managed fields of a Shoot whose Seed Git names. Of the others reviews
// show nothing of what runs for them.
const bindsInGit = `{"f:spec":{"f:seedName":{}}}`

// onlyDeclared keeps of the managed fields what is asked here: when the operator wrote last, and
// whether Git names the Seed.
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
		if m.FieldsV1 != nil && json.Unmarshal(m.FieldsV1.GetRawBytes(), &sets) == nil && sets.Spec["f:seedName"] != nil {
			left.FieldsType, left.FieldsV1 = m.FieldsType, metav1.NewFieldsV1(bindsInGit)
		}
		out = append(out, left)
	}
	return out
}

// isShown tells whether a difference of revisions shows what runs for an owner. Each Seed for which
// something is published is in Git.
func isShown(o *unstructured.Unstructured) bool {
	return o.GetKind() == kindSeed || slices.ContainsFunc(o.GetManagedFields(), func(m metav1.ManagedFieldsEntry) bool {
		return m.FieldsV1 != nil && m.FieldsV1.GetRawString() == bindsInGit
	})
}

// reviewed is the question that the gate asks for an owner: nil where no review is demanded.
func (g *Gardenlet) reviewed(from sources, o render.Owner, s *settings) func(cluster string, ref change.Ref) bool {
	if !s.reviewed {
		return nil
	}
	controlPlane := ""
	if o.Kind == owner.Shoot {
		controlPlane = o.ControlPlaneNamespace
	}
	return func(_ string, ref change.Ref) bool {
		was, _ := g.recordOf(from)
		if !was.NeedsReview(from.basis, ref) {
			return true
		}
		review, err := g.review()
		if err != nil {
			g.say(g.objects.get(kindSeed, "", g.options.Seed), "ReviewUnreadable", err.Error())
		}
		return review.Has(o.String(), isShown(from.object), permit.ObjectIn(controlPlane, ref), was.Done)
	}
}

// review is what is published of reviews; one that cannot be read has nothing.
func (g *Gardenlet) review() (*permit.SeedReview, error) {
	return seedpublication.ReadReview(g.publishedReview())
}

func (g *Gardenlet) publishedReview() *unstructured.Unstructured {
	return g.objects.get(kindReview, seedpublication.Namespace(g.options.Seed), seedpublication.ReviewName)
}

// reviewVersion changes when something is published of reviews.
func (g *Gardenlet) reviewVersion() string {
	if o := g.publishedReview(); o != nil {
		return o.GetResourceVersion()
	}
	return ""
}

// recordOf tells how an owner was converged last, and whether that is known.
func (g *Gardenlet) recordOf(from sources) (permit.Converged, bool) {
	return g.noted.records.Get(recordKey(from.kind, from.object))
}

// beginReviewed is called before an owner is converged, and gives the number of the last change
// that is applied completely by then. An owner that was never converged loses nothing, unless a
// former one of its name has left something: no review up to now has shown that this one loses it.
func (g *Gardenlet) beginReviewed(ctx context.Context, from sources, s *settings, o owner.Owner) (complete int) {
	g.readNotes(ctx)
	if !s.reviewed {
		g.note(ctx, from, func(was permit.Converged, _ bool) permit.Converged { return was.Begin("") })
		return 0
	}
	review, _ := g.review() // one that cannot be read has nothing
	_, known := g.recordOf(from)
	_, begun, _ := unstructured.NestedMap(from.object.Object, "status", "lastOperation")
	fresh, first := !known && !begun, permit.Converged{Basis: from.basis, Done: review.Complete}
	if fresh {
		if left, err := owner.HasInventory(ctx, o); left || err != nil {
			first.Basis = ""
		}
	}
	g.note(ctx, from, func(was permit.Converged, known bool) permit.Converged {
		if fresh && !known {
			return first
		}
		return was.Begin(from.basis)
	})
	return review.Complete
}

// note changes the record of an owner. In memory it counts at once, unless it allows more than the
// one that is written.
func (g *Gardenlet) note(ctx context.Context, from sources, change func(was permit.Converged, known bool) permit.Converged) {
	err := g.noted.records.Change(ctx, recordKey(from.kind, from.object), func(was permit.Converged, known bool) (permit.Converged, bool) {
		next := change(was, known)
		return next, next.Basis == ""
	})
	if err != nil {
		g.options.Log.Info("what was reviewed could not be noted yet", "error", err)
	}
}

// seeReview converges owners again of which something was held when what was reviewed became known.
func (g *Gardenlet) seeReview() {
	version := g.reviewVersion()
	if version == "" || version == g.noted.reviewSeen {
		return
	}
	g.noted.reviewSeen = version
	for _, at := range g.fleet.Owners() {
		if at.waitsForReview() {
			g.fleet.Trigger(at.id)
		}
	}
}
