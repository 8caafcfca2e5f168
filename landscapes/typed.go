package landscapes

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	operatorv1alpha1 "github.com/pergola-dev/pergola/api/operator/v1alpha1"
)

// Typed is an object in its Go type, with the declaration it comes from.
type Typed[T any] struct {
	Object      *T
	Declaration *Declaration
}

// typed converts all declarations of a kind. What cannot be converted is left out and part of the error; a landscape
// that validates has no such object.
func typed[T any](l *Landscape, gvk schema.GroupVersionKind) ([]Typed[T], error) {
	var result []Typed[T]
	var failed []error
	for i := range l.Declarations {
		d := &l.Declarations[i]
		if d.Object.GroupVersionKind() != gvk {
			continue
		}
		object := new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(d.Object.Object, object); err != nil {
			failed = append(failed, fmt.Errorf("%s:%d:%d: %s: %w", d.File, d.Line, d.Column, identityOf(d.Object), err))
			continue
		}
		result = append(result, Typed[T]{Object: object, Declaration: d})
	}
	return result, errors.Join(failed...)
}

// Garden gives the Garden of the landscape, the first one if there are several; nil if there is none.
func (l *Landscape) Garden() (*operatorv1alpha1.Garden, *Declaration, error) {
	gardens, err := typed[operatorv1alpha1.Garden](l, operatorv1alpha1.SchemeGroupVersion.WithKind("Garden"))
	if len(gardens) == 0 {
		return nil, nil, err
	}
	return gardens[0].Object, gardens[0].Declaration, err
}

// Seeds gives all Seeds.
func (l *Landscape) Seeds() ([]Typed[gardencorev1beta1.Seed], error) {
	return typed[gardencorev1beta1.Seed](l, gardencorev1beta1.SchemeGroupVersion.WithKind("Seed"))
}

// Shoots gives all Shoots.
func (l *Landscape) Shoots() ([]Typed[gardencorev1beta1.Shoot], error) {
	return typed[gardencorev1beta1.Shoot](l, gardencorev1beta1.SchemeGroupVersion.WithKind("Shoot"))
}

// Projects gives all Projects.
func (l *Landscape) Projects() ([]Typed[gardencorev1beta1.Project], error) {
	return typed[gardencorev1beta1.Project](l, gardencorev1beta1.SchemeGroupVersion.WithKind("Project"))
}

// CloudProfiles gives all CloudProfiles.
func (l *Landscape) CloudProfiles() ([]Typed[gardencorev1beta1.CloudProfile], error) {
	return typed[gardencorev1beta1.CloudProfile](l, gardencorev1beta1.SchemeGroupVersion.WithKind("CloudProfile"))
}

// Secrets gives all Secrets; those in the state SecretEncrypted have empty values.
func (l *Landscape) Secrets() ([]Typed[corev1.Secret], error) {
	return typed[corev1.Secret](l, corev1.SchemeGroupVersion.WithKind("Secret"))
}

// Namespaces gives all Namespaces.
func (l *Landscape) Namespaces() ([]Typed[corev1.Namespace], error) {
	return typed[corev1.Namespace](l, corev1.SchemeGroupVersion.WithKind("Namespace"))
}
