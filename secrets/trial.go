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

// Trial returns a store that reads from another one and stores writes in memory only. A manager on
// it computes the result of requests without changing the other store.
func Trial(of Store) Store {
	return &trial{of: of, changed: map[string]*corev1.Secret{}, made: map[string]bool{}}
}

type trial struct {
	of Store

	mu sync.Mutex
	// changed are the written Secrets, by namespace and name; nil for a deleted one.
	changed map[string]*corev1.Secret
	// made are the created Secrets.
	made map[string]bool
}

func trialKey(namespace, name string) string { return namespace + "/" + name }

func (t *trial) List(ctx context.Context, namespace string, selector labels.Selector) ([]corev1.Secret, error) {
	found, err := t.of.List(ctx, namespace, selector)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []corev1.Secret
	for _, s := range found {
		if _, changed := t.changed[trialKey(namespace, s.Name)]; !changed {
			out = append(out, s)
		}
	}
	for _, s := range t.changed {
		if s != nil && s.Namespace == namespace && selector.Matches(labels.Set(s.Labels)) {
			out = append(out, *s.DeepCopy())
		}
	}
	return out, nil
}

func (t *trial) Get(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	t.mu.Lock()
	s, changed := t.changed[trialKey(namespace, name)]
	t.mu.Unlock()
	switch {
	case !changed:
		return t.of.Get(ctx, namespace, name)
	case s == nil:
		return nil, apierrors.NewNotFound(corev1.Resource("secrets"), name)
	}
	return s.DeepCopy(), nil
}

func (t *trial) Create(ctx context.Context, secret *corev1.Secret) (*corev1.Secret, error) {
	_, err := t.Get(ctx, secret.Namespace, secret.Name)
	if err == nil {
		return nil, apierrors.NewAlreadyExists(corev1.Resource("secrets"), secret.Name)
	}
	if !apierrors.IsNotFound(err) {
		return nil, err
	}
	t.put(secret.Namespace, secret.Name, secret.DeepCopy())
	t.mu.Lock()
	t.made[trialKey(secret.Namespace, secret.Name)] = true
	t.mu.Unlock()
	return secret.DeepCopy(), nil
}

func (t *trial) Patch(ctx context.Context, namespace, name string, changes map[string]string) (*corev1.Secret, error) {
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
	t.put(namespace, name, s)
	return s.DeepCopy(), nil
}

func (t *trial) Delete(_ context.Context, secret *corev1.Secret) error {
	t.put(secret.Namespace, secret.Name, nil)
	return nil
}

func (t *trial) put(namespace, name string, s *corev1.Secret) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.changed[trialKey(namespace, name)] = s
}

// Made reports whether a Secret was created in a store of Trial, and so does not exist in the store
// below.
func Made(in Store, namespace, name string) bool {
	t, is := in.(*trial)
	if !is {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.changed[trialKey(namespace, name)] != nil && t.made[trialKey(namespace, name)]
}
