// SPDX-License-Identifier: Apache-2.0

package namespacepolicies

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
)

const (
	// FieldManager owns the fields that the controller writes.
	FieldManager = "pergola-namespacepolicies"
	// workers is upstream's number of namespaces that are reconciled concurrently.
	workers = 5
	// qps bounds the requests: a new address of the API server affects all namespaces at once.
	qps = 50
)

// Roles that manage policies, as values of LabelMadeBy.
const (
	RoleOperator  = "operator"
	RoleGardenlet = "gardenlet"
)

// Options configure a Controller.
type Options struct {
	// Role is the role that manages the policies. Policies of other roles are not deleted.
	Role string
	// ExtraNamespaces selects namespaces besides Gardener's that get all policies.
	ExtraNamespaces []labels.Selector
	// LookupHost resolves a host name; the default is the resolver of the machine.
	LookupHost func(ctx context.Context, host string) ([]string, error)
	Clock      clock.WithTicker
	Log        *slog.Logger
}

// Controller manages the policies of a cluster. It writes nothing until Set is called.
type Controller struct {
	options    Options
	config     *rest.Config
	client     kubernetes.Interface
	namespaces cache.SharedIndexInformer
	policies   cache.SharedIndexInformer
	endpoints  cache.SharedIndexInformer
	// clusters are watched once a namespace of a Shoot exists: a runtime cluster that is not a seed
	// lacks the kind.
	clusters      cache.SharedIndexInformer
	watchClusters func()
	queue         workqueue.TypedRateLimitingInterface[string]
	repairLimiter repairLimiter

	mu       sync.Mutex
	isActive bool
	networks *Networks
	// apiServerAddresses are the addresses of the API server's name, valid once isHostResolved is
	// true.
	isHostResolved     bool
	apiServerAddresses []netip.AddrPort
}

var clustersResource = schema.GroupVersionResource{Group: "extensions.gardener.cloud", Version: "v1alpha1", Resource: "clusters"}

// New returns a Controller for a cluster. It sends no request.
func New(config *rest.Config, o Options) (*Controller, error) {
	if o.LookupHost == nil {
		o.LookupHost = resolveHost
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = qps, 2*qps
	c := &Controller{options: o, config: config, repairLimiter: repairLimiter{clock: o.Clock}}
	var err error
	if c.client, err = kubernetes.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("creating a client for policies of namespaces: %w", err)
	}
	meta, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("creating a client for policies of namespaces: %w", err)
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("creating a client for policies of namespaces: %w", err)
	}
	c.namespaces = metadatainformer.NewFilteredMetadataInformer(meta, schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, "", 0, cache.Indexers{}, nil).Informer()
	c.policies = informers.NewSharedInformerFactory(c.client, 0).Networking().V1().NetworkPolicies().Informer()
	c.endpoints = informers.NewSharedInformerFactoryWithOptions(c.client, 0, informers.WithNamespace(metav1.NamespaceDefault),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.LabelSelector = labels.Set{discoveryv1.LabelServiceName: "kubernetes"}.String()
		})).Discovery().V1().EndpointSlices().Informer()
	c.clusters = dynamicinformer.NewFilteredDynamicInformer(objects, clustersResource, "", 0, cache.Indexers{}, nil).Informer()
	c.queue = workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Second, time.Minute))
	return c, c.addEventHandlers()
}

// addEventHandlers enqueues the namespaces that a change affects.
func (c *Controller) addEventHandlers() error {
	one := func(name func(metav1.Object) string) cache.ResourceEventHandlerFuncs {
		return c.eventHandler(func(o metav1.Object) { c.queue.Add(name(o)) })
	}
	for _, w := range []struct {
		informer  cache.SharedIndexInformer
		transform cache.TransformFunc
		handler   cache.ResourceEventHandlerFuncs
	}{
		{c.namespaces, trimMetadata, one(metav1.Object.GetName)},
		{c.policies, trimPolicy, c.eventHandler(func(o metav1.Object) {
			if slices.Contains(policyNames(), o.GetName()) {
				c.queue.Add(o.GetNamespace())
			}
		})},
		{c.endpoints, dropManagedFields, c.eventHandler(func(metav1.Object) { c.enqueueAll() })},
		{c.clusters, trimCluster, one(metav1.Object.GetName)},
	} {
		if err := w.informer.SetTransform(w.transform); err != nil {
			return fmt.Errorf("preparing the watches for policies of namespaces: %w", err)
		}
		if _, err := w.informer.AddEventHandler(w.handler); err != nil {
			return fmt.Errorf("preparing the watches for policies of namespaces: %w", err)
		}
	}
	return nil
}

func (c *Controller) eventHandler(changed func(metav1.Object)) cache.ResourceEventHandlerFuncs {
	note := func(o any) {
		if last, ok := o.(cache.DeletedFinalStateUnknown); ok {
			o = last.Obj
		}
		if object, ok := o.(metav1.Object); ok {
			changed(object)
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: note, UpdateFunc: func(_, next any) { note(next) }, DeleteFunc: note}
}

// enqueueAll enqueues all namespaces.
func (c *Controller) enqueueAll() {
	for _, name := range c.namespaces.GetStore().ListKeys() {
		c.queue.Add(name)
	}
}

// SetNetworks sets the networks of the cluster. With nil, nothing uses it, and the policies of the
// role are deleted.
func (c *Controller) SetNetworks(n *Networks) {
	c.mu.Lock()
	same := c.isActive && c.networks.equal(n)
	c.isActive, c.networks = true, n
	c.mu.Unlock()
	if !same {
		c.enqueueAll()
	}
}

// Suspend stops all writes, because another role manages the policies now.
func (c *Controller) Suspend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isActive = false
}

func (c *Controller) setAPIServerAddresses(at []netip.AddrPort) {
	c.mu.Lock()
	same := c.isHostResolved && slices.Equal(at, c.apiServerAddresses)
	c.isHostResolved, c.apiServerAddresses = true, at
	c.mu.Unlock()
	if !same {
		c.enqueueAll()
	}
}

// Run reconciles until ctx ends. It retries while the cluster does not answer.
func (c *Controller) Run(ctx context.Context) {
	defer c.queue.ShutDown()
	var group sync.WaitGroup
	defer group.Wait()
	// The watch of Clusters starts on demand.
	c.watchClusters = sync.OnceFunc(func() { group.Go(func() { c.clusters.RunWithContext(ctx) }) })
	for _, i := range []cache.SharedIndexInformer{c.namespaces, c.policies, c.endpoints} {
		group.Go(func() { i.RunWithContext(ctx) })
	}
	if !cache.WaitForCacheSync(ctx.Done(), c.namespaces.HasSynced, c.policies.HasSynced, c.endpoints.HasSynced) {
		return
	}
	group.Go(func() { c.pollHostAddresses(ctx) })
	for range workers {
		group.Go(func() {
			for c.processNext(ctx) {
			}
		})
	}
	<-ctx.Done()
	c.queue.ShutDown()
}

func (c *Controller) processNext(ctx context.Context) bool {
	name, shutdown := c.queue.Get()
	if shutdown {
		return false
	}
	defer c.queue.Done(name)
	again, err := c.reconcile(ctx, name)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		c.options.Log.Error("cannot reconcile the network policies of a namespace", "namespace", name, "error", err)
		c.queue.AddRateLimited(name)
	default:
		c.queue.Forget(name)
		if again > 0 {
			c.queue.AddAfter(name, again)
		}
	}
	return true
}

// The transforms drop fields that the controller does not read.

func dropManagedFields(o any) (any, error) {
	if object, ok := o.(metav1.Object); ok {
		object.SetManagedFields(nil)
	}
	return o, nil
}

func trimMetadata(o any) (any, error) {
	if m, ok := o.(*metav1.PartialObjectMetadata); ok {
		m.Annotations, m.OwnerReferences, m.ManagedFields, m.Finalizers = nil, nil, nil, nil
	}
	return o, nil
}

func trimPolicy(o any) (any, error) {
	p, ok := o.(*networkingv1.NetworkPolicy)
	switch {
	case !ok:
	case slices.Contains(policyNames(), p.Name):
		p.ManagedFields = nil
	default:
		return &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion}}, nil
	}
	return o, nil
}

func trimCluster(o any) (any, error) {
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return o, nil
	}
	out := &unstructured.Unstructured{Object: map[string]any{"apiVersion": u.GetAPIVersion(), "kind": u.GetKind()}}
	out.SetName(u.GetName())
	out.SetUID(u.GetUID())
	out.SetResourceVersion(u.GetResourceVersion())
	for _, part := range []string{"spec", "status"} {
		path := []string{"spec", "shoot", part, "networking"}
		if found, ok, err := unstructured.NestedMap(u.Object, path...); err == nil && ok {
			if err := unstructured.SetNestedMap(out.Object, found, path...); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}
