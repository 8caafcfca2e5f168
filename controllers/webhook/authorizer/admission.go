// SPDX-License-Identifier: Apache-2.0

package authorizer

import (
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Names in the certificates of gardenlets.
const (
	// GroupSeeds is the group of gardenlets of Seeds; UserSeed is the prefix of their names, which
	// end with the name of the Seed.
	GroupSeeds, UserSeed = groupSeeds, userSeed
	// GroupShoots is the group of gardenlets of self-hosted Shoots; UserShoot is the prefix of
	// their names, which end with NAMESPACE:NAME.
	GroupShoots, UserShoot = groupShoots, userShoot
)

// Requester is a user for whom the authorizers answer.
type Requester struct {
	// Seed is the Seed of a gardenlet or an extension; it is empty for others.
	Seed string
	// Shoot is the self-hosted Shoot of a gardenlet, an extension or gardenadm.
	Shoot types.NamespacedName
	// Gardenlet is true for a gardenlet itself.
	Gardenlet bool
	// Problem is why the name and groups of a user contradict each other.
	Problem string
}

// RequesterOf returns the Requester with a name and groups.
func RequesterOf(user string, groups []string) Requester {
	r := requester{user, groups}
	seed, as, problem := r.seedRole()
	if as != roleNone || problem != "" {
		return Requester{Seed: seed, Gardenlet: as == roleGardenlet, Problem: problem}
	}
	shoot, as, problem := r.shootRole()
	return Requester{Shoot: types.NamespacedName{Namespace: shoot.namespace, Name: shoot.name}, Gardenlet: as == roleGardenlet, Problem: problem}
}

// IsAllowed reports whether a gardenlet or extension may make an admission request, and why not. It
// checks the name, which a SubjectAccessReview about a new object lacks.
func (h *Handler) IsAllowed(user string, groups []string, request *admissionv1.AdmissionRequest) (bool, string) {
	spec := &authorizationv1.SubjectAccessReviewSpec{User: user, Groups: groups, ResourceAttributes: &authorizationv1.ResourceAttributes{
		Verb: strings.ToLower(string(request.Operation)), Group: request.Resource.Group, Version: request.Resource.Version, Resource: request.Resource.Resource,
		Subresource: request.SubResource, Namespace: request.Namespace, Name: request.Name,
	}}
	answer := h.decideForShoot
	if who := RequesterOf(user, groups); who.Seed != "" {
		answer = h.decideForSeed
	}
	verdict, why := answer(spec)
	return verdict == allowed, why
}
