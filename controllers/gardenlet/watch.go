// SPDX-License-Identifier: Apache-2.0

package gardenlet

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/controllers/seedpublication"
)

// watchedKind is a kind of the virtual garden that the gardenlet watches.
type watchedKind struct {
	kind      string
	gvr       schema.GroupVersionResource
	namespace string
	fields    string
	labels    string
	// filter filters the objects of this seed if the server cannot select them; nil keeps all.
	filter func(*unstructured.Unstructured) bool

	informer cache.SharedIndexInformer
}

// gardenObjects caches the objects of the virtual garden that concern a seed.
type gardenObjects struct {
	g     *Gardenlet
	kinds []*watchedKind
}

// Kinds have the names of watched.
const (
	kindSeed               = "Seed"
	kindShoot              = "Shoot"
	kindProject            = "Project"
	kindCloudProfile       = "CloudProfile"
	kindNamespacedProfile  = "NamespacedCloudProfile"
	kindExposureClass      = "ExposureClass"
	kindRegistration       = "ControllerRegistration"
	kindPublicationPointer = "ConfigMap"
	kindPublicationPart    = "Secret"
	kindPublicationReview  = "Review"
)

func newGardenObjects(g *Gardenlet) (*gardenObjects, error) {
	core := func(kind, plural, namespace, fields string) *watchedKind {
		return &watchedKind{kind: kind, gvr: gardencorev1beta1.SchemeGroupVersion.WithResource(plural), namespace: namespace, fields: fields}
	}
	own := seedpublication.SeedNamespace(g.options.Seed)
	secrets, configMaps := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	o := &gardenObjects{g: g, kinds: []*watchedKind{
		core(kindSeed, "seeds", "", "metadata.name="+g.options.Seed),
		core(kindShoot, "shoots", "", "spec.seedName="+g.options.Seed),
		core(kindProject, "projects", "", ""),
		core(kindCloudProfile, "cloudprofiles", "", ""),
		core(kindNamespacedProfile, "namespacedcloudprofiles", "", ""),
		core(kindExposureClass, "exposureclasses", "", ""),
		core(kindRegistration, "controllerregistrations", "", ""),
		{kind: kindPublicationPointer, gvr: configMaps, namespace: own, fields: "metadata.name=" + seedpublication.PointerName},
		{kind: kindPublicationReview, gvr: configMaps, namespace: own, fields: "metadata.name=" + seedpublication.ReviewName},
		{kind: kindPublicationPart, gvr: secrets, namespace: own, labels: seedpublication.LabelPart},
	}}
	for _, w := range o.kinds {
		if err := o.addInformer(w); err != nil {
			return nil, fmt.Errorf("watching %s: %w", w.gvr.Resource, err)
		}
	}
	return o, nil
}

// startWatches begins to watch, and waits until all kinds are listed once. It retries while the
// virtual garden is unreachable.
func (o *gardenObjects) startWatches(ctx context.Context) error {
	if err := o.selectShoots(ctx); err != nil {
		return err
	}
	var synced []cache.InformerSynced
	for _, w := range o.kinds {
		synced = append(synced, w.informer.HasSynced)
		go w.informer.RunWithContext(ctx)
	}
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return context.Cause(ctx)
	}
	return nil
}

// selectShoots checks whether the server can select Shoots by seed. An API made of
// CustomResourceDefinitions may not. Then the gardenlet watches all Shoots, and bare and keeps drop
// those of other seeds.
func (o *gardenObjects) selectShoots(ctx context.Context) error {
	g := o.g
	w := o.watchedKind(kindShoot)
	wait := g.options.Timing.RetryInterval / 10
	for {
		_, err := g.connections.garden.Dynamic().Resource(w.gvr).List(ctx, metav1.ListOptions{FieldSelector: w.fields, Limit: 1})
		switch {
		case err == nil:
			return nil
		case apierrors.IsBadRequest(err):
			w.fields, w.filter = "", g.isOnThisSeed
			return nil
		}
		g.recordHeartbeatError(fmt.Errorf("reading Shoots of the virtual garden: %w", err))
		timer := g.options.Clock.NewTimer(wait)
		wait = min(2*wait, g.options.Timing.RetryInterval)
		select {
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case <-timer.C():
		}
	}
}

func (g *Gardenlet) isOnThisSeed(shoot *unstructured.Unstructured) bool {
	name, _, _ := unstructured.NestedString(shoot.Object, "spec", "seedName")
	return name == g.options.Seed
}

func (o *gardenObjects) addInformer(w *watchedKind) error {
	api := o.g.connections.garden.Dynamic().Resource(w.gvr).Namespace(w.namespace)
	narrow := func(options *metav1.ListOptions) { options.FieldSelector, options.LabelSelector = w.fields, w.labels }
	w.informer = cache.NewSharedIndexInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			narrow(&options)
			return api.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			narrow(&options)
			return api.Watch(ctx, options)
		},
	}, &unstructured.Unstructured{}, 0, cache.Indexers{})
	if err := w.informer.SetTransform(w.trimObject); err != nil {
		return err
	}
	_, err := w.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { o.g.requestSync() }, UpdateFunc: func(any, any) { o.g.requestSync() }, DeleteFunc: func(any) { o.g.requestSync() },
	})
	return err
}

// trimObject drops unused fields; a Shoot of another seed keeps only its identifying metadata.
func (w *watchedKind) trimObject(obj any) (any, error) {
	o, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return obj, nil
	}
	o.SetManagedFields(reduceManagedFields(o.GetManagedFields()))
	if w.kind != kindSeed && w.kind != kindShoot {
		delete(o.Object, "status")
	}
	if w.filter != nil && !w.filter(o) {
		left := &unstructured.Unstructured{}
		left.SetGroupVersionKind(o.GroupVersionKind())
		left.SetNamespace(o.GetNamespace())
		left.SetName(o.GetName())
		left.SetUID(o.GetUID())
		left.SetResourceVersion(o.GetResourceVersion())
		return left, nil
	}
	return o, nil
}

func (o *gardenObjects) watchedKind(kind string) *watchedKind {
	return o.kinds[slices.IndexFunc(o.kinds, func(w *watchedKind) bool { return w.kind == kind })]
}

// get returns an object, or nil if it does not exist. It is shared: do not modify it.
func (o *gardenObjects) get(kind, namespace, name string) *unstructured.Unstructured {
	w := o.watchedKind(kind)
	key := name
	if namespace != "" {
		key = namespace + "/" + name
	}
	found, exists, err := w.informer.GetStore().GetByKey(key)
	if err != nil || !exists {
		return nil
	}
	object, ok := found.(*unstructured.Unstructured)
	if !ok || w.filter != nil && !w.filter(object) {
		return nil
	}
	return object
}

// listKind returns the objects of a kind, sorted by namespace and name.
func (o *gardenObjects) listKind(kind string) []*unstructured.Unstructured {
	w := o.watchedKind(kind)
	var out []*unstructured.Unstructured
	for _, found := range w.informer.GetStore().List() {
		if object, ok := found.(*unstructured.Unstructured); ok && (w.filter == nil || w.filter(object)) {
			out = append(out, object)
		}
	}
	slices.SortFunc(out, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return out
}
