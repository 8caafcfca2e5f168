package owner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/access"
	"github.com/pergola-dev/pergola/render"
)

// Objects in a Shoot are applied once a process serves its API server. No process does while the
// Shoot is hibernated or its pods are only played. Its ManagedResources are then written as usual,
// nothing fails, and the objects wait. A served API server that does not answer is an error.
//
// A bundle with webhooks (servedBy) is not even written until a pod of the serving Deployment is
// ready. Until then, webhooks that fail closed reject requests. Meanwhile its applied objects stay,
// are not restored after a deletion, and are deleted with the bundle as usual.

// serving caches, for one pass over an owner, whether the API server of the Shoot is served, and
// which Deployments serve webhooks. The zero value is empty.
type serving struct {
	mu        sync.Mutex
	known, is bool
	ready     map[string]bool
}

// answered records that the API server has answered.
func (s *serving) answered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known, s.is = true, true
}

func (s *serving) of(ctx context.Context, o *subject) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known { // only the first call makes a request
		return s.is, nil
	}
	is, err := o.isServed(ctx)
	if err == nil {
		s.known, s.is = true, is
	}
	return is, err
}

// isServed is of, with false for errors.
func (s *serving) isServed(ctx context.Context, o *subject) bool {
	is, err := s.of(ctx, o)
	return err == nil && is
}

// reaches reports whether a bundle can be applied to its cluster now. Only a Shoot's API server may
// be unserved.
func (s *serving) reaches(ctx context.Context, o *subject, b render.Bundle) (bool, error) {
	if b.Cluster != render.ClusterShoot {
		return true, nil
	}
	return s.of(ctx, o)
}

// admits reports whether a bundle can be applied now: its cluster and its webhooks are served.
func (s *serving) admits(ctx context.Context, o *subject, b render.Bundle) (bool, error) {
	if reaches, err := s.reaches(ctx, o, b); err != nil || !reaches || b.Delivery.ServedBy == "" {
		return reaches, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if is, known := s.ready[b.Delivery.ServedBy]; known {
		return is, nil
	}
	is, err := o.hasPod(ctx, b.Delivery.ServedBy, func(pod corev1.Pod) bool { return access.Serves(pod) && isReady(pod) })
	if err != nil {
		return false, err
	}
	if s.ready == nil {
		s.ready = map[string]bool{}
	}
	s.ready[b.Delivery.ServedBy] = is
	return is, nil
}

func isReady(pod corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// isServed reports whether a pod of the API server has a reachable address.
func (o *subject) isServed(ctx context.Context) (bool, error) {
	return o.hasPod(ctx, "kube-apiserver", access.Serves)
}

// hasPod reports whether a Deployment of the control plane with replicas has a matching pod.
func (o *subject) hasPod(ctx context.Context, name string, such func(corev1.Pod) bool) (bool, error) {
	ref := apply.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: o.ControlPlane(), Name: name}
	deployment, err := o.Local.Get(ctx, ref)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, o.Local.Explain(ref, "read", err)
	}
	if replicas, found, _ := unstructured.NestedInt64(deployment.Object, "spec", "replicas"); found && replicas == 0 {
		return false, nil
	}
	selector, err := selectorOf(deployment)
	if err != nil {
		return false, fmt.Errorf("cluster %s: %s: %w", o.Local.Name(), ref, err)
	}
	client, err := kubernetes.NewForConfig(o.Local.RESTConfig())
	if err != nil {
		return false, fmt.Errorf("cluster %s: %w", o.Local.Name(), err)
	}
	pods, err := client.CoreV1().Pods(ref.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return false, o.Local.Explain(apply.Ref{APIVersion: "v1", Kind: "Pod", Namespace: ref.Namespace}, "list", err)
	}
	return slices.ContainsFunc(pods.Items, such), nil
}

// selectorOf returns the selector of a Deployment's pods.
func selectorOf(deployment *unstructured.Unstructured) (string, error) {
	content, _, err := unstructured.NestedMap(deployment.Object, "spec", "selector")
	if err != nil {
		return "", fmt.Errorf("read its selector: %w", err)
	}
	var selector metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &selector); err != nil {
		return "", fmt.Errorf("read its selector: %w", err)
	}
	parsed, err := metav1.LabelSelectorAsSelector(&selector)
	if err != nil {
		return "", fmt.Errorf("read its selector: %w", err)
	}
	return parsed.String(), nil
}

// whyUnserved explains why the API server of a Shoot is not served.
func (o *subject) whyUnserved() string {
	if o.hibernated() {
		return "the Shoot is hibernated: nobody serves its API server"
	}
	return "nobody serves the API server of the Shoot: it has no pod with an address that can be connected to, as where pods are only played"
}

// whyWaits explains why a bundle waits.
func (o *subject) whyWaits(b render.Bundle) string {
	if b.Delivery.ServedBy == "" {
		return o.whyUnserved()
	}
	return fmt.Sprintf("nobody answers its webhooks: Deployment %s/%s has no ready pod with an address that can be connected to, as where pods are only played",
		o.ControlPlane(), b.Delivery.ServedBy)
}

func (r *Reconciler) applyWaiting(ctx context.Context, o *subject) error {
	waiting := o.now().waiting
	if len(waiting) == 0 {
		return nil
	}
	look := &serving{}
	var problems []error
	for _, b := range o.Bundles() {
		if !waiting[b.Name] {
			continue
		}
		if admits, err := look.admits(ctx, o, b); err != nil || !admits {
			problems = append(problems, err)
			continue
		}
		work := r.repairOf(o, b)
		// the next reconciliation applies a new rendering
		if work.pending {
			continue
		}
		if b.Cluster == render.ClusterShoot {
			work.serving.answered()
		}
		if _, err := work.applyBundle(ctx, b); err != nil {
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}
