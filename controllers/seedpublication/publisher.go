// SPDX-License-Identifier: Apache-2.0

package seedpublication

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
)

// FieldManager owns the published objects.
const FieldManager = "pergola-publication"

// defaultGracePeriod is how long parts stay after the pointer no longer names them: a gardenlet may
// be reading.
const defaultGracePeriod = 10 * time.Minute

// Publisher writes publications into the virtual garden.
type Publisher struct {
	Engine *apply.Engine
	Clock  clock.PassiveClock
	// GracePeriod is how long previous parts stay; the default is 10 minutes.
	GracePeriod time.Duration
}

// PublishResult is the result of a publication.
type PublishResult struct {
	// ChangedObjects is the number of changed objects; it is 0 if all exist unchanged.
	ChangedObjects int
	// Revision and Digest are the revision and the digest of the current publication: without
	// changes, the revision is older than the given one.
	Revision, Digest string
}

// Apply publishes a content for a seed; an unchanged one costs no request. The Seed must exist in
// the virtual garden, because its namespace belongs to it.
func (p *Publisher) Apply(ctx context.Context, virtual *apply.Cluster, c *Content, seed, revision string) (PublishResult, error) {
	next, err := New(c, revision)
	if err != nil {
		return PublishResult{}, err
	}
	former, err := p.currentPublication(ctx, virtual, seed)
	if err != nil {
		return PublishResult{}, err
	}
	next.PublishedAt = p.Clock.Now()
	switch {
	case former == nil:
		if err := ensureNamespace(ctx, virtual, seed); err != nil {
			return PublishResult{}, err
		}
	case former.Digest == next.Digest:
		next.Revision, next.PublishedAt, next.PreviousDigest = former.Revision, former.PublishedAt, former.PreviousDigest
	default:
		next.PreviousDigest = former.Digest
	}
	if former != nil && former.Review != "" && next.Review == "" {
		if err := deleteReview(ctx, virtual, seed); err != nil {
			return PublishResult{}, err
		}
	}
	out := PublishResult{Revision: next.Revision, Digest: next.Digest}
	// Parts first: a reader that sees the pointer finds them.
	for _, step := range []struct {
		name    string
		objects []*unstructured.Unstructured
		keep    func([]apply.Entry) []apply.HeldObject
	}{
		{"publication-parts", next.Parts(seed), p.holdPartsInUse(former)},
		{"publication", []*unstructured.Unstructured{next.Pointer(seed)}, nil},
	} {
		set := apply.Set{Name: SeedNamespace(seed) + "/" + step.name, Objects: step.objects, FieldManager: FieldManager, TakeBack: true}
		inventory := apply.NewConfigMapInventory(virtual, SeedNamespace(seed), "pergola-inventory."+step.name, nil)
		result, err := p.Engine.Apply(ctx, virtual, set, inventory, apply.ApplyOptions{ApprovePrune: step.keep, NoWait: true})
		if result != nil {
			for _, o := range result.Objects {
				if o.Action != apply.Unchanged && o.Action != apply.HeldBack {
					out.ChangedObjects++
				}
			}
		}
		if err != nil {
			return out, fmt.Errorf("publishing for seed %s: %w", seed, err)
		}
	}
	return out, nil
}

// currentPublication returns the header of the current pointer, or nil if none exists or it cannot
// be read.
func (p *Publisher) currentPublication(ctx context.Context, virtual *apply.Cluster, seed string) (*Publication, error) {
	ref := apply.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: SeedNamespace(seed), Name: PointerName}
	live, err := virtual.Get(ctx, ref)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("publishing for seed %s: %w", seed, virtual.Explain(ref, "read", err))
	}
	found, _, err := parsePointer(live)
	if err != nil {
		return nil, nil //nolint:nilerr // it is written again
	}
	return &found, nil
}

// holdPartsInUse holds the deletion of parts that the pointer names, or named until a moment ago.
func (p *Publisher) holdPartsInUse(former *Publication) func([]apply.Entry) []apply.HeldObject {
	return func(entries []apply.Entry) []apply.HeldObject {
		var out []apply.HeldObject
		for _, e := range entries {
			if former != nil && p.isPartInUse(e.Ref.Name, former) {
				out = append(out, apply.HeldObject{Ref: e.Ref, Reason: change.Reason{Code: landscapev1alpha1.HeldReadBySeed, Detail: "a seed may be reading it"}})
			}
		}
		return out
	}
}

func (p *Publisher) isPartInUse(name string, former *Publication) bool {
	of := func(digest string) bool { return strings.HasPrefix(name, PointerName+"-"+shortDigest(digest)+"-") }
	grace := p.GracePeriod
	if grace <= 0 {
		grace = defaultGracePeriod
	}
	return of(former.Digest) || former.PreviousDigest != "" && of(former.PreviousDigest) && p.Clock.Since(former.PublishedAt) < grace
}

// ensureNamespace creates the namespace of a seed, as upstream's controller-manager does. The Seed
// owns it.
func ensureNamespace(ctx context.Context, virtual *apply.Cluster, seed string) error {
	ref := apply.Ref{APIVersion: gardencorev1beta1.SchemeGroupVersion.String(), Kind: "Seed", Name: seed}
	live, err := virtual.GetLive(ctx, ref)
	if err != nil {
		return fmt.Errorf("publishing for seed %s: %w", seed, virtual.Explain(ref, "read", err))
	}
	client, err := kubernetes.NewForConfig(virtual.RESTConfig())
	if err != nil {
		return fmt.Errorf("cluster %s: %w", virtual.Name(), err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: SeedNamespace(seed), Labels: map[string]string{gardencorev1beta1.GardenRole: gardencorev1beta1.GardenRoleSeed},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(live, gardencorev1beta1.SchemeGroupVersion.WithKind("Seed"))},
	}}
	_, err = client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{FieldManager: FieldManager})
	if err == nil || apierrors.IsAlreadyExists(err) {
		return nil
	}
	return fmt.Errorf("publishing for seed %s: %w", seed, virtual.Explain(apply.Ref{APIVersion: "v1", Kind: "Namespace", Name: SeedNamespace(seed)}, "create", err))
}
