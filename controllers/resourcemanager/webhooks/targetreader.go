// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// targetReader reads the target cluster.
type targetReader struct{ cached, live client.Reader }

// get reads an object, live if the cache does not have it: it is often created right before the
// object that needs it.
func (l targetReader) get(ctx context.Context, namespace, name string, into client.Object) error {
	err := l.cached.Get(ctx, objectKey(namespace, name), into)
	if apierrors.IsNotFound(err) && l.live != nil {
		err = l.live.Get(ctx, objectKey(namespace, name), into)
	}
	return err
}

// hasSeveralNodes reports whether there is more than one node.
func (l targetReader) hasSeveralNodes(ctx context.Context) (bool, error) {
	nodes := &metav1.PartialObjectMetadataList{}
	nodes.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
	if err := l.cached.List(ctx, nodes, client.Limit(2)); err != nil {
		return false, fmt.Errorf("counting the nodes: %w", err)
	}
	return len(nodes.Items) > 1, nil
}

func objectKey(namespace, name string) client.ObjectKey {
	return client.ObjectKey{Namespace: namespace, Name: name}
}
