// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
)

// Cleanup deletes the secrets of this identity that were not requested since New, and returns their
// names. Call it only after everything that uses secrets was reconciled: Secrets other than
// current, old and bundle are unused by then. It refuses if a request failed or none was made,
// because then it cannot know.
func (m *Manager) Cleanup(ctx context.Context) ([]string, error) {
	m.mu.Lock()
	used, failed := m.usedObjects(), len(m.failedRequests) > 0
	m.mu.Unlock()
	if failed || len(used) == 0 {
		return nil, errors.New("cleaning up generated secrets: not all requests were fulfilled, so nothing is deleted")
	}
	list, err := m.store.List(ctx, m.namespace, m.selector())
	if err != nil {
		return nil, fmt.Errorf("listing the generated secrets of %s in namespace %s: %w", m.identity, m.namespace, err)
	}
	var (
		deleted []string
		errs    []error
	)
	for i := range list {
		if used[list[i].Name] {
			continue
		}
		if err := m.store.Delete(ctx, &list[i]); err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("deleting Secret %s/%s: %w", m.namespace, list[i].Name, err))
			continue
		}
		deleted = append(deleted, list[i].Name)
		m.uncacheRecord(&list[i])
	}
	slices.Sort(deleted)
	return deleted, errors.Join(errs...)
}

// usedObjects returns the names of all Secrets that fulfil a request. The caller holds mu.
func (m *Manager) usedObjects() map[string]bool {
	used := map[string]bool{}
	for _, e := range m.entries {
		for _, r := range []*secretRecord{e.current, e.old, e.bundle} {
			if r != nil {
				used[r.name] = true
			}
		}
	}
	return used
}

func (m *Manager) uncacheRecord(s *corev1.Secret) {
	m.mu.Lock()
	defer m.mu.Unlock()
	name := s.Labels[labelName]
	m.existingRecords[name] = slices.DeleteFunc(m.existingRecords[name], func(r *secretRecord) bool { return r.name == s.Name })
}

// Persisted lists the secrets that move with a shoot's control plane: those with label
// persist=true.
func (m *Manager) Persisted(ctx context.Context) ([]corev1.Secret, error) {
	list, err := m.store.List(ctx, m.namespace, labels.SelectorFromSet(labels.Set{labelManagedBy: valueSecretsManager, labelPersist: valueTrue}))
	if err != nil {
		return nil, fmt.Errorf("listing the secrets to persist in namespace %s: %w", m.namespace, err)
	}
	return list, nil
}

// DeleteAll deletes all secrets of an identity in a namespace and returns their names. Their users
// no longer exist.
func DeleteAll(ctx context.Context, store Store, namespace, identity string) ([]string, error) {
	m := New(store, namespace, identity, nil)
	list, err := store.List(ctx, namespace, m.selector())
	if err != nil {
		return nil, fmt.Errorf("listing the generated secrets of %s in namespace %s: %w", identity, namespace, err)
	}
	var (
		deleted []string
		errs    []error
	)
	for i := range list {
		if err := store.Delete(ctx, &list[i]); err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("deleting Secret %s/%s: %w", namespace, list[i].Name, err))
			continue
		}
		deleted = append(deleted, list[i].Name)
	}
	slices.Sort(deleted)
	return deleted, errors.Join(errs...)
}
