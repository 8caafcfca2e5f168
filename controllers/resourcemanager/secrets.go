package resourcemanager

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"

	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
)

// secrets watches the metadata of Secrets. It caches the content of Secrets that ManagedResources
// refer to, until their version changes; it never reads values of other Secrets.
type secrets struct {
	source  *apply.Cluster
	changed func(managedResource types.NamespacedName)
	watch   cache.SharedIndexInformer

	mu sync.Mutex
	// users are the ManagedResources of a Secret, uses the Secrets of a ManagedResource.
	users map[types.NamespacedName]map[types.NamespacedName]bool
	uses  map[types.NamespacedName]map[types.NamespacedName]bool
	known map[types.NamespacedName]*unstructured.Unstructured
	once  sync.Once
}

func newSecrets(source *apply.Cluster, namespace string, changed func(types.NamespacedName)) (*secrets, error) {
	client, err := metadata.NewForConfig(source.RESTConfig())
	if err != nil {
		return nil, fmt.Errorf("cluster %s: making the client of metadata: %w", source.Name(), err)
	}
	s := &secrets{
		source: source, changed: changed,
		watch: metadatainformer.NewFilteredMetadataInformer(client, corev1.SchemeGroupVersion.WithResource("secrets"), namespace, 0, cache.Indexers{}, nil).Informer(),
		users: map[types.NamespacedName]map[types.NamespacedName]bool{}, uses: map[types.NamespacedName]map[types.NamespacedName]bool{},
		known: map[types.NamespacedName]*unstructured.Unstructured{},
	}
	if err := s.watch.SetTransform(onlyVersion); err != nil {
		return nil, err
	}
	_, err = s.watch.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    s.tell,
		DeleteFunc: s.tell,
		UpdateFunc: func(old, new any) {
			if versionOf(old) != versionOf(new) {
				s.tell(new)
			}
		},
	})
	return s, err
}

// onlyVersion drops unused metadata: there may be very many Secrets.
func onlyVersion(object any) (any, error) {
	if m, err := meta.Accessor(object); err == nil {
		m.SetManagedFields(nil)
		m.SetAnnotations(nil)
		m.SetLabels(nil)
	}
	return object, nil
}

func versionOf(object any) string {
	if m, err := meta.Accessor(object); err == nil {
		return m.GetResourceVersion()
	}
	return ""
}

// start starts the watch and waits for its first list.
func (s *secrets) start(ctx context.Context) error {
	s.once.Do(func() { go s.watch.RunWithContext(ctx) })
	if !cache.WaitForCacheSync(ctx.Done(), s.watch.HasSynced) {
		return ctx.Err()
	}
	return nil
}

// tell notifies the ManagedResources of a changed Secret.
func (s *secrets) tell(object any) {
	if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	m, err := meta.Accessor(object)
	if err != nil {
		return
	}
	s.mu.Lock()
	users := maps.Clone(s.users[types.NamespacedName{Namespace: m.GetNamespace(), Name: m.GetName()}])
	s.mu.Unlock()
	for user := range users {
		s.changed(user)
	}
}

// refer records the Secrets of a ManagedResource, and drops Secrets without a reference.
func (s *secrets) refer(user types.NamespacedName, names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, now := s.uses[user], map[types.NamespacedName]bool{}
	for _, name := range names {
		secret := types.NamespacedName{Namespace: user.Namespace, Name: name}
		now[secret] = true
		if s.users[secret] == nil {
			s.users[secret] = map[types.NamespacedName]bool{}
		}
		s.users[secret][user] = true
	}
	for secret := range before {
		if now[secret] {
			continue
		}
		if delete(s.users[secret], user); len(s.users[secret]) == 0 {
			delete(s.users, secret)
			delete(s.known, secret)
		}
	}
	if s.uses[user] = now; len(now) == 0 {
		delete(s.uses, user)
	}
}

// get returns a Secret, without a request while its version is unchanged.
func (s *secrets) get(ctx context.Context, ref apply.Ref) (*unstructured.Unstructured, error) {
	key := types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
	seen, there, err := s.watch.GetStore().GetByKey(key.String())
	s.mu.Lock()
	known := s.known[key]
	s.mu.Unlock()
	if err == nil && there && known != nil && known.GetResourceVersion() == versionOf(seen) {
		return known, nil
	}
	live, err := s.source.GetLive(ctx, ref)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users[key] != nil {
		s.known[key] = live
	}
	return live, nil
}

// all returns the ManagedResources that have Secrets.
func (s *secrets) all() []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.uses))
}

// versions returns a digest of the Secret versions of a ManagedResource, current or last read, and
// of the options that affect its objects. It is empty if a Secret is unknown.
func (m *Manager) versions(mr *resourcesv1alpha1.ManagedResource, read bool) string {
	sum := sha256.New()
	fmt.Fprintln(sum, m.options.Version, m.options.ManagedBy, m.options.Force, m.options.ClusterID, m.options.GarbageCollector)
	for _, ref := range mr.Spec.SecretRefs {
		secret := m.secrets.version(types.NamespacedName{Namespace: mr.Namespace, Name: ref.Name}, read)
		if secret == nil {
			return ""
		}
		fmt.Fprintln(sum, ref.Name, secret.GetUID(), secret.GetResourceVersion())
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// version returns the current or last read metadata of a Secret; nil if unknown.
func (s *secrets) version(key types.NamespacedName, read bool) metav1.Object {
	if read {
		s.mu.Lock()
		defer s.mu.Unlock()
		if known := s.known[key]; known != nil {
			return known
		}
		return nil
	}
	seen, there, err := s.watch.GetStore().GetByKey(key.String())
	if err != nil || !there {
		return nil
	}
	m, err := meta.Accessor(seen)
	if err != nil {
		return nil
	}
	return m
}
