// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/pergola-dev/pergola/api/crds"
)

// objectListerQPS is the default number of requests per second.
const objectListerQPS = 100

// ObjectLister reads the objects that rules and mutations of the virtual garden need.
type ObjectLister interface {
	// Objects returns all objects of a kind, and whether the kind is served. Callers must not
	// modify them. They may come from a slightly stale cache unless fresh is set.
	Objects(ctx context.Context, kind schema.GroupVersionKind, fresh bool) (objects []*unstructured.Unstructured, served bool, err error)
}

// WatchedObjects watches each kind from its first use on.
type WatchedObjects struct {
	client    dynamic.Interface
	ctx       context.Context
	mu        sync.Mutex
	informers map[schema.GroupVersionKind]cache.SharedIndexInformer
}

// NewWatchedObjects reads from the API server of a virtual garden until ctx ends. It needs
// permission to list and watch the neighbours of all kinds (docs/reference/admission-webhooks.md).
// A kind that is not served counts as empty.
func NewWatchedObjects(ctx context.Context, config *rest.Config) (*WatchedObjects, error) {
	config = rest.CopyConfig(config)
	if config.QPS == 0 {
		// the first request reads many kinds within its timeout
		config.QPS, config.Burst = objectListerQPS, 2*objectListerQPS
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the virtual garden: %w", err)
	}
	return &WatchedObjects{client: client, ctx: ctx, informers: map[schema.GroupVersionKind]cache.SharedIndexInformer{}}, nil
}

// Objects implements Surroundings.
func (l *WatchedObjects) Objects(ctx context.Context, kind schema.GroupVersionKind, fresh bool) ([]*unstructured.Unstructured, bool, error) {
	definition := crds.Get(kind.Group, kind.Kind)
	if definition == nil {
		return nil, false, fmt.Errorf("there is no definition of %s", kind)
	}
	resource := kind.GroupVersion().WithResource(definition.Spec.Names.Plural)
	if fresh {
		return l.list(ctx, resource)
	}
	informer := l.informerFor(kind)
	if informer == nil {
		// Check that the kind exists first: a watch of a kind that is not served only fails.
		_, err := l.client.Resource(resource).List(ctx, metav1.ListOptions{Limit: 1})
		if apierrors.IsNotFound(err) {
			return nil, false, nil
		}
		if err != nil {
			return nil, false, fmt.Errorf("listing %s: %w", resource.GroupResource(), err)
		}
		informer = l.startInformer(kind, resource)
	}
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return nil, false, fmt.Errorf("reading %s: %w", resource.GroupResource(), context.Cause(ctx))
	}
	items := informer.GetStore().List()
	objects := make([]*unstructured.Unstructured, 0, len(items))
	for _, item := range items {
		if object, ok := item.(*unstructured.Unstructured); ok {
			objects = append(objects, object)
		}
	}
	return objects, true, nil
}

func (l *WatchedObjects) list(ctx context.Context, resource schema.GroupVersionResource) ([]*unstructured.Unstructured, bool, error) {
	list, err := l.client.Resource(resource).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("listing %s: %w", resource.GroupResource(), err)
	}
	objects := make([]*unstructured.Unstructured, len(list.Items))
	for i := range list.Items {
		objects[i] = &list.Items[i]
	}
	return objects, true, nil
}

func (l *WatchedObjects) informerFor(kind schema.GroupVersionKind) cache.SharedIndexInformer {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.informers[kind]
}

func (l *WatchedObjects) startInformer(kind schema.GroupVersionKind, resource schema.GroupVersionResource) cache.SharedIndexInformer {
	l.mu.Lock()
	defer l.mu.Unlock()
	if informer := l.informers[kind]; informer != nil {
		return informer
	}
	const never = time.Duration(0)
	informer := dynamicinformer.NewFilteredDynamicInformer(l.client, resource, metav1.NamespaceAll, never, cache.Indexers{}, nil).Informer()
	l.informers[kind] = informer
	go informer.RunWithContext(l.ctx)
	return informer
}
