// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"context"
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
)

// NewDryRunStore returns a store that reads from another one and stores writes only in memory. A
// manager on it computes the result of requests without changing the other store.
func NewDryRunStore(of Store) Store {
	return &dryRunStore{base: of, written: map[string]*corev1.Secret{}, created: map[string]bool{}}
}

type dryRunStore struct {
	base Store

	mu sync.Mutex
	// written are the written Secrets, by namespace and name; a deleted one is nil.
	written map[string]*corev1.Secret
	// created are the created Secrets.
	created map[string]bool
}

func storeKey(namespace, name string) string { return namespace + "/" + name }

func (t *dryRunStore) List(ctx context.Context, namespace string, selector labels.Selector) ([]corev1.Secret, error) {
	found, err := t.base.List(ctx, namespace, selector)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []corev1.Secret
	for _, s := range found {
		if _, changed := t.written[storeKey(namespace, s.Name)]; !changed {
			out = append(out, s)
		}
	}
	for _, s := range t.written {
		if s != nil && s.Namespace == namespace && selector.Matches(labels.Set(s.Labels)) {
			out = append(out, *s.DeepCopy())
		}
	}
	return out, nil
}

func (t *dryRunStore) Get(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	t.mu.Lock()
	s, changed := t.written[storeKey(namespace, name)]
	t.mu.Unlock()
	switch {
	case !changed:
		return t.base.Get(ctx, namespace, name)
	case s == nil:
		return nil, apierrors.NewNotFound(corev1.Resource("secrets"), name)
	}
	return s.DeepCopy(), nil
}

func (t *dryRunStore) Create(ctx context.Context, secret *corev1.Secret) (*corev1.Secret, error) {
	_, err := t.Get(ctx, secret.Namespace, secret.Name)
	if err == nil {
		return nil, apierrors.NewAlreadyExists(corev1.Resource("secrets"), secret.Name)
	}
	if !apierrors.IsNotFound(err) {
		return nil, err
	}
	t.recordWrite(secret.Namespace, secret.Name, secret.DeepCopy())
	t.mu.Lock()
	t.created[storeKey(secret.Namespace, secret.Name)] = true
	t.mu.Unlock()
	return secret.DeepCopy(), nil
}

func (t *dryRunStore) Patch(ctx context.Context, namespace, name string, changes map[string]string) (*corev1.Secret, error) {
	s, err := t.Get(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	s = s.DeepCopy()
	if s.Labels == nil {
		s.Labels = map[string]string{}
	}
	maps.Copy(s.Labels, changes)
	s.Immutable = ptr.To(true)
	t.recordWrite(namespace, name, s)
	return s.DeepCopy(), nil
}

func (t *dryRunStore) Delete(_ context.Context, secret *corev1.Secret) error {
	t.recordWrite(secret.Namespace, secret.Name, nil)
	return nil
}

func (t *dryRunStore) recordWrite(namespace, name string, s *corev1.Secret) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.written[storeKey(namespace, name)] = s
}

// IsCreatedInDryRun reports whether a Secret was created in a store of Trial, and so does not exist
// in the store below.
func IsCreatedInDryRun(in Store, namespace, name string) bool {
	t, is := in.(*dryRunStore)
	if !is {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.written[storeKey(namespace, name)] != nil && t.created[storeKey(namespace, name)]
}
