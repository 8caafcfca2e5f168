// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	operatorv1alpha1 "github.com/pergola-dev/pergola/api/operator/v1alpha1"
	"github.com/pergola-dev/pergola/schemas"
)

const (
	kindGarden       = "Garden"
	resourceGardens  = "gardens"
	namespaceGarden  = "garden"
	kindNamespace    = "Namespace"
	ruleSecondGarden = "garden/only-one"
)

// Gardens finds the Gardens of a runtime cluster.
type Gardens interface {
	// FieldNames returns the names of all Gardens, or none if the kind does not exist.
	FieldNames(ctx context.Context) ([]string, error)
}

// LiveGardens lists Gardens with each call: a cache would allow two Gardens in quick succession.
type LiveGardens struct{ client metadata.Getter }

// NewLiveGardens reads from the API server of a runtime cluster. It needs permission to list
// gardens.operator.gardener.cloud.
func NewLiveGardens(config *rest.Config) (*LiveGardens, error) {
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the runtime cluster: %w", err)
	}
	return &LiveGardens{client: client.Resource(operatorv1alpha1.SchemeGroupVersion.WithResource(resourceGardens))}, nil
}

// FieldNames implements Gardens.
func (l *LiveGardens) FieldNames(ctx context.Context) ([]string, error) {
	list, err := l.client.List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil // without the definition no Garden exists
	}
	if err != nil {
		return nil, fmt.Errorf("listing the Gardens: %w", err)
	}
	names := make([]string, len(list.Items))
	for i := range list.Items {
		names[i] = list.Items[i].GetName()
	}
	return names, nil
}

// lookupError is a failure to list objects. Unlike other errors it does not quote the request's
// object, so it can be logged.
type lookupError struct{ error }

func (e lookupError) Unwrap() error { return e.error }

// gardenNames returns the names of all Gardens.
func (h *Handler) gardenNames(ctx context.Context) ([]string, error) {
	names, err := h.gardens.FieldNames(ctx)
	if err != nil {
		return nil, lookupError{err}
	}
	return names, nil
}

// checkSingleGarden rejects a Garden if another one exists. For landscapes of files, a rule in CUE
// does the same.
func (h *Handler) checkSingleGarden(ctx context.Context, object *unstructured.Unstructured) ([]schemas.Violation, error) {
	if object.GroupVersionKind() != operatorv1alpha1.SchemeGroupVersion.WithKind(kindGarden) || h.gardens == nil {
		return nil, nil
	}
	names, err := h.gardenNames(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if name != object.GetName() {
			return []schemas.Violation{{
				Severity: schemas.SeverityError, Kind: kindGarden, Name: object.GetName(), Field: "metadata.name", Type: schemas.TypeForbidden,
				Rule: ruleSecondGarden, Message: fmt.Sprintf("the Garden %q already exists, and only one is possible", name),
			}}, nil
		}
	}
	return nil, nil
}

// gardensForNamespace returns the Gardens for the rule about namespace garden, or nil for other
// objects.
func (h *Handler) gardensForNamespace(ctx context.Context, old *unstructured.Unstructured) (*schemas.LandscapeObjects, error) {
	gvk := old.GroupVersionKind()
	if gvk.Group != "" || gvk.Kind != kindNamespace || old.GetName() != namespaceGarden || h.gardens == nil {
		return nil, nil
	}
	names, err := h.gardenNames(ctx)
	if err != nil {
		return nil, err
	}
	around := &schemas.LandscapeObjects{}
	for _, name := range names {
		garden := &unstructured.Unstructured{}
		garden.SetGroupVersionKind(operatorv1alpha1.SchemeGroupVersion.WithKind(kindGarden))
		garden.SetName(name)
		around.Objects = append(around.Objects, garden)
	}
	return around, nil
}
