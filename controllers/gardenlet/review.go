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
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/owner"
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

// records of all owners. They are kept in a ConfigMap on the seed, and outlive the process by that.
type records struct {
	// writing is held by whoever changes them, mu for a moment only.
	writing, mu sync.Mutex
	// known is nil before it was read.
	known map[string]reviewRecord
	// elsewhere are those of Shoots that are there, but not on this seed.
	elsewhere map[string]bool
}

// recordsName is that ConfigMap.
const recordsName = "pergola-gardenlet-reviewed"

// recordsRef refers to it.
func recordsRef() apply.Ref {
	return apply.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: owner.InventoryNamespace, Name: recordsName}
}

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

// wereRead tells whether it is known what a former process has noted.
func (r *records) wereRead() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known != nil
}

// set keeps a record in memory.
func (r *records) set(key string, one reviewRecord) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known[key] = one
}

// recordOf tells how an owner was converged last, and whether that is known.
func (g *Gardenlet) recordOf(from sources) (reviewRecord, bool) {
	g.records.mu.Lock()
	defer g.records.mu.Unlock()
	r, known := g.records.known[recordKey(from.kind, from.object)]
	return r, known
}

// readRecords reads what a former process has noted. While it cannot be read, all that is lost needs a review.
func (g *Gardenlet) readRecords(ctx context.Context) {
	if g.records.wereRead() {
		return
	}
	g.records.writing.Lock()
	defer g.records.writing.Unlock()
	if g.records.wereRead() {
		return
	}
	live, err := g.local.GetLive(ctx, recordsRef())
	if err != nil && !apierrors.IsNotFound(err) {
		g.Log.Info("what was reviewed could not be read yet", "error", g.local.Explain(recordsRef(), "read", err))
		return
	}
	known := map[string]reviewRecord{}
	if err == nil {
		data, _, _ := unstructured.NestedStringMap(live.Object, "data")
		for key, text := range data {
			var r reviewRecord
			_ = json.Unmarshal([]byte(text), &r) // of one that cannot be read nothing is known
			known[key] = r
		}
	}
	g.records.mu.Lock()
	g.records.known = known
	g.records.mu.Unlock()
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
func (g *Gardenlet) endReviewed(ctx context.Context, from sources, complete int, held []owner.HeldObjects) {
	was, _ := g.recordOf(from)
	g.note(ctx, from, reviewRecord{Basis: from.basis, Done: max(was.Done, complete), Held: unreviewed(held)})
}

// note writes the record of an owner where it is another one. In memory it counts at once, unless it allows more than the one that is written.
func (g *Gardenlet) note(ctx context.Context, from sources, r reviewRecord) {
	key := recordKey(from.kind, from.object)
	g.records.writing.Lock()
	defer g.records.writing.Unlock()
	if was, _ := g.recordOf(from); !g.records.wereRead() || reflect.DeepEqual(was, r) {
		return
	}
	if r.Basis == "" {
		g.records.set(key, r)
	}
	text, err := json.Marshal(r)
	if err == nil {
		err = g.writeOnSeed(ctx, recordsRef(), map[string]any{key: string(text)})
	}
	if err != nil {
		g.Log.Info("what was reviewed could not be noted yet", "error", g.local.Explain(recordsRef(), "note", err))
		return
	}
	g.records.set(key, r)
}

// writeOnSeed changes data of a ConfigMap of the gardenlet on the seed, which is made if need be; nil takes a key away.
func (g *Gardenlet) writeOnSeed(ctx context.Context, ref apply.Ref, data map[string]any) error {
	_, err := g.local.MergePatch(ctx, ref, map[string]any{"data": data}, "gardenlet", "")
	if !apierrors.IsNotFound(err) {
		return err
	}
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": ref.APIVersion, "kind": ref.Kind, "data": data}}
	o.SetNamespace(ref.Namespace)
	o.SetName(ref.Name)
	configMaps := g.local.Dynamic().Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(o.GetNamespace())
	if _, err = configMaps.Create(ctx, o, metav1.CreateOptions{FieldManager: "gardenlet"}); apierrors.IsAlreadyExists(err) { // by the job of another owner
		_, err = g.local.MergePatch(ctx, ref, map[string]any{"data": data}, "gardenlet", "")
	}
	return err
}

// unreviewed are the objects that are held because no review could show that they go.
func unreviewed(held []owner.HeldObjects) []string {
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
	if version == "" || version == g.reviewSeen {
		return
	}
	g.reviewSeen = version
	for _, id := range g.ids() {
		if at := g.site(id); at != nil && at.waitsForReview() {
			at.poke()
		}
	}
}
