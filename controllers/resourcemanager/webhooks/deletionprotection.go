// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	admissionv1 "k8s.io/api/admission/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

// pageSize is the page size for collections.
const pageSize = 500

// deletionProtection is the webhook that denies the deletion of marked definitions, extension
// objects and Etcds until it is confirmed.
type deletionProtection struct{ source client.Reader }

func (d deletionProtection) respond(ctx context.Context, request *admissionv1.AdmissionRequest) (ctrladmission.Response, error) {
	definition := request.Kind.Group == apiextensionsv1.GroupName && request.Kind.Kind == "CustomResourceDefinition"
	if request.Operation != admissionv1.Delete || request.SubResource != "" || !(definition || isProtected(request.Kind)) {
		return ctrladmission.Allowed(""), nil
	}
	// API servers send a request for each object of a deleted collection; older ones send one
	// request without an object.
	if raw := request.OldObject.Raw; len(raw) > 0 && string(raw) != "null" {
		object := &metav1.PartialObjectMetadata{}
		if err := utiljson.Unmarshal(raw, object); err != nil {
			return ctrladmission.Response{}, denyBadRequest("the object of the request cannot be read: %v", err)
		}
		return ctrladmission.Allowed(""), requireConfirmation(request.Kind.Kind, object, definition)
	}
	if request.Name != "" {
		return d.respondToNamed(ctx, request, definition)
	}
	return ctrladmission.Allowed(""), d.checkCollection(ctx, request, definition)
}

// respondToNamed reads an object whose content is not in the request.
func (d deletionProtection) respondToNamed(ctx context.Context, request *admissionv1.AdmissionRequest, definition bool) (ctrladmission.Response, error) {
	object := &metav1.PartialObjectMetadata{TypeMeta: typeMetaOf(request.Kind)}
	if err := d.source.Get(ctx, objectKey(request.Namespace, request.Name), object); apierrors.IsNotFound(err) {
		return ctrladmission.Allowed(""), nil
	} else if err != nil {
		return ctrladmission.Response{}, fmt.Errorf("reading the %s that is deleted: %w", request.Kind.Kind, err)
	}
	return ctrladmission.Allowed(""), requireConfirmation(request.Kind.Kind, object, definition)
}

// checkCollection checks all objects that a request may delete.
func (d deletionProtection) checkCollection(ctx context.Context, request *admissionv1.AdmissionRequest, definition bool) error {
	options := client.ListOptions{Namespace: request.Namespace, Limit: pageSize}
	for {
		list := &metav1.PartialObjectMetadataList{TypeMeta: typeMetaOf(request.Kind)}
		list.Kind += "List"
		err := d.source.List(ctx, list, &options)
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading the collection of %s that is deleted: %w", request.Kind.Kind, err)
		}
		for i := range list.Items {
			if err := requireConfirmation(request.Kind.Kind, &list.Items[i], definition); err != nil {
				return err
			}
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return nil
		}
	}
}

func typeMetaOf(kind metav1.GroupVersionKind) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: metav1.GroupVersion{Group: kind.Group, Version: kind.Version}.String(), Kind: kind.Kind}
}

// isProtected reports whether objects of a kind are protected: Etcds, and extension objects except
// Bastions, which exist only for sessions of people.
func isProtected(kind metav1.GroupVersionKind) bool {
	return slices.ContainsFunc(validatedKinds(), func(k validatedKind) bool {
		return k.Group == kind.Group && k.Kind == kind.Kind && k.Kind != "Bastion"
	})
}

// requireConfirmation returns a denial if the deletion of an object needs a confirmation and has
// none.
func requireConfirmation(kind string, object *metav1.PartialObjectMetadata, definition bool) error {
	if definition && object.Labels[DeletionProtected] != "true" {
		return nil
	}
	yes, err := strconv.ParseBool(object.Annotations[gardencorev1beta1.ConfirmationDeletion])
	if err == nil && yes {
		return nil
	}
	name := object.Name
	if object.Namespace != "" {
		name = object.Namespace + "/" + name
	}
	return denyForbidden(`%s %s must have a %q annotation to delete it: set it to "true" first`, kind, name, gardencorev1beta1.ConfirmationDeletion)
}
