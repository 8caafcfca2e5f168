// SPDX-License-Identifier: Apache-2.0

package garden

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/pergola-dev/pergola/controllers/webhook/admission"
)

type liveReader struct {
	admission.ObjectLister
	client dynamic.Interface
}

// NewReader reads from the API server of a virtual garden; its Objects are those of surroundings.
func NewReader(config *rest.Config, surroundings admission.ObjectLister) (Reader, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the virtual garden: %w", err)
	}
	return liveReader{surroundings, client}, nil
}

// Get implements Reader.
func (l liveReader) Get(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error) {
	object, err := l.client.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return object, nil
}

// List implements Reader.
func (l liveReader) List(ctx context.Context, resource schema.GroupVersionResource, namespace, selector string, limit int64) ([]unstructured.Unstructured, error) {
	list, err := l.client.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector, Limit: limit})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

func toTyped[T any](object *unstructured.Unstructured) (*T, error) {
	out := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, out); err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return out, nil
}
