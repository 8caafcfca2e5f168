// SPDX-License-Identifier: Apache-2.0

package authorizer

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

// Names of gardenlets and extensions.
const (
	groupSeeds           = "gardener.cloud:system:seeds"
	userSeed             = "gardener.cloud:system:seed:"
	groupShoots          = "gardener.cloud:system:shoots"
	userShoot            = "gardener.cloud:system:shoot:"
	userGardenadm        = "gardener.cloud:gardenadm:shoot:"
	groupAccounts        = "system:serviceaccounts"
	userAccount          = "system:serviceaccount:"
	prefixExtension      = "extension-"
	prefixShootExtension = "extension-shoot--"
	// prefixGardenlet is for ServiceAccounts that Pergola's chart creates in namespace garden,
	// prefixBootstrap for those of gardenlets without a certificate.
	prefixGardenlet      = "gardenlet-"
	prefixBootstrap      = "gardenlet-bootstrap-"
	prefixBootstrapper   = "gardener.cloud:system:seed-bootstrapper:"
	prefixBootstrapToken = "bootstrap-token-"
	prefixSelfHosted     = "self-hosted-shoot-"
	prefixProject        = "garden-"
)

// role is the kind of a client.
type role string

const (
	roleNone      role = ""
	roleGardenlet role = "gardenlet"
	roleExtension role = "extension"
	roleGardenadm role = "gardenadm"
)

// requester is the user of a request.
type requester struct {
	name   string
	groups []string
}

func seedOwner(name string) ownerKey { return ownerKey{kind: kindSeed, name: name} }

// seedNamespace is the namespace of a seed's objects in the virtual garden.
func seedNamespace(seed string) string { return gardencorev1beta1.SeedNamespacePrefix + seed }

// seedRole returns the Seed of a user. A problem is a member of the gardenlets' group whose name
// contains no Seed.
func (r requester) seedRole() (seed string, as role, problem string) {
	if slices.Contains(r.groups, groupSeeds) {
		seed, is := strings.CutPrefix(r.name, userSeed)
		if !is || !isDNSName(seed) {
			return "", roleNone, "members of the group " + groupSeeds + " must be named " + userSeed + "NAME"
		}
		return seed, roleGardenlet, ""
	}
	namespace, account, is := r.serviceAccount()
	if !is {
		return "", roleNone, ""
	}
	if seed, is := strings.CutPrefix(namespace, gardencorev1beta1.SeedNamespacePrefix); is && isDNSName(seed) && strings.HasPrefix(account, prefixExtension) {
		return seed, roleExtension, ""
	}
	if namespace == gardencorev1beta1.GardenNamespace && !strings.HasPrefix(account, prefixBootstrap) {
		if seed, is := strings.CutPrefix(account, prefixGardenlet); is && isDNSName(seed) {
			return seed, roleGardenlet, ""
		}
	}
	return "", roleNone, ""
}

// shootRole returns the self-hosted Shoot of a user.
func (r requester) shootRole() (shoot objectKey, as role, problem string) {
	if slices.Contains(r.groups, groupShoots) {
		as := roleGardenlet
		rest, is := strings.CutPrefix(r.name, userShoot)
		if !is {
			as = roleGardenadm
			rest, is = strings.CutPrefix(r.name, userGardenadm)
		}
		namespace, name, two := strings.Cut(rest, ":")
		if !is || !two || !isDNSName(namespace) || !isDNSName(name) {
			return objectKey{}, roleNone, "members of the group " + groupShoots + " must be named " + userShoot + "NAMESPACE:NAME"
		}
		return objectKey{kindShoot, namespace, name}, as, ""
	}
	namespace, account, is := r.serviceAccount()
	if !is || namespace != gardencorev1beta1.GardenNamespace && !strings.HasPrefix(namespace, prefixProject) {
		return objectKey{}, roleNone, ""
	}
	rest, is := strings.CutPrefix(account, prefixShootExtension)
	name, _, two := strings.Cut(rest, "--")
	if !is || !two || !isDNSName(name) {
		return objectKey{}, roleNone, ""
	}
	return objectKey{kindShoot, namespace, name}, roleExtension, ""
}

// serviceAccount returns the ServiceAccount of a user. Name and groups must match: a certificate
// can have any name.
func (r requester) serviceAccount() (namespace, name string, is bool) {
	rest, is := strings.CutPrefix(r.name, userAccount)
	namespace, name, two := strings.Cut(rest, ":")
	if !is || !two || !slices.Contains(r.groups, groupAccounts) || !slices.Contains(r.groups, groupAccounts+":"+namespace) {
		return "", "", false
	}
	return namespace, name, true
}

func isDNSName(name string) bool { return len(validation.IsDNS1123Subdomain(name)) == 0 }
