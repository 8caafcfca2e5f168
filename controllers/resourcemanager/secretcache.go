// SPDX-License-Identifier: Apache-2.0

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

// secretCache watches the metadata of Secrets. It caches the content of Secrets that
// ManagedResources refer to, until their version changes; it never reads values of other Secrets.
type secretCache struct {
	source   *apply.Cluster
	onChange func(managedResource types.NamespacedName)
	informer cache.SharedIndexInformer

	mu sync.Mutex
	// managedResourcesBySecret has the ManagedResources of a Secret; secretsByManagedResource has
	// the Secrets of a ManagedResource.
	managedResourcesBySecret map[types.NamespacedName]map[types.NamespacedName]bool
	secretsByManagedResource map[types.NamespacedName]map[types.NamespacedName]bool
	contents                 map[types.NamespacedName]*unstructured.Unstructured
	startOnce                sync.Once
}

func newSecretCache(source *apply.Cluster, namespace string, changed func(types.NamespacedName)) (*secretCache, error) {
	client, err := metadata.NewForConfig(source.RESTConfig())
	if err != nil {
		return nil, fmt.Errorf("cluster %s: creating the metadata client: %w", source.Name(), err)
	}
	s := &secretCache{
		source: source, onChange: changed,
		informer:                 metadatainformer.NewFilteredMetadataInformer(client, corev1.SchemeGroupVersion.WithResource("secrets"), namespace, 0, cache.Indexers{}, nil).Informer(),
		managedResourcesBySecret: map[types.NamespacedName]map[types.NamespacedName]bool{}, secretsByManagedResource: map[types.NamespacedName]map[types.NamespacedName]bool{},
		contents: map[types.NamespacedName]*unstructured.Unstructured{},
	}
	if err := s.informer.SetTransform(trimMetadata); err != nil {
		return nil, err
	}
	_, err = s.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    s.notifyManagedResources,
		DeleteFunc: s.notifyManagedResources,
		UpdateFunc: func(old, new any) {
			if resourceVersionOf(old) != resourceVersionOf(new) {
				s.notifyManagedResources(new)
			}
		},
	})
	return s, err
}

// trimMetadata drops unused metadata: there may be very many Secrets.
func trimMetadata(object any) (any, error) {
	if m, err := meta.Accessor(object); err == nil {
		m.SetManagedFields(nil)
		m.SetAnnotations(nil)
		m.SetLabels(nil)
	}
	return object, nil
}

func resourceVersionOf(object any) string {
	if m, err := meta.Accessor(object); err == nil {
		return m.GetResourceVersion()
	}
	return ""
}

// start starts the watch and waits for its first list.
func (s *secretCache) start(ctx context.Context) error {
	s.startOnce.Do(func() { go s.informer.RunWithContext(ctx) })
	if !cache.WaitForCacheSync(ctx.Done(), s.informer.HasSynced) {
		return ctx.Err()
	}
	return nil
}

// notifyManagedResources notifies the ManagedResources of a changed Secret.
func (s *secretCache) notifyManagedResources(object any) {
	if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	m, err := meta.Accessor(object)
	if err != nil {
		return
	}
	s.mu.Lock()
	users := maps.Clone(s.managedResourcesBySecret[types.NamespacedName{Namespace: m.GetNamespace(), Name: m.GetName()}])
	s.mu.Unlock()
	for user := range users {
		s.onChange(user)
	}
}

// setReferences records the Secrets of a ManagedResource, and drops Secrets without a reference.
func (s *secretCache) setReferences(user types.NamespacedName, names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, now := s.secretsByManagedResource[user], map[types.NamespacedName]bool{}
	for _, name := range names {
		secret := types.NamespacedName{Namespace: user.Namespace, Name: name}
		now[secret] = true
		if s.managedResourcesBySecret[secret] == nil {
			s.managedResourcesBySecret[secret] = map[types.NamespacedName]bool{}
		}
		s.managedResourcesBySecret[secret][user] = true
	}
	for secret := range before {
		if now[secret] {
			continue
		}
		if delete(s.managedResourcesBySecret[secret], user); len(s.managedResourcesBySecret[secret]) == 0 {
			delete(s.managedResourcesBySecret, secret)
			delete(s.contents, secret)
		}
	}
	if s.secretsByManagedResource[user] = now; len(now) == 0 {
		delete(s.secretsByManagedResource, user)
	}
}

// get returns a Secret, without a request while its version is unchanged.
func (s *secretCache) get(ctx context.Context, ref apply.Ref) (*unstructured.Unstructured, error) {
	key := types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
	seen, there, err := s.informer.GetStore().GetByKey(key.String())
	s.mu.Lock()
	known := s.contents[key]
	s.mu.Unlock()
	if err == nil && there && known != nil && known.GetResourceVersion() == resourceVersionOf(seen) {
		return known, nil
	}
	live, err := s.source.GetLive(ctx, ref)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.managedResourcesBySecret[key] != nil {
		s.contents[key] = live
	}
	return live, nil
}

// managedResources returns the ManagedResources that have Secrets.
func (s *secretCache) managedResources() []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.secretsByManagedResource))
}

// secretsDigest returns a digest of the Secret versions of a ManagedResource, current or last read,
// and of the options that affect its objects. It is empty if a Secret is unknown.
func (m *Manager) secretsDigest(mr *resourcesv1alpha1.ManagedResource, read bool) string {
	sum := sha256.New()
	fmt.Fprintln(sum, m.options.Version, m.options.ManagedBy, m.options.Force, m.options.ClusterID, m.options.LeaveToGarbageCollector)
	for _, ref := range mr.Spec.SecretRefs {
		secret := m.secretCache.metadata(types.NamespacedName{Namespace: mr.Namespace, Name: ref.Name}, read)
		if secret == nil {
			return ""
		}
		fmt.Fprintln(sum, ref.Name, secret.GetUID(), secret.GetResourceVersion())
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// metadata returns the current or last read metadata of a Secret, or nil if unknown.
func (s *secretCache) metadata(key types.NamespacedName, read bool) metav1.Object {
	if read {
		s.mu.Lock()
		defer s.mu.Unlock()
		if known := s.contents[key]; known != nil {
			return known
		}
		return nil
	}
	seen, there, err := s.informer.GetStore().GetByKey(key.String())
	if err != nil || !there {
		return nil
	}
	m, err := meta.Accessor(seen)
	if err != nil {
		return nil
	}
	return m
}
