// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
)

// testBits keeps key generation fast; nothing here depends on the strength of a key.
const testBits = 1024

var startTime = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// memoryStore is a Store with the relevant rules of the API server, and its own clock.
type memoryStore struct {
	mu      sync.Mutex
	clock   clock.PassiveClock
	secrets map[string]*corev1.Secret
	calls   map[string]int
	uid     int
	// failCreate maps the name label to the error of its creation.
	failCreate map[string]error
}

func newMemoryStore(clk clock.PassiveClock) *memoryStore {
	return &memoryStore{clock: clk, secrets: map[string]*corev1.Secret{}, calls: map[string]int{}, failCreate: map[string]error{}}
}

func (s *memoryStore) writes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls["create"] + s.calls["patch"] + s.calls["delete"]
}

func (s *memoryStore) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.secrets))
}

func notFound(name string) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, name)
}

func (s *memoryStore) List(_ context.Context, namespace string, selector labels.Selector) ([]corev1.Secret, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls["list"]++
	var out []corev1.Secret
	for _, name := range slices.Sorted(maps.Keys(s.secrets)) {
		if o := s.secrets[name]; o.Namespace == namespace && selector.Matches(labels.Set(o.Labels)) {
			out = append(out, *o.DeepCopy())
		}
	}
	return out, nil
}

func (s *memoryStore) Get(_ context.Context, _, name string) (*corev1.Secret, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls["get"]++
	if o, ok := s.secrets[name]; ok {
		return o.DeepCopy(), nil
	}
	return nil, notFound(name)
}

func (s *memoryStore) Create(_ context.Context, secret *corev1.Secret) (*corev1.Secret, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls["create"]++
	if err := s.failCreate[secret.Labels[labelName]]; err != nil {
		return nil, err
	}
	if _, ok := s.secrets[secret.Name]; ok {
		return nil, apierrors.NewAlreadyExists(schema.GroupResource{Resource: "secrets"}, secret.Name)
	}
	s.uid++
	o := secret.DeepCopy()
	o.UID = types.UID(fmt.Sprintf("uid-%d", s.uid))
	o.CreationTimestamp = metav1.NewTime(s.clock.Now().Truncate(time.Second))
	s.secrets[o.Name] = o
	return o.DeepCopy(), nil
}

func (s *memoryStore) Patch(_ context.Context, _, name string, l map[string]string) (*corev1.Secret, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls["patch"]++
	o, ok := s.secrets[name]
	if !ok {
		return nil, notFound(name)
	}
	if o.Labels == nil {
		o.Labels = map[string]string{}
	}
	maps.Copy(o.Labels, l)
	o.Immutable = ptr.To(true)
	return o.DeepCopy(), nil
}

func (s *memoryStore) Delete(_ context.Context, secret *corev1.Secret) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls["delete"]++
	o, ok := s.secrets[secret.Name]
	if !ok || o.UID != secret.UID {
		return notFound(secret.Name)
	}
	delete(s.secrets, secret.Name)
	return nil
}
