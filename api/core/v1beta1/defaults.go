// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// setDefault sets an unset field.
func setDefault[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}

// ensureBlock creates a block if it is missing, and returns it.
func ensureBlock[T any](field **T) *T {
	if *field == nil {
		*field = new(T)
	}
	return *field
}

// setDefaultDuration sets an unset duration.
func setDefaultDuration(field **metav1.Duration, value time.Duration) {
	setDefault(field, metav1.Duration{Duration: value})
}

// setSubjectDefaults fills in the API group that the kind of a subject implies.
func setSubjectDefaults(subject *rbacv1.Subject) {
	if subject.APIGroup == "" && (subject.Kind == rbacv1.UserKind || subject.Kind == rbacv1.GroupKind) {
		subject.APIGroup = rbacv1.GroupName
	}
}

// addToleration adds a toleration of any value of a key, unless it exists.
func addToleration(tolerations []Toleration, key string) []Toleration {
	for _, toleration := range tolerations {
		if toleration.Key == key && toleration.Value == nil {
			return tolerations
		}
	}
	return append(tolerations, Toleration{Key: key})
}
