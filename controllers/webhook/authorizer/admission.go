package authorizer

import (
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/types"
)

// By these names gardenlets have their certificates.
const (
	// GroupSeeds is the group of gardenlets of Seeds; UserSeed begins their names, which end with
	// that of the Seed.
	GroupSeeds, UserSeed = groupSeeds, userSeed
	// GroupShoots is the group of gardenlets of self-hosted Shoots; UserShoot begins their names,
	// which end with NAMESPACE:NAME.
	GroupShoots, UserShoot = groupShoots, userShoot
)

// Requester is who asks, as far as it is one of those that authorizers answer for.
type Requester struct {
	// Seed is that of a gardenlet or of an extension; empty for others.
	Seed string
	// Shoot is a self-hosted one, of its gardenlet, of an extension or of gardenadm.
	Shoot types.NamespacedName
	// Gardenlet is true for a gardenlet itself.
	Gardenlet bool
	// Problem says why somebody is not who he says.
	Problem string
}

// RequesterOf says who somebody is by name and groups.
func RequesterOf(user string, groups []string) Requester {
	r := requester{user, groups}
	seed, as, problem := r.ofSeed()
	if as != asNobody || problem != "" {
		return Requester{Seed: seed, Gardenlet: as == asGardenlet, Problem: problem}
	}
	shoot, as, problem := r.ofShoot()
	return Requester{Shoot: types.NamespacedName{Namespace: shoot.namespace, Name: shoot.name}, Gardenlet: as == asGardenlet, Problem: problem}
}

// May tells whether a gardenlet or extension may do what an admission request says, and why not.
// The name counts, which the question to an authorizer about something new does not have.
func (h *Handler) May(user string, groups []string, request *admissionv1.AdmissionRequest) (bool, string) {
	spec := &authorizationv1.SubjectAccessReviewSpec{User: user, Groups: groups, ResourceAttributes: &authorizationv1.ResourceAttributes{
		Verb: strings.ToLower(string(request.Operation)), Group: request.Resource.Group, Version: request.Resource.Version, Resource: request.Resource.Resource,
		Subresource: request.SubResource, Namespace: request.Namespace, Name: request.Name,
	}}
	answer := h.shoot
	if who := RequesterOf(user, groups); who.Seed != "" {
		answer = h.seed
	}
	verdict, why := answer(spec)
	return verdict == allowed, why
}
