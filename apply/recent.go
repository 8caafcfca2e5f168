package apply

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// recentLists are what was listed of namespaces a moment ago.
type recentLists struct {
	mu    sync.Mutex
	lists map[recentKey]*recentList
}

type recentKey struct {
	resource  schema.GroupVersionResource
	namespace string
}

type recentList struct {
	mu    sync.Mutex
	asked time.Time
	items []unstructured.Unstructured
}

// ListRecent lists the objects of a kind in a namespace as they were when somebody asked after since, or as they are if nobody did: who looks at many
// owners of such objects, one after the other, asks once. For objects that are not watched; nobody may change what it gives.
func (c *Cluster) ListRecent(ctx context.Context, resource schema.GroupVersionResource, namespace string, since time.Time) ([]unstructured.Unstructured, error) {
	l := c.recent.of(recentKey{resource, namespace}, c.clock.Now())
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.asked.IsZero() && !l.asked.Before(since) {
		return l.items, nil
	}
	asked := c.clock.Now()
	list, err := c.dynamic.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	l.asked, l.items = asked, list.Items
	return l.items, nil
}

// of gives the list of a key, and lets go of those that nobody has asked for lately.
func (r *recentLists) of(key recentKey, now time.Time) *recentList {
	r.mu.Lock()
	defer r.mu.Unlock()
	for other, l := range r.lists {
		if other != key && l.mu.TryLock() {
			if now.Sub(l.asked) > time.Minute {
				delete(r.lists, other)
			}
			l.mu.Unlock()
		}
	}
	if r.lists == nil {
		r.lists = map[recentKey]*recentList{}
	}
	if r.lists[key] == nil {
		r.lists[key] = &recentList{}
	}
	return r.lists[key]
}
