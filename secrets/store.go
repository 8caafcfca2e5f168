// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// Store stores Secrets. Its errors are those of the API server (NotFound, AlreadyExists …).
type Store interface {
	List(ctx context.Context, namespace string, selector labels.Selector) ([]corev1.Secret, error)
	Get(ctx context.Context, namespace, name string) (*corev1.Secret, error)
	Create(ctx context.Context, secret *corev1.Secret) (*corev1.Secret, error)
	// Patch merges labels into those of the Secret and makes it immutable.
	Patch(ctx context.Context, namespace, name string, labels map[string]string) (*corev1.Secret, error)
	// Delete deletes exactly the given object, by its UID.
	Delete(ctx context.Context, secret *corev1.Secret) error
}

// NewStore returns a Store in a cluster.
func NewStore(client kubernetes.Interface) Store { return clusterStore{client} }

type clusterStore struct{ client kubernetes.Interface }

// listPage is the number of Secrets in one answer; Secrets are small but many.
const listPage = 500

func (s clusterStore) List(ctx context.Context, namespace string, selector labels.Selector) ([]corev1.Secret, error) {
	var out []corev1.Secret
	options := metav1.ListOptions{LabelSelector: selector.String(), Limit: listPage}
	for {
		list, err := s.client.CoreV1().Secrets(namespace).List(ctx, options)
		if err != nil {
			return nil, err
		}
		out = append(out, list.Items...)
		if options.Continue = list.Continue; options.Continue == "" {
			return out, nil
		}
	}
}

func (s clusterStore) Get(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	return s.client.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
}

func (s clusterStore) Create(ctx context.Context, secret *corev1.Secret) (*corev1.Secret, error) {
	return s.client.CoreV1().Secrets(secret.Namespace).Create(ctx, secret, metav1.CreateOptions{})
}

func (s clusterStore) Patch(ctx context.Context, namespace, name string, labels map[string]string) (*corev1.Secret, error) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": labels}, "immutable": true})
	if err != nil {
		return nil, fmt.Errorf("encoding a patch of labels: %w", err)
	}
	return s.client.CoreV1().Secrets(namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
}

func (s clusterStore) Delete(ctx context.Context, secret *corev1.Secret) error {
	return s.client.CoreV1().Secrets(secret.Namespace).Delete(ctx, secret.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &secret.UID},
	})
}
