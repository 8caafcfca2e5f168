// SPDX-License-Identifier: Apache-2.0

package etcds

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/pergola-dev/pergola/hack/local/living/kinds"
	"github.com/pergola-dev/pergola/hack/local/living/queue"
)

// pollDelay is the delay before polling a state without events.
const pollDelay = time.Second

// Options configure a Controller.
type Options struct {
	Kube    kubernetes.Interface
	Dynamic dynamic.Interface
	// Clock is the real clock if nil.
	Clock clock.WithTicker
	// Log is the default logger if nil.
	Log *slog.Logger
	// NoSync makes members not wait for the disk: faster, but a power failure may lose data.
	NoSync bool
	// connect connects to a running etcd.
	connect func(ctx context.Context, kube kubernetes.Interface, e *etcd) (membership, error)
}

// Controller reconciles the Etcds of a cluster.
type Controller struct {
	Options
	etcds *kinds.Watcher
	queue *queue.Queue
}

// New returns a Controller; Run starts it.
func New(options Options) *Controller {
	c := &Controller{Options: options}
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.connect == nil {
		c.connect = connect
	}
	c.Log = c.Log.With("controller", "etcds")
	c.queue = queue.New(c.Clock, c.Log, c.reconcile)
	c.etcds = kinds.New(c.Dynamic, Resource, c.Clock, c.Log, func(object *unstructured.Unstructured) { c.queue.AddObject(object) })
	return c
}

// Run reconciles until the context ends.
func (c *Controller) Run(ctx context.Context) error {
	factory := informers.NewSharedInformerFactoryWithOptions(c.Kube, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.LabelSelector = managedSelector
	}))
	// A StatefulSet has the same name as its Etcd.
	if _, err := factory.Apps().V1().StatefulSets().Informer().AddEventHandler(c.queue.Handler()); err != nil {
		return fmt.Errorf("watching StatefulSets: %w", err)
	}
	factory.StartWithContext(ctx)
	var group sync.WaitGroup
	group.Go(func() { c.etcds.Run(ctx) })
	c.queue.Run(ctx)
	group.Wait()
	factory.Shutdown()
	return nil
}

func (c *Controller) reconcile(ctx context.Context, key string) (time.Duration, error) {
	object := c.etcds.Get(key)
	if object == nil {
		return 0, nil
	}
	e, err := parseEtcd(object)
	if err != nil {
		return 0, err
	}
	if e.DeletionTimestamp != nil && !slices.Contains(e.Finalizers, finalizer) {
		return 0, nil
	}
	if e.DeletionTimestamp == nil && !slices.Contains(e.Finalizers, finalizer) {
		// The change triggers another event.
		return 0, c.patchFinalizers(ctx, e, append(slices.Clone(e.Finalizers), finalizer))
	}
	if message, failing := e.Annotations[failAnnotation]; failing {
		return 0, c.completeReconcile(ctx, e, reconcileResult{isSpecAccepted: true, isFailing: true, errorCode: codeLocal, message: message, statefulSet: c.liveStatefulSet(ctx, e)})
	}
	if e.DeletionTimestamp != nil {
		return c.deleteEtcd(ctx, e)
	}
	if !e.isSpecAccepted() {
		set := c.liveStatefulSet(ctx, e)
		return 0, c.completeReconcile(ctx, e, reconcileResult{statefulSet: set, shape: shapeOf(set, e.Spec.Replicas)})
	}
	again, o, err := c.applyAndGrow(ctx, e)
	if err != nil {
		if !apierrors.IsConflict(err) && ctx.Err() == nil {
			err = errors.Join(err, c.patchStatus(ctx, e, reconcileResult{statefulSet: c.liveStatefulSet(ctx, e), errorCode: "ERR_SYNC", message: err.Error()}))
		}
		return 0, err
	}
	return again, c.completeReconcile(ctx, e, o)
}

// applyAndGrow applies the objects of the Etcd and adds members.
func (c *Controller) applyAndGrow(ctx context.Context, e *etcd) (time.Duration, reconcileResult, error) {
	live, err := c.Kube.AppsV1().StatefulSets(e.Namespace).Get(ctx, e.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		live = nil
	case err != nil:
		return 0, reconcileResult{}, fmt.Errorf("reading StatefulSet: %w", err)
	}
	s := shapeOf(live, e.Spec.Replicas)
	set, err := c.apply(ctx, e, s, live)
	if err != nil {
		return 0, reconcileResult{}, err
	}
	o := reconcileResult{isSpecAccepted: true, statefulSet: set, shape: s}
	if e.Spec.Replicas <= s.Voters || !isRolledOut(set, s.Voters) {
		return 0, o, nil
	}
	grown, err := c.grow(ctx, e, s)
	if err != nil {
		// etcd refuses to promote a learner that lags behind, and a starting member may not answer.
		c.Log.Debug("Growing waits", "etcd", e.key(), "error", err)
	}
	if grown != s {
		if o.statefulSet, err = c.apply(ctx, e, grown, set); err != nil {
			return 0, reconcileResult{}, err
		}
		o.shape = grown
	}
	return pollDelay, o, nil
}

func (c *Controller) grow(ctx context.Context, e *etcd, s shape) (shape, error) {
	ctx, cancel := context.WithTimeout(ctx, etcdTimeout)
	defer cancel()
	m, err := c.connect(ctx, c.Kube, e)
	if err != nil {
		return s, err
	}
	defer m.Close()
	return growMembership(ctx, m, e, s)
}

// liveStatefulSet returns the current StatefulSet, or nil if it cannot be read.
func (c *Controller) liveStatefulSet(ctx context.Context, e *etcd) *appsv1.StatefulSet {
	set, err := c.Kube.AppsV1().StatefulSets(e.Namespace).Get(ctx, e.Name, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return set
}

// completeReconcile writes the status, and then removes the annotation that requested the
// reconciliation.
func (c *Controller) completeReconcile(ctx context.Context, e *etcd, o reconcileResult) error {
	if err := c.patchStatus(ctx, e, o); err != nil {
		return err
	}
	if e.DeletionTimestamp != nil || !o.isSpecAccepted || !e.hasReconcileRequest() {
		return nil
	}
	// A changed object may have a new request: then the annotation stays.
	body := fmt.Appendf(nil, `{"metadata":{"resourceVersion":%q,"annotations":{%q:null,%q:null}}}`, e.ResourceVersion, operationAnnotation, druidOperationAnnotation)
	return c.patch(ctx, e, body)
}

func (c *Controller) patchStatus(ctx context.Context, e *etcd, o reconcileResult) error {
	body, err := statusPatch(e.Status, e.nextStatus(o, c.Clock.Now()))
	if err != nil || body == nil {
		return err
	}
	patched, err := c.Dynamic.Resource(Resource).Namespace(e.Namespace).Patch(ctx, e.Name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: druidName}, "status")
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("writing status: %w", err)
	}
	e.ResourceVersion = patched.GetResourceVersion()
	return nil
}

func (c *Controller) patch(ctx context.Context, e *etcd, body []byte) error {
	_, err := c.Dynamic.Resource(Resource).Namespace(e.Namespace).Patch(ctx, e.Name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: druidName})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("marking Etcd: %w", err)
	}
	return nil
}
