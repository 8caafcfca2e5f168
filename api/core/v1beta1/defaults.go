package v1beta1

import (
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// orDefault sets an unset field.
func orDefault[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}

// orEmpty creates a block if it is missing, and returns it.
func orEmpty[T any](field **T) *T {
	if *field == nil {
		*field = new(T)
	}
	return *field
}

// orDuration sets an unset duration.
func orDuration(field **metav1.Duration, value time.Duration) {
	orDefault(field, metav1.Duration{Duration: value})
}

// defaultSubject fills in the API group that the kind of a subject implies.
func defaultSubject(subject *rbacv1.Subject) {
	if subject.APIGroup == "" && (subject.Kind == rbacv1.UserKind || subject.Kind == rbacv1.GroupKind) {
		subject.APIGroup = rbacv1.GroupName
	}
}

// withToleration adds a toleration of any value of a key, unless it exists.
func withToleration(tolerations []Toleration, key string) []Toleration {
	for _, toleration := range tolerations {
		if toleration.Key == key && toleration.Value == nil {
			return tolerations
		}
	}
	return append(tolerations, Toleration{Key: key})
}
