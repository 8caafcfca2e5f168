package authorizer

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

// Names of gardenlets and extensions.
const (
	groupSeeds      = "gardener.cloud:system:seeds"
	userSeed        = "gardener.cloud:system:seed:"
	groupShoots     = "gardener.cloud:system:shoots"
	userShoot       = "gardener.cloud:system:shoot:"
	userGardenadm   = "gardener.cloud:gardenadm:shoot:"
	groupAccounts   = "system:serviceaccounts"
	userAccount     = "system:serviceaccount:"
	prefixExtension = "extension-"
	prefixOfShoot   = "extension-shoot--"
	// prefixGardenlet is for ServiceAccounts that Pergola's chart creates in namespace garden,
	// prefixBootstrap for those of gardenlets without a certificate.
	prefixGardenlet    = "gardenlet-"
	prefixBootstrap    = "gardenlet-bootstrap-"
	prefixBootstrapper = "gardener.cloud:system:seed-bootstrapper:"
	prefixToken        = "bootstrap-token-"
	prefixSelfHosted   = "self-hosted-shoot-"
	prefixProject      = "garden-"
)

// role is the kind of a client.
type role string

const (
	asNobody    role = ""
	asGardenlet role = "gardenlet"
	asExtension role = "extension"
	asGardenadm role = "gardenadm"
)

// requester is the user of a request.
type requester struct {
	name   string
	groups []string
}

func seedOwner(name string) owner { return owner{kind: kindSeed, name: name} }

// seedNamespace is the namespace of a seed's objects in the virtual garden.
func seedNamespace(seed string) string { return gardencorev1beta1.SeedNamespacePrefix + seed }

// ofSeed returns the Seed of a user. A problem is a member of the gardenlets' group whose name
// contains no Seed.
func (r requester) ofSeed() (seed string, as role, problem string) {
	if slices.Contains(r.groups, groupSeeds) {
		seed, is := strings.CutPrefix(r.name, userSeed)
		if !is || !isName(seed) {
			return "", asNobody, "who is in the group " + groupSeeds + " must be named " + userSeed + "NAME"
		}
		return seed, asGardenlet, ""
	}
	namespace, account, is := r.account()
	if !is {
		return "", asNobody, ""
	}
	if seed, is := strings.CutPrefix(namespace, gardencorev1beta1.SeedNamespacePrefix); is && isName(seed) && strings.HasPrefix(account, prefixExtension) {
		return seed, asExtension, ""
	}
	if namespace == gardencorev1beta1.GardenNamespace && !strings.HasPrefix(account, prefixBootstrap) {
		if seed, is := strings.CutPrefix(account, prefixGardenlet); is && isName(seed) {
			return seed, asGardenlet, ""
		}
	}
	return "", asNobody, ""
}

// ofShoot returns the self-hosted Shoot of a user.
func (r requester) ofShoot() (shoot node, as role, problem string) {
	if slices.Contains(r.groups, groupShoots) {
		as := asGardenlet
		rest, is := strings.CutPrefix(r.name, userShoot)
		if !is {
			as = asGardenadm
			rest, is = strings.CutPrefix(r.name, userGardenadm)
		}
		namespace, name, two := strings.Cut(rest, ":")
		if !is || !two || !isName(namespace) || !isName(name) {
			return node{}, asNobody, "who is in the group " + groupShoots + " must be named " + userShoot + "NAMESPACE:NAME"
		}
		return node{kindShoot, namespace, name}, as, ""
	}
	namespace, account, is := r.account()
	if !is || namespace != gardencorev1beta1.GardenNamespace && !strings.HasPrefix(namespace, prefixProject) {
		return node{}, asNobody, ""
	}
	rest, is := strings.CutPrefix(account, prefixOfShoot)
	name, _, two := strings.Cut(rest, "--")
	if !is || !two || !isName(name) {
		return node{}, asNobody, ""
	}
	return node{kindShoot, namespace, name}, asExtension, ""
}

// account returns the ServiceAccount of a user. Name and groups must match: a certificate can have
// any name.
func (r requester) account() (namespace, name string, is bool) {
	rest, is := strings.CutPrefix(r.name, userAccount)
	namespace, name, two := strings.Cut(rest, ":")
	if !is || !two || !slices.Contains(r.groups, groupAccounts) || !slices.Contains(r.groups, groupAccounts+":"+namespace) {
		return "", "", false
	}
	return namespace, name, true
}

func isName(name string) bool { return len(validation.IsDNS1123Subdomain(name)) == 0 }
