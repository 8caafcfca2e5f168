// SPDX-License-Identifier: Apache-2.0

package networkpolicy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// maxConcurrentWrites is the number of policies of a Service that are written concurrently: a
// Service in the garden namespace may have a policy per shoot.
const maxConcurrentWrites = 4

// Reasons of events.
const (
	// reasonAnnotation means that an annotation of the Service is invalid; nothing of the Service
	// is deleted meanwhile.
	reasonAnnotation = "NetworkPolicyAnnotationInvalid"
	// reasonNameTaken means that another policy, not of the Service, has the name.
	reasonNameTaken = "NetworkPolicyNameTaken"
	// reasonRefused means that the API server rejects a policy.
	reasonRefused = "NetworkPolicyRefused"
	// reasonWriteConflict means that someone changes a policy again and again.
	reasonWriteConflict = "NetworkPolicyFight"
)

// reconciler applies the policies that the index wants for a Service.
type reconciler struct {
	index  *index
	client client.Client
	events events.EventRecorder

	mu sync.Mutex
	// reported are the reported events, by Service and text.
	reported map[types.NamespacedName]map[string]bool
}

// Reconcile reconciles one Service. It sends no request while the policies are as wanted.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	log := logf.FromContext(ctx)
	p := r.index.planFor(request.NamespacedName)
	var (
		group  errgroup.Group
		mu     sync.Mutex
		failed []error
	)
	group.SetLimit(maxConcurrentWrites)
	do := func(what string, policy *networkingv1.NetworkPolicy, write func() error) {
		group.Go(func() error {
			key := client.ObjectKeyFromObject(policy)
			if err := write(); err != nil {
				mu.Lock()
				defer mu.Unlock()
				err = fmt.Errorf("%s NetworkPolicy %s: %w", what, key, err)
				if apierrors.IsInvalid(err) {
					// only a change of the Service helps
					p.problems = append(p.problems, problem{reasonRefused, key.String(), err.Error()})
				} else {
					failed = append(failed, err)
				}
				return nil // other policies do not depend on it
			}
			log.Info(what, "networkPolicy", key.String())
			return nil
		})
	}
	for _, policy := range p.apply {
		do("applying", policy, func() error { return r.apply(ctx, policy, p.adopt.Has(client.ObjectKeyFromObject(policy))) })
	}
	for _, policy := range p.deletions {
		do("deleting", policy, func() error { return r.remove(ctx, policy) })
	}
	_ = group.Wait() // the functions return no errors
	slices.SortFunc(p.problems, func(a, b problem) int { return strings.Compare(a.text, b.text) })
	r.reportProblems(log, request.NamespacedName, p.problems)
	slices.SortFunc(failed, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return reconcile.Result{}, errors.Join(failed...)
}

// apply writes a policy. It adopts an existing policy of ours (take). A new policy must not
// overwrite a policy that someone else created meanwhile.
func (r *reconciler) apply(ctx context.Context, policy *networkingv1.NetworkPolicy, take bool) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(policy)
	if err != nil {
		return err
	}
	object := &unstructured.Unstructured{Object: content}
	unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp")
	options := []client.ApplyOption{client.FieldOwner(FieldManager)}
	if take {
		options = append(options, client.ForceOwnership)
		// An empty list removes rules that someone added in the other direction.
		for _, direction := range []string{"ingress", "egress"} {
			if _, ok, _ := unstructured.NestedSlice(object.Object, "spec", direction); !ok {
				if err := unstructured.SetNestedSlice(object.Object, []any{}, "spec", direction); err != nil {
					return err
				}
			}
		}
	}
	err = r.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), options...)
	if apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return nil // a terminating or deleted namespace needs no policy
	}
	return err
}

// remove deletes a policy unless it was recreated or changed.
func (r *reconciler) remove(ctx context.Context, policy *networkingv1.NetworkPolicy) error {
	err := r.client.Delete(ctx, policy, client.Preconditions{UID: &policy.UID, ResourceVersion: &policy.ResourceVersion})
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	r.index.forgetPolicy(policy)
	return nil
}

// reportProblems logs each problem and publishes an event once.
func (r *reconciler) reportProblems(log logr.Logger, service types.NamespacedName, problems []problem) {
	r.mu.Lock()
	defer r.mu.Unlock()
	said := map[string]bool{}
	for _, p := range problems {
		if said[p.text] = true; r.reported[service][p.text] {
			continue
		}
		log.Info("cannot create the policies that a Service requests", "service", service.String(), "problem", p.text)
		r.events.Eventf(r.index.serviceReference(service), nil, corev1.EventTypeWarning, p.reason, eventAction(p.about), "%s", p.text)
	}
	if delete(r.reported, service); len(said) > 0 {
		r.reported[service] = said
	}
}

// eventAction is the action of an event; the limit is 128 characters.
func eventAction(about string) string {
	text := "Reconcile " + about
	return text[:min(len(text), 128)]
}

// reportConflict publishes an event that someone changes a policy again and again.
func (r *reconciler) reportConflict(policy types.NamespacedName) {
	service, who := r.index.lastChanger(policy)
	if service == (types.NamespacedName{}) {
		return
	}
	r.events.Eventf(r.index.serviceReference(service), nil, corev1.EventTypeWarning, reasonWriteConflict, eventAction(policy.String()),
		"NetworkPolicy %s of this Service is changed repeatedly%s: it is repaired less often from now on. Stop the other writer.", policy, who)
}

// serviceReference refers to a Service in events; people find them by its UID.
func (x *index) serviceReference(service types.NamespacedName) *corev1.ObjectReference {
	x.mu.Lock()
	defer x.mu.Unlock()
	ref := &corev1.ObjectReference{APIVersion: "v1", Kind: "Service", Namespace: service.Namespace, Name: service.Name}
	if t := x.services[service]; t != nil {
		ref.UID = t.uid
	}
	return ref
}

// lastChanger returns the Service of a policy and the last other manager of the policy.
func (x *index) lastChanger(policy types.NamespacedName) (service types.NamespacedName, who string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for key, wanted := range x.policies.wantedDigests {
		if _, ok := wanted[policy]; ok {
			service = key
		}
	}
	var last *metav1.ManagedFieldsEntry
	if live := x.policies.live[policy]; live != nil {
		for i, entry := range live.ManagedFields {
			if entry.Manager != FieldManager && entry.Time != nil && (last == nil || last.Time.Before(entry.Time)) {
				last = &live.ManagedFields[i]
			}
		}
	}
	if last != nil {
		who = " by " + last.Manager
	}
	return service, who
}
