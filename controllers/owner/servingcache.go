// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"context"
	"errors"
	"fmt"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/access"
	"github.com/pergola-dev/pergola/render"
)

// Objects in a Shoot are applied once a process serves its API server. No process does while the
// Shoot is hibernated or its pods are only played. Its ManagedResources are then written as usual,
// nothing fails, and the objects wait. A served API server that does not answer is an error.
//
// A bundle with webhooks (definedResource) is not even written until a pod of the serving
// Deployment is ready. Until then, webhooks that fail closed reject requests. Meanwhile its applied
// objects stay, are not restored after a deletion, and are deleted with the bundle as usual.

// servingCache caches, for one pass over an owner, whether the API server of the Shoot is served,
// and which Deployments serve webhooks. The zero value is empty.
type servingCache struct {
	mu                         sync.Mutex
	isKnown, isAPIServerServed bool
	readyDeployments           map[string]bool
}

// setServed records that the API server has answered.
func (s *servingCache) setServed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isKnown, s.isAPIServerServed = true, true
}

func (s *servingCache) checkAPIServer(ctx context.Context, o *ownerSession) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isKnown { // only the first call makes a request
		return s.isAPIServerServed, nil
	}
	is, err := o.isServed(ctx)
	s.isKnown, s.isAPIServerServed = err == nil, is
	return is, err
}

// isServed is checkAPIServer, with false for errors.
func (s *servingCache) isServed(ctx context.Context, o *ownerSession) bool {
	is, err := s.checkAPIServer(ctx, o)
	return err == nil && is
}

// isReachable reports whether a bundle can be applied to its cluster now. Only a Shoot's API server
// may be unserved.
func (s *servingCache) isReachable(ctx context.Context, o *ownerSession, b render.Bundle) (bool, error) {
	if b.Cluster != render.ClusterShoot {
		return true, nil
	}
	return s.checkAPIServer(ctx, o)
}

// canApply reports whether a bundle can be applied now: its cluster and its webhooks are served.
func (s *servingCache) canApply(ctx context.Context, o *ownerSession, b render.Bundle) (bool, error) {
	if reaches, err := s.isReachable(ctx, o, b); err != nil || !reaches || b.Delivery.ServedBy == "" {
		return reaches, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if is, known := s.readyDeployments[b.Delivery.ServedBy]; known {
		return is, nil
	}
	is, err := o.hasMatchingPod(ctx, b.Delivery.ServedBy, access.IsPodReadyAndServing)
	if err != nil {
		return false, err
	}
	if s.readyDeployments == nil {
		s.readyDeployments = map[string]bool{}
	}
	s.readyDeployments[b.Delivery.ServedBy] = is
	return is, nil
}

// isServed reports whether a pod of the API server has a reachable address.
func (o *ownerSession) isServed(ctx context.Context) (bool, error) {
	return o.hasMatchingPod(ctx, "kube-apiserver", access.IsPodServing)
}

// hasMatchingPod reports whether a Deployment of the control plane with replicas has a matching
// pod.
func (o *ownerSession) hasMatchingPod(ctx context.Context, name string, matches func(corev1.Pod) bool) (bool, error) {
	ref := apply.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: o.ControlPlane(), Name: name}
	live, err := o.Local.Get(ctx, ref)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, o.Local.Explain(ref, "read", err)
	}
	var deployment appsv1.Deployment
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, &deployment); err != nil {
		return false, fmt.Errorf("cluster %s: read %s: %w", o.Local.Name(), ref, err)
	}
	is, err := access.HasMatchingPod(ctx, o.Local.RESTConfig(), &deployment, matches)
	return is, o.Local.Explain(ref, "find the pods of", err)
}

// unservedReason explains why the API server of a Shoot is not served.
func (o *ownerSession) unservedReason() string {
	if o.isHibernated() {
		return "the Shoot is hibernated: nothing serves its API server"
	}
	return "nothing serves the API server of the Shoot: no pod of it has a reachable address (played pods never have one)"
}

// waitReason explains why a bundle waits.
func (o *ownerSession) waitReason(b render.Bundle) string {
	if b.Delivery.ServedBy == "" {
		return o.unservedReason()
	}
	return fmt.Sprintf("nothing answers its webhooks: Deployment %s/%s has no ready pod with a reachable address (played pods never have one)",
		o.ControlPlane(), b.Delivery.ServedBy)
}

func (r *Reconciler) applyWaiting(ctx context.Context, o *ownerSession) error {
	waiting := o.currentState().waitingBundles
	if len(waiting) == 0 {
		return nil
	}
	look := &servingCache{}
	var problems []error
	for _, b := range o.Bundles() {
		if !waiting[b.Name] {
			continue
		}
		if admits, err := look.canApply(ctx, o, b); err != nil || !admits {
			problems = append(problems, err)
			continue
		}
		work := r.newRepair(o, b)
		if work.hasNewRendering {
			continue // the next reconciliation applies it
		}
		if b.Cluster == render.ClusterShoot {
			work.serving.setServed()
		}
		if _, err := work.applyBundle(ctx, b); err != nil {
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}
