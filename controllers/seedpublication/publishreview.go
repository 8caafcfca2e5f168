// SPDX-License-Identifier: Apache-2.0

package seedpublication

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/permit"
)

// PublishReview publishes the reviewed deletions and recreations of a change for a seed. It must
// run before the change, so that reviewed deletions are not held. It writes only if they are new; a
// seed without a namespace needs none.
func (p *Publisher) PublishReview(ctx context.Context, virtual *apply.Cluster, c permit.SeedChange, seed string) error {
	live, err := p.liveReview(ctx, virtual, seed)
	if err != nil {
		return err
	}
	before, err := ReadReview(live)
	after := before.WithChange(c, p.Clock.Now())
	if err == nil && after == before {
		return nil
	}
	if live == nil {
		namespace := apply.Ref{APIVersion: "v1", Kind: "Namespace", Name: SeedNamespace(seed)}
		if _, err := virtual.GetLive(ctx, namespace); apierrors.IsNotFound(err) {
			return nil
		}
	}
	return p.writeReview(ctx, virtual, after, seed)
}

// CompleteReview records that the last published review is applied completely.
func (p *Publisher) CompleteReview(ctx context.Context, virtual *apply.Cluster, seed string) error {
	live, err := p.liveReview(ctx, virtual, seed)
	if err != nil || live == nil {
		return err
	}
	r, err := ReadReview(live)
	if err != nil || r.CompleteNumber == r.Number {
		return nil //nolint:nilerr // the next change writes it again
	}
	r.CompleteNumber = r.Number
	return p.writeReview(ctx, virtual, r, seed)
}

// deleteReview deletes the reviewed deletions of a seed when reviews are no longer required: later
// changes are not reviewed.
func deleteReview(ctx context.Context, virtual *apply.Cluster, seed string) error {
	ref := reviewRef(seed)
	configMaps := virtual.Dynamic().Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(ref.Namespace)
	if err := configMaps.Delete(ctx, ref.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("withdrawing the review for seed %s: %w", seed, virtual.Explain(ref, "delete", err))
	}
	return nil
}

func reviewRef(seed string) apply.Ref {
	return apply.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: SeedNamespace(seed), Name: ReviewName}
}

// liveReview reads the ConfigMap, or nil if it does not exist.
func (p *Publisher) liveReview(ctx context.Context, virtual *apply.Cluster, seed string) (*unstructured.Unstructured, error) {
	live, err := virtual.GetLive(ctx, reviewRef(seed))
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("publishing the review for seed %s: %w", seed, virtual.Explain(reviewRef(seed), "read", err))
	}
	return live, nil
}

func (p *Publisher) writeReview(ctx context.Context, virtual *apply.Cluster, r *permit.SeedReview, seed string) error {
	configMap, err := reviewConfigMap(r, seed)
	if err != nil {
		return err
	}
	configMaps := virtual.Dynamic().Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(SeedNamespace(seed))
	if _, err := configMaps.Apply(ctx, ReviewName, configMap, metav1.ApplyOptions{FieldManager: FieldManager, Force: true}); err != nil {
		return fmt.Errorf("publishing the review for seed %s: %w", seed, virtual.Explain(reviewRef(seed), "apply", err))
	}
	return nil
}
