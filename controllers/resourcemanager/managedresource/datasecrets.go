// SPDX-License-Identifier: Apache-2.0

package managedresource

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/render"
)

// readDataSecret reads a data Secret, from the cache if possible.
func (r *Reconciler) readDataSecret(ctx context.Context, data apply.Ref) (*unstructured.Unstructured, error) {
	if r.Data.Read != nil {
		return r.Data.Read(ctx, data)
	}
	return getCachedOrLive(ctx, r.Source, data)
}

func getCachedOrLive(ctx context.Context, c *apply.Cluster, ref apply.Ref) (*unstructured.Unstructured, error) {
	obj, err := c.Get(ctx, ref)
	if err == nil || !apierrors.IsNotFound(err) || c.HasWholeCache(ref.GroupKind()) {
		return obj, err
	}
	return c.GetLive(ctx, ref)
}

// readObjects reads and decodes the data Secrets. It returns errors of single documents together
// with the objects of the others.
func (r *Reconciler) readObjects(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) (objects []*unstructured.Unstructured, checksum, reason string, err error) {
	sum := sha256.New()
	var problems []error
	for _, secretRef := range mr.Spec.SecretRefs {
		data := apply.Ref{APIVersion: "v1", Kind: "Secret", Namespace: mr.Namespace, Name: secretRef.Name}
		obj, err := r.readDataSecret(ctx, data)
		if err != nil {
			return nil, "", resourcesv1alpha1.ConditionCannotReadSecret, r.Source.Explain(data, "read", err)
		}
		secret := &corev1.Secret{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, secret); err != nil {
			return nil, "", resourcesv1alpha1.ConditionCannotReadSecret, fmt.Errorf("decode Secret %s/%s on %s: not a Secret", mr.Namespace, secretRef.Name, r.Source.Name())
		}
		found, errs := render.UnpackObjects(secret.Data)
		for _, e := range errs {
			problems = append(problems, fmt.Errorf("read Secret %s/%s: %w", mr.Namespace, secretRef.Name, e))
		}
		objects = append(objects, found...)
		// The checksum covers the objects, not their encoding or compression.
		for _, o := range found {
			if err := json.NewEncoder(sum).Encode(o.Object); err != nil {
				return nil, "", resourcesv1alpha1.ConditionDecodingFailed, fmt.Errorf("read Secret %s/%s: %s cannot be written as JSON", mr.Namespace, secretRef.Name, apply.RefOf(o))
			}
		}
		fmt.Fprintln(sum, len(errs))
	}
	if len(problems) > 0 {
		return objects, hex.EncodeToString(sum.Sum(nil)), resourcesv1alpha1.ConditionDecodingFailed, errors.Join(problems...)
	}
	return objects, hex.EncodeToString(sum.Sum(nil)), "", nil
}

// ChangeSinceApply says how a ManagedResource differs from its last application; the result is
// empty if it does not. A caller that only restores objects must not apply newer content.
func (r *Reconciler) ChangeSinceApply(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) string {
	if mr.Status.ObservedGeneration != mr.Generation {
		return "was changed since its objects were applied"
	}
	_, checksum, _, err := r.readObjects(ctx, mr)
	switch {
	case err != nil:
		return "has no readable data Secret"
	case checksum != ptr.Deref(mr.Status.SecretsDataChecksum, ""):
		return "has a data Secret that changed since its objects were applied"
	}
	return ""
}

// DeclaredObjects returns the objects in the data Secrets of a ManagedResource, as far as they are
// readable. Their namespaces are not resolved: a missing one may stand for "default". The reason is
// that of the condition for the error.
func (r *Reconciler) DeclaredObjects(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) (objects []*unstructured.Unstructured, reason string, err error) {
	objects, _, reason, err = r.readObjects(ctx, mr)
	return objects, reason, err
}
