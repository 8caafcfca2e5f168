// SPDX-License-Identifier: Apache-2.0

package networkpolicy

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// minWatchPause is the pause between attempts to start a watch.
const minWatchPause = time.Second

// indexFeed fills the index from watches and enqueues the Services that a change affects. It is the
// only source of the controller, which starts when the index is complete: a Service seen before its
// clients would lose its policies.
type indexFeed struct {
	index      *index
	cache      cache.Cache
	clock      clock.WithDelayedExecution
	log        logr.Logger
	onConflict func(policy types.NamespacedName)

	queue         workqueue.TypedRateLimitingInterface[reconcile.Request]
	repairLimiter repairLimiter
	started       chan error
	istio         *istioWatches

	mu     sync.Mutex
	synced []toolscache.InformerSynced
}

// Start starts the watches.
func (f *indexFeed) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	f.queue, f.started = queue, make(chan error, 1)
	f.repairLimiter = repairLimiter{clock: f.clock, histories: map[types.NamespacedName]repairHistory{}}
	f.istio = newIstioWatches(f)
	go func() { f.started <- f.startWatches(ctx) }()
	return nil
}

// WaitForSync returns when the index is complete.
func (f *indexFeed) WaitForSync(ctx context.Context) error {
	select {
	case err := <-f.started:
		if err != nil {
			return err
		}
	case <-ctx.Done():
		return errors.New("network policies: the watches did not start in time")
	}
	f.mu.Lock()
	synced := f.synced
	f.mu.Unlock()
	if !toolscache.WaitForCacheSync(ctx.Done(), synced...) {
		return errors.New("network policies: cannot read the cluster in time: see the log; allow list and watch of " +
			"services, pods, namespaces, networkpolicies, ingresses, customresourcedefinitions, virtualservices and gateways")
	}
	return nil
}

func (f *indexFeed) startWatches(ctx context.Context) error {
	x := f.index
	watches := []struct {
		of  client.Object
		set func(types.NamespacedName, client.Object) indexEffect
	}{
		{partialObject("v1", "Namespace"), func(key types.NamespacedName, o client.Object) indexEffect {
			return x.setNamespace(key.Name, readNamespace(o))
		}},
		{partialObject("v1", "Pod"), func(key types.NamespacedName, o client.Object) indexEffect { return x.setPod(key, readLabels(o)) }},
		{&corev1.Service{}, func(key types.NamespacedName, o client.Object) indexEffect { return x.setService(key, readService(o)) }},
		{&networkingv1.NetworkPolicy{}, func(key types.NamespacedName, o client.Object) indexEffect { return x.setPolicy(key, readPolicy(o)) }},
	}
	for _, w := range watches {
		if err := f.watchWithRetry(ctx, w.of, w.set); err != nil {
			return err
		}
	}
	if x.ingressController != nil {
		if err := f.watchWithRetry(ctx, &networkingv1.Ingress{}, func(key types.NamespacedName, o client.Object) indexEffect {
			return x.setIngress(key, readIngress(o))
		}); err != nil {
			return err
		}
	}
	return f.istio.start(ctx)
}

// watchWithRetry retries until the context ends: the API server may be unavailable for a moment.
func (f *indexFeed) watchWithRetry(ctx context.Context, of client.Object, set func(types.NamespacedName, client.Object) indexEffect) error {
	for {
		synced, err := f.watch(ctx, of, set)
		if err == nil {
			f.mu.Lock()
			f.synced = append(f.synced, synced)
			f.mu.Unlock()
			return nil
		}
		f.log.Error(err, "cannot start a watch", "kind", fmt.Sprintf("%T", of))
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-f.clock.After(minWatchPause):
		}
	}
}

// watch fills the index from the watch of a kind.
func (f *indexFeed) watch(ctx context.Context, of client.Object, set func(types.NamespacedName, client.Object) indexEffect) (toolscache.InformerSynced, error) {
	informer, err := f.cache.GetInformer(ctx, of, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, err
	}
	note := func(o any, gone bool) {
		if last, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
			o = last.Obj
		}
		object, ok := o.(client.Object)
		if !ok {
			return
		}
		key := client.ObjectKeyFromObject(object)
		if gone {
			object = nil
		}
		f.enqueueEffect(set(key, object))
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { note(o, false) },
		UpdateFunc: func(_, o any) { note(o, false) },
		DeleteFunc: func(o any) { note(o, true) },
	})
	if err != nil {
		return nil, err
	}
	return registration.HasSynced, nil
}

// enqueueEffect enqueues what a change affects.
func (f *indexFeed) enqueueEffect(e indexEffect) {
	var pause time.Duration
	if e.conflict != nil {
		var often bool
		if pause, often = f.repairLimiter.recordRepair(*e.conflict); often {
			f.onConflict(*e.conflict)
		}
	}
	for _, key := range e.services {
		request := reconcile.Request{NamespacedName: key}
		if pause > 0 {
			f.queue.AddAfter(request, pause)
		} else {
			f.queue.Add(request)
		}
	}
	for _, d := range e.departed {
		f.clock.AfterFunc(f.index.linger, func() { f.enqueueEffect(f.index.endLingerPeriod(d)) })
	}
}

func partialObject(apiVersion, kind string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}}
}

// The read functions extract data for the index; a nil object no longer exists.

func readNamespace(o client.Object) *namespace {
	if o == nil {
		return nil
	}
	return &namespace{labels: o.GetLabels(), terminating: o.GetDeletionTimestamp() != nil}
}

func readLabels(o client.Object) labels.Set {
	if o == nil {
		return nil
	}
	if set := o.GetLabels(); set != nil {
		return set
	}
	return labels.Set{}
}

func readService(o client.Object) *serviceTraffic {
	service, ok := o.(*corev1.Service)
	if !ok {
		return nil
	}
	return readServiceTraffic(service)
}

func readPolicy(o client.Object) *networkingv1.NetworkPolicy {
	p, _ := o.(*networkingv1.NetworkPolicy)
	return p
}

// readIngress returns the Services that the rules of an Ingress lead to.
func readIngress(o client.Object) []backend {
	ingress, ok := o.(*networkingv1.Ingress)
	if !ok {
		return nil
	}
	var out []backend
	for _, rule := range ingress.Spec.Rules {
		if rule.HTTP == nil {
			continue
		}
		for _, path := range rule.HTTP.Paths {
			if to := path.Backend.Service; to != nil {
				out = append(out, backend{service: types.NamespacedName{Namespace: ingress.Namespace, Name: to.Name}, port: to.Port})
			}
		}
	}
	return out
}
