// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"errors"
	"iter"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	operatorv1alpha1 "github.com/pergola-dev/pergola/api/operator/v1alpha1"
)

// TypedObject is an object in its Go type, with its declaration.
type TypedObject[T any] struct {
	Object      *T
	Declaration *Declaration
}

// convertAll converts all declarations of a kind. It skips objects that it cannot convert and adds
// them to the error; a valid landscape has none.
func convertAll[T any](l *Landscape, gvk schema.GroupVersionKind) ([]TypedObject[T], error) {
	var result []TypedObject[T]
	var failed []error
	for one, err := range convertEach[T](l, gvk) {
		if err != nil {
			failed = append(failed, err)
		} else {
			result = append(result, one)
		}
	}
	return result, errors.Join(failed...)
}

// convertEach converts one declaration at a time.
func convertEach[T any](l *Landscape, gvk schema.GroupVersionKind) iter.Seq2[TypedObject[T], error] {
	return func(yield func(TypedObject[T], error) bool) {
		for i := range l.Declarations {
			d := &l.Declarations[i]
			if d.kind != gvk {
				continue
			}
			if one, err := convertDeclaration[T](d); !yield(one, err) {
				return
			}
		}
	}
}

func convertDeclaration[T any](d *Declaration) (TypedObject[T], error) {
	object := new(T)
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(d.Object().Object, object)
	if err != nil {
		err = d.WrapError(err)
	}
	return TypedObject[T]{Object: object, Declaration: d}, err
}

// ShootOf returns the Shoot of a declaration.
func ShootOf(d *Declaration) (TypedObject[gardencorev1beta1.Shoot], error) {
	return convertDeclaration[gardencorev1beta1.Shoot](d)
}

// Garden returns the first Garden of the landscape, or nil if there is none.
func (l *Landscape) Garden() (*operatorv1alpha1.Garden, *Declaration, error) {
	gardens, err := convertAll[operatorv1alpha1.Garden](l, operatorv1alpha1.SchemeGroupVersion.WithKind("Garden"))
	if len(gardens) == 0 {
		return nil, nil, err
	}
	return gardens[0].Object, gardens[0].Declaration, err
}

// Seeds returns all Seeds.
func (l *Landscape) Seeds() ([]TypedObject[gardencorev1beta1.Seed], error) {
	return convertAll[gardencorev1beta1.Seed](l, gardencorev1beta1.SchemeGroupVersion.WithKind("Seed"))
}

// EachShoot yields one Shoot at a time, which is converted on demand, or the error of its
// conversion.
func (l *Landscape) EachShoot() iter.Seq2[TypedObject[gardencorev1beta1.Shoot], error] {
	return convertEach[gardencorev1beta1.Shoot](l, gardencorev1beta1.SchemeGroupVersion.WithKind("Shoot"))
}

// Shoots returns all Shoots.
func (l *Landscape) Shoots() ([]TypedObject[gardencorev1beta1.Shoot], error) {
	return convertAll[gardencorev1beta1.Shoot](l, gardencorev1beta1.SchemeGroupVersion.WithKind("Shoot"))
}

// Projects returns all Projects.
func (l *Landscape) Projects() ([]TypedObject[gardencorev1beta1.Project], error) {
	return convertAll[gardencorev1beta1.Project](l, gardencorev1beta1.SchemeGroupVersion.WithKind("Project"))
}

// CloudProfiles returns all CloudProfiles.
func (l *Landscape) CloudProfiles() ([]TypedObject[gardencorev1beta1.CloudProfile], error) {
	return convertAll[gardencorev1beta1.CloudProfile](l, gardencorev1beta1.SchemeGroupVersion.WithKind("CloudProfile"))
}

// Secrets returns all Secrets; those in the state SecretEncrypted have empty values.
func (l *Landscape) Secrets() ([]TypedObject[corev1.Secret], error) {
	return convertAll[corev1.Secret](l, corev1.SchemeGroupVersion.WithKind("Secret"))
}

// Namespaces returns all Namespaces.
func (l *Landscape) Namespaces() ([]TypedObject[corev1.Namespace], error) {
	return convertAll[corev1.Namespace](l, corev1.SchemeGroupVersion.WithKind("Namespace"))
}
