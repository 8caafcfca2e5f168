// SPDX-License-Identifier: Apache-2.0

package authorizer

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// watchQPS is the default number of requests per second: all kinds are listed at once.
const watchQPS = 100

// graphWatcher updates a graph from the objects of a virtual garden.
type graphWatcher struct {
	stores []*relationStore
}

// watchAll lists and watches until ctx ends. It retries kinds that are not served or not readable;
// until all are listed once, unreadKinds names those that are missing.
func watchAll(ctx context.Context, config *rest.Config, g *graph) (*graphWatcher, error) {
	config = rest.CopyConfig(config)
	if config.QPS == 0 {
		config.QPS, config.Burst = watchQPS, 2*watchQPS
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the virtual garden: %w", err)
	}
	w := &graphWatcher{}
	for _, k := range watchedKinds() {
		s := newRelationStore(k, g)
		w.stores = append(w.stores, s)
		api := client.Resource(k.resource)
		reads := &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				return s.recordListError(api.List(ctx, options))
			},
			WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				return api.Watch(ctx, options)
			},
		}
		// A reflector without the store of an informer: it only stores the statement of an object.
		reflector := cache.NewReflectorWithOptions(reads, &unstructured.Unstructured{}, s, cache.ReflectorOptions{
			Name: "authorizer", TypeDescription: k.resource.GroupResource().String(),
			// a kind may become available at any time
			Backoff: &wait.Backoff{Duration: 200 * time.Millisecond, Cap: 5 * time.Second, Steps: 10, Factor: 2, Jitter: 0.5},
		})
		go reflector.RunWithContext(ctx)
	}
	return w, nil
}

// unreadKinds returns the kinds that were not listed yet.
func (w *graphWatcher) unreadKinds() []string {
	var out []string
	for _, s := range w.stores {
		if problem, read := s.syncState(); !read {
			name := s.kind.resource.GroupResource().String()
			if problem != "" {
				name += " (" + problem + ")"
			}
			out = append(out, name)
		}
	}
	return out
}

// relationStore passes the objects of a kind to the graph. It is a cache.TransformingStore.
type relationStore struct {
	kind  watchedKind
	graph *graph

	mu         sync.Mutex
	statements map[objectKey]*objectRelations
	hasSynced  bool
	listError  string
}

// relationObject replaces an object in a reflector.
type relationObject struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	statement *objectRelations
}

// DeepCopyObject implements runtime.Object.
func (s *relationObject) DeepCopyObject() runtime.Object {
	out := &relationObject{TypeMeta: s.TypeMeta, statement: s.statement}
	s.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return out
}

func newRelationStore(k watchedKind, g *graph) *relationStore {
	return &relationStore{kind: k, graph: g, statements: map[objectKey]*objectRelations{}}
}

// Transformer reduces an object to its statement as soon as it arrives.
func (s *relationStore) Transformer() cache.TransformFunc {
	return func(object any) (any, error) {
		o, ok := object.(*unstructured.Unstructured)
		if !ok {
			return object, nil
		}
		return s.relationObjectOf(o), nil
	}
}

func (s *relationStore) relationObjectOf(o *unstructured.Unstructured) *relationObject {
	return &relationObject{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: o.GetName(), ResourceVersion: o.GetResourceVersion()},
		statement:  relationsOf(s.kind, o),
	}
}

func (s *relationStore) toRelationObject(object any) (*relationObject, error) {
	switch o := object.(type) {
	case *relationObject:
		return o, nil
	case *unstructured.Unstructured:
		return s.relationObjectOf(o), nil
	}
	return nil, fmt.Errorf("%T is not an object of %s", object, s.kind.resource.GroupResource())
}

// Add implements cache.ReflectorStore.
func (s *relationStore) Add(object any) error {
	said, err := s.toRelationObject(object)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setRelations(said.statement)
	return nil
}

// setRelations passes changed statements to the graph. Most updates change none, such as a status
// update.
func (s *relationStore) setRelations(said *objectRelations) {
	if before := s.statements[said.subject]; before != nil && before.equal(said) {
		return
	}
	s.statements[said.subject] = said
	s.graph.setRelations(said)
}

// Update implements cache.ReflectorStore.
func (s *relationStore) Update(object any) error { return s.Add(object) }

// Delete implements cache.ReflectorStore.
func (s *relationStore) Delete(object any) error {
	said, err := s.toRelationObject(object)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.statements, said.statement.subject)
	s.graph.removeRelations(said.statement.subject)
	return nil
}

// Replace implements cache.ReflectorStore.
func (s *relationStore) Replace(objects []any, _ string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	there := make(map[objectKey]bool, len(objects))
	for _, object := range objects {
		said, err := s.toRelationObject(object)
		if err != nil {
			return err
		}
		there[said.statement.subject] = true
		s.setRelations(said.statement)
	}
	for of := range s.statements {
		if !there[of] {
			delete(s.statements, of)
			s.graph.removeRelations(of)
		}
	}
	s.hasSynced, s.listError = true, ""
	return nil
}

// Resync implements cache.ReflectorStore.
func (s *relationStore) Resync() error { return nil }

// recordListError stores the error of a list, which Ready reports.
func (s *relationStore) recordListError(list *unstructured.UnstructuredList, err error) (runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.listError = err.Error()
		return nil, err
	}
	return list, nil
}

func (s *relationStore) syncState() (problem string, read bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listError, s.hasSynced
}
