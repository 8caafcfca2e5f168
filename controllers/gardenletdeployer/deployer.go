// SPDX-License-Identifier: Apache-2.0

package gardenletdeployer

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	seedmanagementv1alpha1 "github.com/pergola-dev/pergola/api/seedmanagement/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/access"
	"github.com/pergola-dev/pergola/controllers/charts"
	"github.com/pergola-dev/pergola/controllers/conventions"
	"github.com/pergola-dev/pergola/health/condition"
	"github.com/pergola-dev/pergola/internal/backoff"
	"github.com/pergola-dev/pergola/internal/printable"
)

const (
	// FieldManager owns the fields that the deployer writes.
	FieldManager = "pergola-gardenlet-deployer"
	// Namespace contains the Gardenlets and the installed objects (upstream's).
	Namespace = "garden"

	annotationOperation  = "gardener.cloud/operation"
	operationRedeploy    = "force-redeploy"
	retryInterval        = 10 * time.Second
	maxRetryInterval     = 5 * time.Minute
	seedCheckInterval    = time.Minute
	messageLimit         = 1024
	reasonReconciled     = "Reconciled"
	reasonFailed         = "ReconcileFailed"
	messageReconciled    = "Gardenlet has been successfully deployed"
	messageNotRegistered = "Gardenlet is deployed; its Seed is not registered yet"
)

var (
	kindGardenlet = seedmanagementv1alpha1.SchemeGroupVersion.WithKind("Gardenlet")
	kindSeed      = gardencorev1beta1.SchemeGroupVersion.WithKind("Seed")
)

// Deployer installs the gardenlets of a virtual garden.
type Deployer struct {
	// Runtime connects to the cluster of the Garden, Virtual to its virtual garden.
	Runtime, Virtual *rest.Config
	// Address returns the address at which gardenlets reach the virtual garden.
	Address func(ctx context.Context) (string, error)
	Charts  *charts.Puller
	Clock   clock.WithTicker
	Log     *slog.Logger

	runtime, virtual *apply.Cluster
	attempts         map[string]installationAttempt
}

// installationAttempt is the result of the last installation of a Gardenlet.
type installationAttempt struct {
	generation int64
	failures   int
	nextAt     time.Time
}

// Run installs gardenlets until ctx ends.
func (d *Deployer) Run(ctx context.Context) error {
	if err := d.open(); err != nil {
		return err
	}
	defer d.close()
	timer := d.Clock.NewTimer(0)
	defer timer.Stop()
	var changed <-chan struct{}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-timer.C():
		}
		there := ctx.Err() == nil && access.HasCredentials(ctx, d.virtual.RESTConfig())
		if changed == nil && there {
			// retried if the kind is not served yet
			changed, _ = d.virtual.Subscribe(ctx, kindGardenlet)
		}
		wait := seedCheckInterval
		if changed != nil && there {
			wait = d.ReconcileAll(ctx)
		}
		timer.Stop()
		timer.Reset(wait)
	}
}

func (d *Deployer) open() (err error) {
	if d.Log == nil {
		d.Log = slog.New(slog.DiscardHandler)
	}
	d.attempts = map[string]installationAttempt{}
	if d.runtime, err = conventions.NewCluster("runtime", d.Runtime, apply.ClusterOptions{Clock: d.Clock}); err != nil {
		return err
	}
	all := apply.ClusterOptions{Clock: d.Clock, WholeKinds: fullyCachedKinds}
	if d.virtual, err = conventions.NewCluster("virtual", d.Virtual, all); err != nil {
		d.runtime.Close()
	}
	return err
}

func (d *Deployer) close() {
	d.runtime.Close()
	d.virtual.Close()
}

// ReconcileAll reconciles all Gardenlets, and returns when to call it again.
func (d *Deployer) ReconcileAll(ctx context.Context) time.Duration {
	list, err := d.virtual.List(ctx, kindGardenlet, Namespace, nil)
	if err != nil {
		d.Log.Info("cannot list Gardenlets; retrying", "error", err)
		return retryInterval
	}
	wait := maxRetryInterval
	there := map[string]bool{}
	for _, live := range list {
		there[live.GetName()] = true
		if live.GetDeletionTimestamp() != nil {
			continue
		}
		now, last := d.Clock.Now(), d.attempts[live.GetName()]
		if last.generation == live.GetGeneration() && now.Before(last.nextAt) && !isRedeployRequested(live) {
			wait = min(wait, last.nextAt.Sub(now))
			continue
		}
		if next := d.reconcile(ctx, live, last); next > 0 {
			wait = min(wait, next)
		}
	}
	for name := range d.attempts {
		if !there[name] {
			delete(d.attempts, name)
		}
	}
	return wait
}

// reconcile reconciles a Gardenlet, and returns when to retry, or 0 if only a change of it matters.
func (d *Deployer) reconcile(ctx context.Context, live *unstructured.Unstructured, last installationAttempt) time.Duration {
	name := live.GetName()
	if last.generation != live.GetGeneration() {
		last = installationAttempt{generation: live.GetGeneration()}
	}
	seed, err := d.seedOf(ctx, name)
	if err == nil && seed != nil && !isRedeployRequested(live) {
		if _, tried := d.attempts[name]; tried || isWaitingForSeed(live) {
			if err := d.writeCondition(ctx, live, true, nil); err != nil {
				d.Log.Info("cannot write a condition; retrying", "gardenlet", name, "error", err)
				return retryInterval
			}
		}
		delete(d.attempts, name)
		return 0
	}
	if err == nil {
		err = d.install(ctx, live, seed)
	}
	if err == nil && isRedeployRequested(live) {
		err = d.removeOperation(ctx, live)
	}
	if ctx.Err() != nil {
		return 0
	}
	if told := d.writeCondition(ctx, live, seed != nil, err); err == nil {
		err = told
	}
	wait := seedCheckInterval // until the Seed exists
	last.failures++
	if err != nil {
		wait = backoff.Delay(last.failures, retryInterval, maxRetryInterval)
		d.Log.Error("cannot install a gardenlet; retrying", "gardenlet", name, "error", printable.Line(err.Error()))
	} else {
		last.failures = 0
	}
	last.nextAt = d.Clock.Now().Add(wait)
	d.attempts[name] = last
	return wait
}

func isRedeployRequested(live *unstructured.Unstructured) bool {
	return live.GetAnnotations()[annotationOperation] == operationRedeploy
}

// isWaitingForSeed reports whether the condition of a Gardenlet says that its Seed does not exist.
func isWaitingForSeed(live *unstructured.Unstructured) bool {
	// malformed conditions count as none
	list, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
	return slices.ContainsFunc(list, func(item any) bool {
		c, ok := item.(map[string]any)
		return ok && c["type"] == string(seedmanagementv1alpha1.GardenletReconciled) && c["message"] == messageNotRegistered
	})
}

// seedOf returns the Seed of a Gardenlet, or nil if it does not exist.
func (d *Deployer) seedOf(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	ref := apply.Ref{APIVersion: kindSeed.GroupVersion().String(), Kind: kindSeed.Kind, Name: name}
	seed, err := d.virtual.GetLive(ctx, ref)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, d.virtual.Explain(ref, "read", err)
	}
	return seed, nil
}

// removeOperation removes the annotation, unless its value has changed.
func (d *Deployer) removeOperation(ctx context.Context, live *unstructured.Unstructured) error {
	ref := apply.RefOf(live)
	now, err := d.virtual.GetLive(ctx, ref)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return d.virtual.Explain(ref, "read", err)
	}
	if !isRedeployRequested(now) {
		return nil
	}
	patch := map[string]any{"metadata": map[string]any{"resourceVersion": now.GetResourceVersion(), "annotations": map[string]any{annotationOperation: nil}}}
	if _, err := d.virtual.MergePatch(ctx, ref, patch, FieldManager, ""); err != nil {
		return d.virtual.Explain(ref, "remove the annotation", err)
	}
	return nil
}

// writeCondition writes the result of an installation to the condition.
func (d *Deployer) writeCondition(ctx context.Context, live *unstructured.Unstructured, registered bool, failure error) error {
	ref := apply.RefOf(live)
	now, err := d.virtual.GetLive(ctx, ref)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return d.virtual.Explain(ref, "read", err)
	}
	var had seedmanagementv1alpha1.Gardenlet
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(now.Object, &had); err != nil {
		return fmt.Errorf("the Gardenlet %s cannot be read: %w", live.GetName(), err)
	}
	b := condition.New(d.Clock, nil)
	old := b.GetOrInit(had.Status.Conditions, seedmanagementv1alpha1.GardenletReconciled)
	said := b.OK(old, reasonReconciled, messageReconciled)
	switch {
	case failure != nil:
		text := printable.Line(failure.Error())
		if len(text) > messageLimit {
			text = strings.ToValidUTF8(text[:messageLimit], "") + "…"
		}
		said = b.Update(old, gardencorev1beta1.ConditionFalse, reasonOf(failure), text)
	case !registered:
		said = b.OK(old, reasonReconciled, messageNotRegistered)
	}
	conditions := condition.Merge(had.Status.Conditions, said)
	if condition.Equal(conditions, had.Status.Conditions) && had.Status.ObservedGeneration == live.GetGeneration() {
		return nil
	}
	patch := map[string]any{"status": map[string]any{"conditions": conditions, "observedGeneration": live.GetGeneration()}}
	if _, err := d.virtual.MergePatch(ctx, ref, patch, FieldManager, "status"); err != nil {
		return d.virtual.Explain(ref, "write the condition", err)
	}
	return nil
}
