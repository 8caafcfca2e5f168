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

// retryWatch is the pause between attempts to start a watch.
const retryWatch = time.Second

// feed fills the index from watches and enqueues the Services that a change affects. It is the only
// source of the controller, which starts when the index is complete: a Service seen before its
// clients would lose its policies.
type feed struct {
	index  *index
	cache  cache.Cache
	clock  clock.WithDelayedExecution
	log    logr.Logger
	fought func(policy types.NamespacedName)

	queue  workqueue.TypedRateLimitingInterface[reconcile.Request]
	fights fights
	begun  chan error
	istio  *istio

	mu     sync.Mutex
	synced []toolscache.InformerSynced
}

// Start starts the watches.
func (f *feed) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	f.queue, f.begun = queue, make(chan error, 1)
	f.fights = fights{clock: f.clock, by: map[types.NamespacedName]fight{}}
	f.istio = newIstio(f)
	go func() { f.begun <- f.begin(ctx) }()
	return nil
}

// WaitForSync returns when the index is complete.
func (f *feed) WaitForSync(ctx context.Context) error {
	select {
	case err := <-f.begun:
		if err != nil {
			return err
		}
	case <-ctx.Done():
		return errors.New("network policies: the watches did not begin in time")
	}
	f.mu.Lock()
	synced := f.synced
	f.mu.Unlock()
	if !toolscache.WaitForCacheSync(ctx.Done(), synced...) {
		return errors.New("network policies: the cluster was not read in time: see what the watches say, they need list and watch of " +
			"services, pods, namespaces, networkpolicies, ingresses, customresourcedefinitions, virtualservices and gateways")
	}
	return nil
}

func (f *feed) begin(ctx context.Context) error {
	x := f.index
	watches := []struct {
		of  client.Object
		set func(types.NamespacedName, client.Object) effect
	}{
		{metadata("v1", "Namespace"), func(key types.NamespacedName, o client.Object) effect {
			return x.setNamespace(key.Name, readNamespace(o))
		}},
		{metadata("v1", "Pod"), func(key types.NamespacedName, o client.Object) effect { return x.setPod(key, readLabels(o)) }},
		{&corev1.Service{}, func(key types.NamespacedName, o client.Object) effect { return x.setService(key, readService(o)) }},
		{&networkingv1.NetworkPolicy{}, func(key types.NamespacedName, o client.Object) effect { return x.setPolicy(key, readPolicy(o)) }},
	}
	for _, w := range watches {
		if err := f.watchPatiently(ctx, w.of, w.set); err != nil {
			return err
		}
	}
	if x.controller != nil {
		if err := f.watchPatiently(ctx, &networkingv1.Ingress{}, func(key types.NamespacedName, o client.Object) effect {
			return x.setIngress(key, readIngress(o))
		}); err != nil {
			return err
		}
	}
	return f.istio.begin(ctx)
}

// watchPatiently retries until the context ends: the API server may be unavailable for a moment.
func (f *feed) watchPatiently(ctx context.Context, of client.Object, set func(types.NamespacedName, client.Object) effect) error {
	for {
		synced, err := f.watch(ctx, of, set)
		if err == nil {
			f.mu.Lock()
			f.synced = append(f.synced, synced)
			f.mu.Unlock()
			return nil
		}
		f.log.Error(err, "a watch does not begin", "kind", fmt.Sprintf("%T", of))
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-f.clock.After(retryWatch):
		}
	}
}

// watch fills the index from the watch of a kind.
func (f *feed) watch(ctx context.Context, of client.Object, set func(types.NamespacedName, client.Object) effect) (toolscache.InformerSynced, error) {
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
		f.follow(set(key, object))
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

// follow enqueues what a change affects.
func (f *feed) follow(e effect) {
	var pause time.Duration
	if e.fight != nil {
		var often bool
		if pause, often = f.fights.pause(*e.fight); often {
			f.fought(*e.fight)
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
	for _, d := range e.gone {
		f.clock.AfterFunc(f.index.linger, func() { f.follow(f.index.expire(d)) })
	}
}

func metadata(apiVersion, kind string) *metav1.PartialObjectMetadata {
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

func readService(o client.Object) *target {
	service, ok := o.(*corev1.Service)
	if !ok {
		return nil
	}
	return readTarget(service)
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
