package namespacepolicies

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

// Names of the policies (upstream's).
const (
	denyAll           = "deny-all"
	toAPIServer       = "allow-to-runtime-apiserver"
	toPublicNetworks  = "allow-to-public-networks"
	toPrivateNetworks = "allow-to-private-networks"
	toBlockedRanges   = "allow-to-blocked-cidrs"
	toDNS             = "allow-to-dns"
)

// labelExposureHandler is on namespaces of gateways for an exposure class (upstream's).
const labelExposureHandler = "handler.exposureclass.gardener.cloud/name"

// policyNames returns all policies in the order in which they are written: permissions come before
// deny-all.
func policyNames() []string {
	return []string{toDNS, toAPIServer, toPublicNetworks, toPrivateNetworks, toBlockedRanges, denyAll}
}

// policyNamesFor returns the policies of a namespace. A namespace that matches a further selector
// has all.
func policyNamesFor(namespace string, set labels.Set, further []labels.Selector) []string {
	if slices.ContainsFunc(further, func(s labels.Selector) bool { return s.Matches(set) }) {
		return policyNames()
	}
	role := set[gardencorev1beta1.GardenRole]
	switch {
	case namespace == gardencorev1beta1.GardenNamespace, role == gardencorev1beta1.GardenRoleShoot, role == gardencorev1beta1.GardenRoleExtension:
		return policyNames()
	case role == gardencorev1beta1.GardenRoleIstioSystem, role == gardencorev1beta1.GardenRoleIstioIngress:
		return []string{toDNS, toAPIServer, denyAll}
	case set.Has(labelExposureHandler):
		return []string{toDNS, denyAll}
	}
	return nil
}
