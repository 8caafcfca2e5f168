// SPDX-License-Identifier: Apache-2.0

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

// If a review is required, a change in Git must not delete or recreate more than the review showed.
// API changes, such as hibernation or an update in the maintenance window, need no review. So each
// owner has a basis: the published settings, and when the operator last changed each object that
// the owner is rendered from. While the basis is that of the last reconciliation, no review is
// needed.

// recordsConfigMap is the ConfigMap on the seed that has a permit.ConvergenceRecord of each owner.
const recordsConfigMap = "pergola-gardenlet-reviewed"

// convergenceRecordKey is the key of an owner in that ConfigMap.
func convergenceRecordKey(kind string, o *unstructured.Unstructured) string {
	return strings.TrimSuffix(strings.Join([]string{kind, o.GetName(), o.GetNamespace()}, "."), ".")
}

// gitDigestOf returns a digest of the inputs from Git: the settings' digest, and the time of the
// last declaration of each object in around.
func gitDigestOf(settings string, around []*unstructured.Unstructured) string {
	sum := sha256.New()
	fmt.Fprintln(sum, settings)
	for _, o := range around {
		if at := declarationTime(o); at != "" {
			fmt.Fprintln(sum, o.GetKind(), o.GetNamespace(), o.GetName(), at)
		}
	}
	return hex.EncodeToString(sum.Sum(nil))[:16]
}

// declarationTime is when the operator last applied the declaration of an object; it is empty if
// Git declares none.
func declarationTime(o *unstructured.Unstructured) string {
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

// seedNameInGit is the stored part of the managed fields of a Shoot whose Seed Git names. For other
// Shoots, reviews do not show the objects on the seed.
const seedNameInGit = `{"f:spec":{"f:seedName":{}}}`

// reduceManagedFields reduces managed fields to the time of the operator's last write, and whether
// Git names the Seed.
func reduceManagedFields(fields []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
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
			left.FieldsType, left.FieldsV1 = m.FieldsType, metav1.NewFieldsV1(seedNameInGit)
		}
		out = append(out, left)
	}
	return out
}

// isInReviews reports whether the diff of two revisions shows the objects of an owner. Every Seed
// with a publication is in Git.
func isInReviews(o *unstructured.Unstructured) bool {
	return o.GetKind() == kindSeed || slices.ContainsFunc(o.GetManagedFields(), func(m metav1.ManagedFieldsEntry) bool {
		return m.FieldsV1 != nil && m.FieldsV1.GetRawString() == seedNameInGit
	})
}

// reviewCheck returns the gate's review check for an owner, or nil if no review is required.
func (g *Gardenlet) reviewCheck(from renderSources, o render.Owner, s *settings) func(cluster string, ref change.Ref) bool {
	if !s.requiresReview {
		return nil
	}
	controlPlane := ""
	if o.Kind == owner.Shoot {
		controlPlane = o.ControlPlaneNamespace
	}
	return func(_ string, ref change.Ref) bool {
		was, _ := g.convergenceRecordOf(from)
		if !was.IsReviewRequired(from.gitDigest, ref) {
			return true
		}
		review, err := g.readReview()
		if err != nil {
			g.warnOnce(g.objects.get(kindSeed, "", g.options.Seed), "ReviewUnreadable", err.Error())
		}
		return review.HasLoss(o.String(), isInReviews(from.object), permit.NormalizedObject(controlPlane, ref), was.CompletedChange)
	}
}

// readReview returns the published reviews; if they are unreadable, it is empty.
func (g *Gardenlet) readReview() (*permit.SeedReview, error) {
	return seedpublication.ReadReview(g.publishedReview())
}

func (g *Gardenlet) publishedReview() *unstructured.Unstructured {
	return g.objects.get(kindPublicationReview, seedpublication.SeedNamespace(g.options.Seed), seedpublication.ReviewName)
}

// reviewVersion changes with every publication of reviews.
func (g *Gardenlet) reviewVersion() string {
	if o := g.publishedReview(); o != nil {
		return o.GetResourceVersion()
	}
	return ""
}

// convergenceRecordOf returns the record of an owner's last reconciliation, and whether one exists.
func (g *Gardenlet) convergenceRecordOf(from renderSources) (permit.ConvergenceRecord, bool) {
	return g.seedRecords.records.Get(convergenceRecordKey(from.kind, from.object))
}

// beginConvergenceRecord starts the record of a reconciliation, and returns the number of the last
// completely applied change. A new owner loses nothing, unless an earlier owner of its name left
// objects: no earlier review shows that this owner loses them.
func (g *Gardenlet) beginConvergenceRecord(ctx context.Context, from renderSources, s *settings, o owner.Owner) (complete int) {
	g.readRecords(ctx)
	if !s.requiresReview {
		g.updateConvergenceRecord(ctx, from, func(was permit.ConvergenceRecord, _ bool) permit.ConvergenceRecord { return was.BeginConvergence("") })
		return 0
	}
	review, _ := g.readReview() // empty if it is unreadable
	_, known := g.convergenceRecordOf(from)
	_, begun, _ := unstructured.NestedMap(from.object.Object, "status", "lastOperation")
	fresh, first := !known && !begun, permit.ConvergenceRecord{GitDigest: from.gitDigest, CompletedChange: review.CompleteNumber}
	if fresh {
		if left, err := owner.HasInventory(ctx, o); left || err != nil {
			first.GitDigest = ""
		}
	}
	g.updateConvergenceRecord(ctx, from, func(was permit.ConvergenceRecord, known bool) permit.ConvergenceRecord {
		if fresh && !known {
			return first
		}
		return was.BeginConvergence(from.gitDigest)
	})
	return review.CompleteNumber
}

// updateConvergenceRecord changes the record of an owner. The change counts in memory at once,
// unless it allows more than the stored record.
func (g *Gardenlet) updateConvergenceRecord(ctx context.Context, from renderSources, change func(was permit.ConvergenceRecord, known bool) permit.ConvergenceRecord) {
	err := g.seedRecords.records.Change(ctx, convergenceRecordKey(from.kind, from.object), func(was permit.ConvergenceRecord, known bool) (permit.ConvergenceRecord, bool) {
		next := change(was, known)
		return next, next.GitDigest == ""
	})
	if err != nil {
		g.options.Log.Info("cannot record the review yet", "error", err)
	}
}

// triggerReviewedOwners reconciles the owners that wait for a review again when reviews are
// published.
func (g *Gardenlet) triggerReviewedOwners() {
	version := g.reviewVersion()
	if version == "" || version == g.seedRecords.handledReview {
		return
	}
	g.seedRecords.handledReview = version
	for _, at := range g.fleet.Owners() {
		if at.isAwaitingReview() {
			g.fleet.Trigger(at.id)
		}
	}
}
