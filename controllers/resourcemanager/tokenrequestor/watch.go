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

// watch returns an informer that caches only names, UIDs and versions.
func watch(client metadata.Interface, resource, namespace string, selector labels.Set, failed func(error)) (cache.SharedIndexInformer, error) {
	gvr := schema.GroupVersionResource{Version: corev1.SchemeGroupVersion.Version, Resource: resource}
	informer := metadatainformer.NewFilteredMetadataInformer(client, gvr, namespace, 0, cache.Indexers{}, func(o *metav1.ListOptions) {
		o.LabelSelector = selector.String()
	}).Informer()
	if err := informer.SetTransform(onlyIdentity); err != nil {
		return nil, err
	}
	return informer, informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		failed(fmt.Errorf("watching %s in namespace %q: %w", resource, namespace, err))
	})
}

func onlyIdentity(o any) (any, error) {
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
		informer, err := watch(client, "secrets", namespace, selector, func(err error) { logger.Error(err, "not told of changes") })
		if err != nil {
			return err
		}
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: tell, UpdateFunc: func(_, o any) { tell(o) }, DeleteFunc: tell}); err != nil {
			return err
		}
		go informer.RunWithContext(silent(ctx))
	}
	return nil
}

// patience is how long to wait for the list of ServiceAccounts of a namespace.
const patience = 10 * time.Second

// accounts watches the ServiceAccounts of all namespaces in which Secrets have an account.
type accounts struct {
	client metadata.Interface

	mu sync.Mutex
	// ctx ends the watches; nil before start.
	ctx     context.Context
	changed func(secret types.NamespacedName)
	watched map[string]*accountsWatch
	// users are the Secrets of an account, uses the account of a Secret.
	users map[types.NamespacedName]map[types.NamespacedName]bool
	uses  map[types.NamespacedName]types.NamespacedName
}

// accountsWatch is the watch of one namespace.
type accountsWatch struct {
	cache.SharedIndexInformer
	// broken is closed at the first failure: the watch retries, but nobody waits for it any more.
	broken    chan struct{}
	breakOnce sync.Once
}

func newAccounts(target *rest.Config) (*accounts, error) {
	client, err := metadata.NewForConfig(target)
	if err != nil {
		return nil, err
	}
	return &accounts{
		client: client, watched: map[string]*accountsWatch{},
		users: map[types.NamespacedName]map[types.NamespacedName]bool{}, uses: map[types.NamespacedName]types.NamespacedName{},
	}, nil
}

// start allows watches.
func (a *accounts) start(ctx context.Context, changed func(secret types.NamespacedName)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ctx, a.changed = ctx, changed
}

// refer records the account of a Secret.
func (a *accounts) refer(secret, account types.NamespacedName) {
	a.forget(secret)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.users[account] == nil {
		a.users[account] = map[types.NamespacedName]bool{}
	}
	a.users[account][secret] = true
	a.uses[secret] = account
}

// forget drops a Secret. Watches stay: there is one per namespace, and namespaces are few.
func (a *accounts) forget(secret types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	account := a.uses[secret]
	delete(a.uses, secret)
	if delete(a.users[account], secret); len(a.users[account]) == 0 {
		delete(a.users, account)
	}
}

// watchOf returns the watch of a namespace and starts it if necessary; nil before start.
func (a *accounts) watchOf(namespace string) (*accountsWatch, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if w := a.watched[namespace]; w != nil || a.ctx == nil {
		return w, nil
	}
	w, logger := &accountsWatch{broken: make(chan struct{})}, log.FromContext(a.ctx)
	var err error
	w.SharedIndexInformer, err = watch(a.client, "serviceaccounts", namespace, nil, func(err error) {
		logger.Error(err, "not told of ServiceAccounts that go")
		w.breakOnce.Do(func() { close(w.broken) })
	})
	if err != nil {
		return nil, err
	}
	_, err = w.AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(old, new any) {
			if _, before, ok := identityOf(old); ok {
				if _, now, ok := identityOf(new); ok && before != now {
					a.tell(new)
				}
			}
		},
		DeleteFunc: a.tell,
	})
	if err != nil {
		return nil, err
	}
	go w.RunWithContext(silent(a.ctx))
	a.watched[namespace] = w
	return w, nil
}

// tell reports a deleted or recreated account: its tokens are invalid.
func (a *accounts) tell(o any) {
	account, _, ok := identityOf(o)
	if !ok {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for secret := range a.users[account] {
		a.changed(secret)
	}
}

// is reports whether the account with a UID exists. If the watch disagrees, which may be outdated,
// it asks the API server.
func (a *accounts) is(ctx context.Context, account types.NamespacedName, uid types.UID) (bool, error) {
	w, err := a.watchOf(account.Namespace)
	if err != nil {
		return false, err
	}
	if w != nil {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		select {
		case <-w.HasSyncedChecker().Done():
			if o, there, _ := w.GetStore().GetByKey(account.String()); there {
				if _, have, ok := identityOf(o); ok && have == uid {
					return true, nil
				}
			}
		case <-w.broken:
		case <-ctx.Done():
		}
	}
	live, err := a.client.Resource(corev1.SchemeGroupVersion.WithResource("serviceaccounts")).Namespace(account.Namespace).Get(ctx, account.Name, metav1.GetOptions{})
	if err != nil {
		return false, err
	}
	return live.UID == uid, nil
}
