// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

// setDNS sets the domain and the primary provider. A Shoot with a generated name has no domain yet.
// Source: plugin/pkg/shoot/dns.
func (m *shootMutator) setDNS() {
	m.restorePrimaryProvider()
	m.restoreDomain()
	seed := m.seedOfShoot()
	if seed == nil {
		return
	}
	domains := m.defaultDomains(seed)
	if !isDNSUnmanaged(m.shoot) {
		m.setDefaultDomain(domains)
	}
	dns := m.shoot.Spec.DNS
	if dns == nil || len(dns.Providers) == 0 || primaryProviderIndex(dns.Providers) >= 0 {
		return
	}
	if dns.Domain != nil && slices.ContainsFunc(domains, func(d defaultDomain) bool { return strings.HasSuffix(*dns.Domain, "."+d.domain) }) {
		return
	}
	m.setPrimaryProvider(0, "the first provider serves the domain, because none is primary")
}

func (m *shootMutator) setDefaultDomain(domains []defaultDomain) {
	project := m.findProject(m.shoot.Namespace)
	if len(domains) == 0 || project == nil || m.shoot.Name == "" || m.shoot.Spec.DNS != nil && m.shoot.Spec.DNS.Domain != nil {
		return
	}
	m.mutationID = shootDefaultDomain
	if m.shoot.Spec.DNS == nil {
		m.shoot.Spec.DNS = &gardencorev1beta1.DNS{}
	}
	domain := fmt.Sprintf("%s.%s.%s", m.shoot.Name, project.Name, domains[0].domain)
	m.shoot.Spec.DNS.Domain = &domain
	m.recordChange("spec.dns.domain", domain, "below the default domain of %s", domains[0].source)
}

// restoreDomain retains the previous domain, even if default domains change.
func (m *shootMutator) restoreDomain() {
	if m.oldShoot == nil || m.oldShoot.Spec.DNS == nil || m.oldShoot.Spec.DNS.Domain == nil || isDNSUnmanaged(m.shoot) {
		return
	}
	m.mutationID = shootDefaultDomain
	if m.shoot.Spec.DNS == nil {
		m.shoot.Spec.DNS = &gardencorev1beta1.DNS{}
	}
	m.restoreText("spec.dns.domain", &m.shoot.Spec.DNS.Domain, m.oldShoot.Spec.DNS.Domain)
}

// restorePrimaryProvider retains the previous primary provider.
func (m *shootMutator) restorePrimaryProvider() {
	if m.oldShoot == nil || m.oldShoot.Spec.DNS == nil || m.shoot.Spec.DNS == nil || primaryProviderIndex(m.shoot.Spec.DNS.Providers) >= 0 {
		return
	}
	was := primaryProviderIndex(m.oldShoot.Spec.DNS.Providers)
	if was < 0 {
		return
	}
	before := m.oldShoot.Spec.DNS.Providers[was]
	for i, provider := range m.shoot.Spec.DNS.Providers {
		if reflect.DeepEqual(provider.Type, before.Type) && reflect.DeepEqual(provider.CredentialsRef, before.CredentialsRef) {
			m.setPrimaryProvider(i, "it was the primary one before")
			return
		}
	}
}

func (m *shootMutator) setPrimaryProvider(index int, reason string) {
	m.mutationID = shootPrimaryProvider
	yes := true
	m.shoot.Spec.DNS.Providers[index].Primary = &yes
	m.recordChange(fmt.Sprintf("spec.dns.providers[%d].primary", index), true, "%s", reason)
}

// primaryProviderIndex returns the index of the primary provider, or -1 for none.
func primaryProviderIndex(providers []gardencorev1beta1.DNSProvider) int {
	return slices.IndexFunc(providers, func(p gardencorev1beta1.DNSProvider) bool { return p.Primary != nil && *p.Primary })
}

// isDNSUnmanaged reports whether the provider is of type unmanaged. Source: pkg/api/core/helper
// (ShootUsesUnmanagedDNS).
func isDNSUnmanaged(shoot *gardencorev1beta1.Shoot) bool {
	if shoot.Spec.DNS == nil || len(shoot.Spec.DNS.Providers) == 0 {
		return false
	}
	provider := shoot.Spec.DNS.Providers[max(0, primaryProviderIndex(shoot.Spec.DNS.Providers))]
	return provider.Type != nil && *provider.Type == gardencorev1beta1.DNSUnmanaged
}
