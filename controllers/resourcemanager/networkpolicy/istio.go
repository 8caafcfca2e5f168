// SPDX-License-Identifier: Apache-2.0

package networkpolicy

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	istioAPI = "networking.istio.io/v1beta1"
	// maxWatchPause bounds the pauses between attempts to watch a kind that is defined but not
	// served.
	maxWatchPause = time.Minute
)

// istioWatches watches VirtualServices and Gateways while their definitions exist: Istio may be
// installed after this controller starts.
type istioWatches struct {
	feed *indexFeed
	// kinds are the kinds to watch by the names of their definitions.
	kinds map[string]istioKind

	mu      sync.Mutex
	watches map[string]*istioWatch
}

type istioKind struct {
	object *unstructured.Unstructured
	set    func(types.NamespacedName, client.Object) indexEffect
	keys   func() []types.NamespacedName
}

// istioWatch is the watch of a kind while its definition exists.
type istioWatch struct {
	cancel context.CancelFunc
	// unserved says that there is nothing to wait for yet; synced says that all is read.
	unserved atomic.Bool
	synced   atomic.Pointer[toolscache.InformerSynced]
}

func newIstioWatches(f *indexFeed) *istioWatches {
	object := func(kind string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{}
		o.SetAPIVersion(istioAPI)
		o.SetKind(kind)
		return o
	}
	return &istioWatches{feed: f, watches: map[string]*istioWatch{}, kinds: map[string]istioKind{
		"virtualservices.networking.istio.io": {object("VirtualService"), func(key types.NamespacedName, o client.Object) indexEffect {
			return f.index.setVirtualService(key, readVirtualService(o))
		}, f.index.virtualServiceKeys},
		"gateways.networking.istio.io": {object("Gateway"), func(key types.NamespacedName, o client.Object) indexEffect {
			return f.index.setGateway(key, readGateway(o))
		}, f.index.gatewayKeys},
	}}
}

// start watches the definitions; when it returns, the watches of defined kinds have started.
func (i *istioWatches) start(ctx context.Context) error {
	definition := partialObject("apiextensions.k8s.io/v1", "CustomResourceDefinition")
	if err := i.feed.watchWithRetry(ctx, definition, func(key types.NamespacedName, o client.Object) indexEffect {
		if kind, ok := i.kinds[key.Name]; ok {
			i.updateWatch(ctx, key.Name, kind, o != nil)
		}
		return indexEffect{}
	}); err != nil {
		return err
	}
	i.feed.mu.Lock()
	last := i.feed.synced[len(i.feed.synced)-1]
	i.feed.mu.Unlock()
	if !toolscache.WaitForCacheSync(ctx.Done(), last) {
		return errors.New("network policies: cannot find out in time whether Istio is installed: allow list and watch of customresourcedefinitions")
	}
	return nil
}

// updateWatch starts or ends the watch of a kind.
func (i *istioWatches) updateWatch(ctx context.Context, name string, kind istioKind, defined bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	w := i.watches[name]
	switch {
	case defined && w == nil:
		ctx, end := context.WithCancel(ctx)
		w = &istioWatch{cancel: end}
		i.watches[name] = w
		i.feed.mu.Lock()
		i.feed.synced = append(i.feed.synced, w.hasSynced)
		i.feed.mu.Unlock()
		go i.watch(ctx, w, kind)
	case !defined && w != nil:
		w.cancel()
		w.unserved.Store(true)
		delete(i.watches, name)
		if err := i.feed.cache.RemoveInformer(ctx, kind.object); err != nil {
			i.feed.log.Error(err, "cannot stop a watch", "kind", kind.object.GetKind())
		}
		for _, key := range kind.keys() {
			i.feed.enqueueEffect(kind.set(key, nil))
		}
	}
}

// watch retries until the kind is served.
func (i *istioWatches) watch(ctx context.Context, w *istioWatch, kind istioKind) {
	for pause := minWatchPause; ; pause = min(2*pause, maxWatchPause) {
		synced, err := i.feed.watch(ctx, kind.object, func(key types.NamespacedName, o client.Object) indexEffect {
			if ctx.Err() != nil {
				return indexEffect{} // its definition was deleted
			}
			return kind.set(key, o)
		})
		if err == nil {
			w.synced.Store(&synced)
			return
		}
		if meta.IsNoMatchError(err) {
			w.unserved.Store(true)
		} else {
			i.feed.log.Error(err, "cannot start a watch", "kind", kind.object.GetKind())
		}
		select {
		case <-ctx.Done():
			return
		case <-i.feed.clock.After(pause):
		}
	}
}

func (w *istioWatch) hasSynced() bool {
	synced := w.synced.Load()
	return w.unserved.Load() || synced != nil && (*synced)()
}
