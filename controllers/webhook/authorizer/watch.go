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

// watches update a graph from the objects of a virtual garden.
type watches struct {
	stores []*store
}

// watchAll lists and watches until ctx ends. It retries kinds that are not served or not readable;
// until all are listed once, unread names those that are missing.
func watchAll(ctx context.Context, config *rest.Config, g *graph) (*watches, error) {
	config = rest.CopyConfig(config)
	if config.QPS == 0 {
		config.QPS, config.Burst = watchQPS, 2*watchQPS
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the virtual garden: %w", err)
	}
	w := &watches{}
	for _, k := range watchedKinds() {
		s := newStore(k, g)
		w.stores = append(w.stores, s)
		api := client.Resource(k.resource)
		reads := &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				return s.noted(api.List(ctx, options))
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

// unread returns the kinds that were not listed yet.
func (w *watches) unread() []string {
	var out []string
	for _, s := range w.stores {
		if problem, read := s.state(); !read {
			name := s.kind.resource.GroupResource().String()
			if problem != "" {
				name += " (" + problem + ")"
			}
			out = append(out, name)
		}
	}
	return out
}

// store passes the objects of a kind to the graph. It is a cache.TransformingStore.
type store struct {
	kind  watchedKind
	graph *graph

	mu      sync.Mutex
	known   map[node]*statement
	read    bool
	problem string
}

// spoken replaces an object in a reflector.
type spoken struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	statement *statement
}

// DeepCopyObject implements runtime.Object.
func (s *spoken) DeepCopyObject() runtime.Object {
	out := &spoken{TypeMeta: s.TypeMeta, statement: s.statement}
	s.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return out
}

func newStore(k watchedKind, g *graph) *store {
	return &store{kind: k, graph: g, known: map[node]*statement{}}
}

// Transformer reduces an object to its statement as soon as it arrives.
func (s *store) Transformer() cache.TransformFunc {
	return func(object any) (any, error) {
		o, ok := object.(*unstructured.Unstructured)
		if !ok {
			return object, nil
		}
		return s.speak(o), nil
	}
}

func (s *store) speak(o *unstructured.Unstructured) *spoken {
	return &spoken{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: o.GetName(), ResourceVersion: o.GetResourceVersion()},
		statement:  speak(s.kind, o),
	}
}

func (s *store) statement(object any) (*spoken, error) {
	switch o := object.(type) {
	case *spoken:
		return o, nil
	case *unstructured.Unstructured:
		return s.speak(o), nil
	}
	return nil, fmt.Errorf("%T is no object of %s", object, s.kind.resource.GroupResource())
}

// Add implements cache.ReflectorStore.
func (s *store) Add(object any) error {
	said, err := s.statement(object)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set(said.statement)
	return nil
}

// set passes changed statements to the graph. Most updates change none, such as a status update.
func (s *store) set(said *statement) {
	if before := s.known[said.of]; before != nil && before.equal(said) {
		return
	}
	s.known[said.of] = said
	s.graph.set(said)
}

// Update implements cache.ReflectorStore.
func (s *store) Update(object any) error { return s.Add(object) }

// Delete implements cache.ReflectorStore.
func (s *store) Delete(object any) error {
	said, err := s.statement(object)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, said.statement.of)
	s.graph.remove(said.statement.of)
	return nil
}

// Replace implements cache.ReflectorStore.
func (s *store) Replace(objects []any, _ string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	there := make(map[node]bool, len(objects))
	for _, object := range objects {
		said, err := s.statement(object)
		if err != nil {
			return err
		}
		there[said.statement.of] = true
		s.set(said.statement)
	}
	for of := range s.known {
		if !there[of] {
			delete(s.known, of)
			s.graph.remove(of)
		}
	}
	s.read, s.problem = true, ""
	return nil
}

// Resync implements cache.ReflectorStore.
func (s *store) Resync() error { return nil }

// noted stores the error of a list, which Ready reports.
func (s *store) noted(list *unstructured.UnstructuredList, err error) (runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.problem = err.Error()
		return nil, err
	}
	return list, nil
}

func (s *store) state() (problem string, read bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.problem, s.read
}
