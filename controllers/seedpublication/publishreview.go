package seedpublication

import (
	"context"
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pergola-dev/pergola/apply"
)

// ApplyReview publishes for a seed what a change shows of deletions and recreations there. It has to come before the change itself, so that
// nothing is held that was to be seen. It costs no write when that is known already; a seed without a namespace has nothing to lose.
func (p *Publisher) ApplyReview(ctx context.Context, virtual *apply.Cluster, c Change, seed string) error {
	ref := apply.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: Namespace(seed), Name: ReviewName}
	live, err := virtual.GetLive(ctx, ref)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("publishing what was reviewed for seed %s: %w", seed, virtual.Explain(ref, "read", err))
	}
	if apierrors.IsNotFound(err) {
		live = nil
	}
	before, err := ReadReview(live)
	unreadable := err != nil
	after := before.after(c, p.Clock.Now())
	if !unreadable && (len(after.entries) == 0 && len(before.entries) == 0 || reflect.DeepEqual(before.entries, after.entries)) {
		return nil
	}
	if live == nil {
		namespace := apply.Ref{APIVersion: "v1", Kind: "Namespace", Name: Namespace(seed)}
		if _, err := virtual.GetLive(ctx, namespace); apierrors.IsNotFound(err) {
			return nil
		}
	}
	configMap, err := after.configMap(seed)
	if err != nil {
		return err
	}
	configMaps := virtual.Dynamic().Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(Namespace(seed))
	if _, err := configMaps.Apply(ctx, ReviewName, configMap, metav1.ApplyOptions{FieldManager: FieldManager, Force: true}); err != nil {
		return fmt.Errorf("publishing what was reviewed for seed %s: %w", seed, virtual.Explain(ref, "apply", err))
	}
	return nil
}
