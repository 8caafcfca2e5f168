package gardenlet

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/controllers/permit"
	"github.com/pergola-dev/pergola/controllers/seedpublication"
	"github.com/pergola-dev/pergola/render"
)

// Where a review is demanded, what Git changes must not delete or recreate more than the review could show. Not all that changes comes from
// Git: whoever hibernates a Shoot by the API, or has it updated in its maintenance, needs no review of Git. So each owner has a basis, all of it
// that comes from Git: the published settings, and when the operator last changed an object that the owner is rendered from. As long as
// an owner has the basis with which it was converged last, nothing is held for the sake of the review.

// What is held although it was lost long ago stays held: it needs a review or an approval. And what a review has shown counts for one time: of an
// owner that was converged after the revision was applied completely, nothing is to be expected of it any more.

// reviewRecord is how an owner was converged last.
type reviewRecord struct {
	// Basis that it was converged with; empty from when another one began until that one is done.
	Basis string `json:"basis,omitempty"`
	// Done is the number of the last change of which all is done that its review has shown.
	Done int `json:"done,omitempty"`
	// Held are objects that are kept because no review has shown that they go.
	Held []string `json:"held,omitempty"`
}

// recordsName is that ConfigMap.
const recordsName = "pergola-gardenlet-reviewed"

// recordKey is how an owner is named in it.
func recordKey(kind string, o *unstructured.Unstructured) string {
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
		if m.FieldsV1 != nil && json.Unmarshal(m.FieldsV1.GetRawBytes(), &sets) == nil && sets.Spec["f:seedName"] != nil {
			left.FieldsType, left.FieldsV1 = m.FieldsType, metav1.NewFieldsV1(bindsInGit)
		}
		out = append(out, left)
	}
	return out
}

// isShown tells whether a difference of revisions shows what runs for an owner. Each Seed for which something is published is in Git.
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
		if was.Basis == from.basis && !slices.Contains(was.Held, ref.String()) {
			return true
		}
		review, err := g.review()
		if err != nil {
			g.say(g.objects.get(kindSeed, "", g.Seed), "ReviewUnreadable", err.Error())
		}
		return review.Has(o.String(), isShown(from.object), seedpublication.ObjectIn(controlPlane, ref), was.Done)
	}
}

// review is what is published of reviews; one that cannot be read has nothing.
func (g *Gardenlet) review() (*seedpublication.Review, error) {
	return seedpublication.ReadReview(g.publishedReview())
}

func (g *Gardenlet) publishedReview() *unstructured.Unstructured {
	return g.objects.get(kindReview, seedpublication.Namespace(g.Seed), seedpublication.ReviewName)
}

// reviewVersion changes when something is published of reviews.
func (g *Gardenlet) reviewVersion() string {
	if o := g.publishedReview(); o != nil {
		return o.GetResourceVersion()
	}
	return ""
}

// recordOf tells how an owner was converged last, and whether that is known.
func (g *Gardenlet) recordOf(from sources) (reviewRecord, bool) {
	return g.noted.records.Get(recordKey(from.kind, from.object))
}

// readRecords reads what a former process has noted. While it cannot be read, all that is lost needs a review.
func (g *Gardenlet) readRecords(ctx context.Context) {
	if err := g.noted.records.Read(ctx); err != nil {
		g.Log.Info("what was reviewed could not be read yet", "error", err)
	}
}

// beginReviewed is called before an owner is converged, and gives the number of the last change that is applied completely by then. What was
// converged with another basis counts no more: should Git go back to it halfway, what came with this one must not go unseen. Of an owner that
// was never converged nothing can be lost, unless a former one of its name has left something: of that no review up to now has shown that this one loses it.
func (g *Gardenlet) beginReviewed(ctx context.Context, from sources, s *settings, o *owner.Owner) (complete int) {
	g.readRecords(ctx)
	was, known := g.recordOf(from)
	if !s.reviewed {
		if was.Basis != "" {
			was.Basis = ""
			g.note(ctx, from, was)
		}
		return 0
	}
	review, err := g.review()
	if err == nil {
		complete = review.Complete()
	}
	_, begun, _ := unstructured.NestedMap(from.object.Object, "status", "lastOperation")
	switch {
	case !known && !begun:
		next := reviewRecord{Basis: from.basis, Done: complete}
		if left, err := owner.HasInventory(ctx, o); left || err != nil {
			next.Basis = ""
		}
		g.note(ctx, from, next)
	case was.Basis != "" && was.Basis != from.basis:
		was.Basis = ""
		g.note(ctx, from, was)
	}
	return complete
}

// endReviewed notes that an owner was converged with its basis.
func (g *Gardenlet) endReviewed(ctx context.Context, from sources, complete int, held []permit.HeldObjects) {
	was, _ := g.recordOf(from)
	g.note(ctx, from, reviewRecord{Basis: from.basis, Done: max(was.Done, complete), Held: unreviewed(held)})
}

// note writes the record of an owner where it is another one. In memory it counts at once, unless it allows more than the one that is written.
func (g *Gardenlet) note(ctx context.Context, from sources, r reviewRecord) {
	err := g.noted.records.Change(ctx, recordKey(from.kind, from.object), func(was reviewRecord, _ bool) (reviewRecord, bool, bool) {
		return r, !reflect.DeepEqual(was, r), r.Basis == ""
	})
	if err != nil {
		g.Log.Info("what was reviewed could not be noted yet", "error", err)
	}
}

// unreviewed are the objects that are held because no review could show that they go.
func unreviewed(held []permit.HeldObjects) []string {
	var out []string
	for _, h := range held {
		for _, o := range h.Objects {
			if o.Reason.Code == landscapev1alpha1.HeldNotReviewed && !slices.Contains(out, o.Ref.String()) {
				out = append(out, o.Ref.String())
			}
		}
	}
	slices.Sort(out)
	return out
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
