package owner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/access"
	"github.com/pergola-dev/pergola/render"
)

// What belongs into a Shoot is applied where somebody serves its API server. Nobody does while the Shoot is hibernated, and where pods are only
// played: then its ManagedResources are written as always, nothing fails, and their objects wait until somebody serves. Where somebody should and
// does not answer, that is an error.

// serving knows, for one look at an owner, whether somebody serves the API server of the Shoot. The zero value has not looked yet.
type serving struct {
	mu        sync.Mutex
	known, is bool
}

// answered notes that it has answered.
func (s *serving) answered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known, s.is = true, true
}

// of tells whether somebody serves it; this costs a request once.
func (s *serving) of(ctx context.Context, o *Owner) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known {
		return s.is, nil
	}
	is, err := o.isServed(ctx)
	if err == nil {
		s.known, s.is = true, is
	}
	return is, err
}

// isServed is of, as far as that can be told.
func (s *serving) isServed(ctx context.Context, o *Owner) bool {
	is, err := s.of(ctx, o)
	return err == nil && is
}

// reaches tells whether a bundle can be applied to its cluster now. That of a Garden or Seed is always there to be asked.
func (s *serving) reaches(ctx context.Context, o *Owner, b render.Bundle) (bool, error) {
	if b.Cluster != render.ClusterShoot {
		return true, nil
	}
	return s.of(ctx, o)
}

// isServed tells whether a pod of the API server has an address that can be connected to.
func (o *Owner) isServed(ctx context.Context) (bool, error) {
	ref := apply.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: o.ControlPlane(), Name: "kube-apiserver"}
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
	return slices.ContainsFunc(pods.Items, access.Serves), nil
}

// selectorOf is the selector of a Deployment's pods.
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

// whyUnserved says in words why nobody serves the API server of a Shoot.
func (o *Owner) whyUnserved() string {
	if o.hibernated() {
		return "the Shoot is hibernated: nobody serves its API server"
	}
	return "nobody serves the API server of the Shoot: it has no pod with an address that can be connected to, as where pods are only played"
}

// noteWaiting notes whether objects of a bundle wait until somebody serves the API server that they belong to.
func (o *Owner) noteWaiting(bundle string, waits bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !waits {
		delete(o.waiting, bundle)
		return
	}
	if o.waiting == nil {
		o.waiting = map[string]bool{}
	}
	o.waiting[bundle] = true
}

// waitingBundles are the names of those that wait.
func (o *Owner) waitingBundles() map[string]bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.waiting)
}

// ApplyWaiting applies what waits for somebody to serve the API server of a Shoot, once somebody does. It costs nothing where nothing waits, and else
// a request. It is not for an owner that is reconciled at the same time.
func (r *Reconciler) ApplyWaiting(ctx context.Context, o *Owner) error {
	waiting := o.waitingBundles()
	if len(waiting) == 0 {
		return nil
	}
	look := &serving{}
	if served, err := look.of(ctx, o); err != nil || !served {
		return err
	}
	var problems []error
	for _, b := range o.Bundles() {
		work := r.repairOf(o, b)
		if !waiting[b.Name] || work.pending { // what is rendered otherwise by now has its turn in the next reconciliation
			continue
		}
		work.serving.answered()
		if _, err := work.applyBundle(ctx, b); err != nil {
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}
