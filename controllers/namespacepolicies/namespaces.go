// SPDX-License-Identifier: Apache-2.0

package namespacepolicies

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

// Names of the policies (upstream's).
const (
	policyDenyAll           = "deny-all"
	policyToAPIServer       = "allow-to-runtime-apiserver"
	policyToPublicNetworks  = "allow-to-public-networks"
	policyToPrivateNetworks = "allow-to-private-networks"
	policyToBlockedRanges   = "allow-to-blocked-cidrs"
	policyToDNS             = "allow-to-dns"
)

// labelExposureHandler is on namespaces of gateways for an exposure class (upstream's).
const labelExposureHandler = "handler.exposureclass.gardener.cloud/name"

// policyNames returns all policies in the order in which they are written: permissions come before
// deny-all.
func policyNames() []string {
	return []string{policyToDNS, policyToAPIServer, policyToPublicNetworks, policyToPrivateNetworks, policyToBlockedRanges, policyDenyAll}
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
		return []string{policyToDNS, policyToAPIServer, policyDenyAll}
	case set.Has(labelExposureHandler):
		return []string{policyToDNS, policyDenyAll}
	}
	return nil
}
