// SPDX-License-Identifier: Apache-2.0

package garden

import (
	"context"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

const (
	labelRole          = "gardener.cloud/role"
	roleInternalDomain = gardencorev1beta1.GardenRoleInternalDomain
	annotationDomain   = "dns.gardener.cloud/domain"
	annotationProvider = "dns.gardener.cloud/provider"
)

var secretsResource = corev1.SchemeGroupVersion.WithResource("secrets")

// internalDomain allows one internal domain for the garden and one per Seed. The Secret must name
// its domain and provider, and stays while Shoots use it.
func (w *webhooks) internalDomain(ctx context.Context, request *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error) {
	seed, ofSeed := strings.CutPrefix(request.Namespace, gardencorev1beta1.SeedNamespacePrefix)
	if !ofSeed {
		seed = ""
	}
	if request.Namespace != gardencorev1beta1.GardenNamespace && !ofSeed {
		return allowed()
	}
	secret, old, err := decodeObjects[corev1.Secret](request)
	if err != nil {
		return nil, err
	}
	place := request.Namespace + "/" + request.Name
	if request.Operation == admissionv1.Delete {
		return w.requireUnusedDomain(ctx, seed, "Secret "+place+" cannot be deleted")
	}
	if secret.Annotations[annotationDomain] == "" || secret.Annotations[annotationProvider] == "" {
		return invalid("Secret %s holds the internal domain: set its annotations %s (the domain) and %s (the provider)", place, annotationDomain, annotationProvider)
	}
	if old == nil || old.Labels[labelRole] != roleInternalDomain {
		others, err := w.Garden.List(ctx, secretsResource, request.Namespace, labelRole+"="+roleInternalDomain, 0)
		if err != nil {
			return nil, fmt.Errorf("reading the internal domains of namespace %s: %w", request.Namespace, err)
		}
		for _, other := range others {
			if other.GetName() != request.Name {
				return forbidden("Secret %s: Secret %s/%s already holds the internal domain, and only one is possible in a namespace", place, request.Namespace, other.GetName())
			}
		}
	}
	if old != nil && old.Annotations[annotationDomain] != secret.Annotations[annotationDomain] {
		return w.requireUnusedDomain(ctx, seed, "the domain of Secret "+place+" cannot be changed")
	}
	return allowed()
}

// requireUnusedDomain rejects a request while Shoots exist; if seed is set, Shoots of that Seed.
func (w *webhooks) requireUnusedDomain(ctx context.Context, seed, what string) (*admissionv1.AdmissionResponse, error) {
	all, _, err := w.Garden.Objects(ctx, gardencorev1beta1.SchemeGroupVersion.WithKind("Shoot"), true)
	if err != nil {
		return nil, fmt.Errorf("reading Shoots: %w", err)
	}
	for _, shoot := range all {
		if on, _, _ := unstructured.NestedString(shoot.Object, "spec", "seedName"); seed == "" || on == seed {
			return forbidden("%s: Shoots use it, such as %s/%s", what, shoot.GetNamespace(), shoot.GetName())
		}
	}
	return allowed()
}
