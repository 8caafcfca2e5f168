// SPDX-License-Identifier: Apache-2.0

package tokenrequestor

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// newMetadataInformer returns an informer that caches only names, UIDs and versions.
func newMetadataInformer(client metadata.Interface, resource, namespace string, selector labels.Set, failed func(error)) (cache.SharedIndexInformer, error) {
	gvr := schema.GroupVersionResource{Version: corev1.SchemeGroupVersion.Version, Resource: resource}
	informer := metadatainformer.NewFilteredMetadataInformer(client, gvr, namespace, 0, cache.Indexers{}, func(o *metav1.ListOptions) {
		o.LabelSelector = selector.String()
	}).Informer()
	if err := informer.SetTransform(trimToIdentity); err != nil {
		return nil, err
	}
	return informer, informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		failed(fmt.Errorf("watching %s in namespace %q: %w", resource, namespace, err))
	})
}

func trimToIdentity(o any) (any, error) {
	if m, err := meta.Accessor(o); err == nil {
		m.SetManagedFields(nil)
		m.SetAnnotations(nil)
		m.SetLabels(nil)
		m.SetOwnerReferences(nil)
		m.SetFinalizers(nil)
	}
	return o, nil
}

// identityOf reads an object of an informer, including a deleted final state.
func identityOf(o any) (types.NamespacedName, types.UID, bool) {
	if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = gone.Obj
	}
	m, err := meta.Accessor(o)
	if err != nil {
		return types.NamespacedName{}, "", false
	}
	return types.NamespacedName{Namespace: m.GetNamespace(), Name: m.GetName()}, m.GetUID(), true
}

// watchSecrets reports changes of the selected Secrets.
func watchSecrets(ctx context.Context, client metadata.Interface, namespaces []string, selector labels.Set, changed func(types.NamespacedName)) error {
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	logger := log.FromContext(ctx)
	tell := func(o any) {
		if key, _, ok := identityOf(o); ok {
			changed(key)
		}
	}
	for _, namespace := range namespaces {
		informer, err := newMetadataInformer(client, "secrets", namespace, selector, func(err error) { logger.Error(err, "cannot watch Secrets") })
		if err != nil {
			return err
		}
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: tell, UpdateFunc: func(_, o any) { tell(o) }, DeleteFunc: tell}); err != nil {
			return err
		}
		go informer.RunWithContext(withoutLogger(ctx))
	}
	return nil
}

// accountSyncTimeout is how long to wait for the list of ServiceAccounts of a namespace.
const accountSyncTimeout = 10 * time.Second

// accountWatcher watches the ServiceAccounts of all namespaces in which Secrets have an account.
type accountWatcher struct {
	client metadata.Interface

	mu sync.Mutex
	// ctx ends the watches; nil before start.
	ctx     context.Context
	changed func(secret types.NamespacedName)
	watches map[string]*namespaceWatch
	// secretsByAccount has the Secrets of an account; accountBySecret has the account of a Secret.
	secretsByAccount map[types.NamespacedName]map[types.NamespacedName]bool
	accountBySecret  map[types.NamespacedName]types.NamespacedName
}

// namespaceWatch is the watch of one namespace.
type namespaceWatch struct {
	cache.SharedIndexInformer
	// failed is closed at the first failure: the watch retries, but no caller waits for it.
	failed   chan struct{}
	failOnce sync.Once
}

func newAccountWatcher(target *rest.Config) (*accountWatcher, error) {
	client, err := metadata.NewForConfig(target)
	if err != nil {
		return nil, err
	}
	return &accountWatcher{
		client: client, watches: map[string]*namespaceWatch{},
		secretsByAccount: map[types.NamespacedName]map[types.NamespacedName]bool{}, accountBySecret: map[types.NamespacedName]types.NamespacedName{},
	}, nil
}

// start allows watches.
func (a *accountWatcher) start(ctx context.Context, changed func(secret types.NamespacedName)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ctx, a.changed = ctx, changed
}

// setAccount records the account of a Secret.
func (a *accountWatcher) setAccount(secret, account types.NamespacedName) {
	a.forget(secret)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.secretsByAccount[account] == nil {
		a.secretsByAccount[account] = map[types.NamespacedName]bool{}
	}
	a.secretsByAccount[account][secret] = true
	a.accountBySecret[secret] = account
}

// forget drops a Secret. Watches stay: there is one per namespace, and namespaces are few.
func (a *accountWatcher) forget(secret types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	account := a.accountBySecret[secret]
	delete(a.accountBySecret, secret)
	if delete(a.secretsByAccount[account], secret); len(a.secretsByAccount[account]) == 0 {
		delete(a.secretsByAccount, account)
	}
}

// watchNamespace returns the watch of a namespace and starts it if necessary; nil before start.
func (a *accountWatcher) watchNamespace(namespace string) (*namespaceWatch, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if w := a.watches[namespace]; w != nil || a.ctx == nil {
		return w, nil
	}
	w, logger := &namespaceWatch{failed: make(chan struct{})}, log.FromContext(a.ctx)
	var err error
	w.SharedIndexInformer, err = newMetadataInformer(a.client, "serviceaccounts", namespace, nil, func(err error) {
		logger.Error(err, "cannot watch ServiceAccounts")
		w.failOnce.Do(func() { close(w.failed) })
	})
	if err != nil {
		return nil, err
	}
	_, err = w.AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(old, new any) {
			if _, before, ok := identityOf(old); ok {
				if _, now, ok := identityOf(new); ok && before != now {
					a.notifySecrets(new)
				}
			}
		},
		DeleteFunc: a.notifySecrets,
	})
	if err != nil {
		return nil, err
	}
	go w.RunWithContext(withoutLogger(a.ctx))
	a.watches[namespace] = w
	return w, nil
}

// notifySecrets reports a deleted or recreated account: its tokens are invalid.
func (a *accountWatcher) notifySecrets(o any) {
	account, _, ok := identityOf(o)
	if !ok {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for secret := range a.secretsByAccount[account] {
		a.changed(secret)
	}
}

// hasUID reports whether the account with a UID exists. If the watch disagrees, which may be
// outdated, it asks the API server.
func (a *accountWatcher) hasUID(ctx context.Context, account types.NamespacedName, uid types.UID) (bool, error) {
	w, err := a.watchNamespace(account.Namespace)
	if err != nil {
		return false, err
	}
	if w != nil {
		ctx, cancel := context.WithTimeout(ctx, accountSyncTimeout)
		defer cancel()
		select {
		case <-w.HasSyncedChecker().Done():
			if o, there, _ := w.GetStore().GetByKey(account.String()); there {
				if _, have, ok := identityOf(o); ok && have == uid {
					return true, nil
				}
			}
		case <-w.failed:
		case <-ctx.Done():
		}
	}
	live, err := a.client.Resource(corev1.SchemeGroupVersion.WithResource("serviceaccounts")).Namespace(account.Namespace).Get(ctx, account.Name, metav1.GetOptions{})
	if err != nil {
		return false, err
	}
	return live.UID == uid, nil
}
