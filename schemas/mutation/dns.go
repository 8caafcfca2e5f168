package mutation

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

// dns sets the domain and the primary provider. A Shoot with a generated name has no domain yet.
// Source: plugin/pkg/shoot/dns.
func (m *shootMutator) dns() {
	m.keepPrimary()
	m.keepDomain()
	seed := m.seedOf()
	if seed == nil {
		return
	}
	domains := m.defaultDomains(seed)
	if !unmanaged(m.shoot) {
		m.domain(domains)
	}
	dns := m.shoot.Spec.DNS
	if dns == nil || len(dns.Providers) == 0 || primary(dns.Providers) >= 0 {
		return
	}
	if dns.Domain != nil && slices.ContainsFunc(domains, func(d defaultDomain) bool { return strings.HasSuffix(*dns.Domain, "."+d.domain) }) {
		return
	}
	m.makePrimary(0, "the first one serves the domain, as none says so")
}

func (m *shootMutator) domain(domains []defaultDomain) {
	project := m.project(m.shoot.Namespace)
	if len(domains) == 0 || project == nil || m.shoot.Name == "" || m.shoot.Spec.DNS != nil && m.shoot.Spec.DNS.Domain != nil {
		return
	}
	m.id = shootDomain
	if m.shoot.Spec.DNS == nil {
		m.shoot.Spec.DNS = &gardencorev1beta1.DNS{}
	}
	domain := fmt.Sprintf("%s.%s.%s", m.shoot.Name, project.Name, domains[0].domain)
	m.shoot.Spec.DNS.Domain = &domain
	m.filled("spec.dns.domain", domain, "below the default domain of %s", domains[0].place)
}

// keepDomain retains the previous domain, even if default domains change.
func (m *shootMutator) keepDomain() {
	if m.old == nil || m.old.Spec.DNS == nil || m.old.Spec.DNS.Domain == nil || unmanaged(m.shoot) {
		return
	}
	m.id = shootDomain
	if m.shoot.Spec.DNS == nil {
		m.shoot.Spec.DNS = &gardencorev1beta1.DNS{}
	}
	m.keepText("spec.dns.domain", &m.shoot.Spec.DNS.Domain, m.old.Spec.DNS.Domain)
}

// keepPrimary retains the previous primary provider.
func (m *shootMutator) keepPrimary() {
	if m.old == nil || m.old.Spec.DNS == nil || m.shoot.Spec.DNS == nil || primary(m.shoot.Spec.DNS.Providers) >= 0 {
		return
	}
	was := primary(m.old.Spec.DNS.Providers)
	if was < 0 {
		return
	}
	before := m.old.Spec.DNS.Providers[was]
	for i, provider := range m.shoot.Spec.DNS.Providers {
		if reflect.DeepEqual(provider.Type, before.Type) && reflect.DeepEqual(provider.CredentialsRef, before.CredentialsRef) {
			m.makePrimary(i, "it was the primary one before")
			return
		}
	}
}

func (m *shootMutator) makePrimary(index int, reason string) {
	m.id = shootPrimary
	yes := true
	m.shoot.Spec.DNS.Providers[index].Primary = &yes
	m.filled(fmt.Sprintf("spec.dns.providers[%d].primary", index), true, "%s", reason)
}

// primary returns the index of the primary provider, -1 for none.
func primary(providers []gardencorev1beta1.DNSProvider) int {
	return slices.IndexFunc(providers, func(p gardencorev1beta1.DNSProvider) bool { return p.Primary != nil && *p.Primary })
}

// unmanaged reports whether the provider is of type unmanaged. Source: pkg/api/core/helper
// (ShootUsesUnmanagedDNS).
func unmanaged(shoot *gardencorev1beta1.Shoot) bool {
	if shoot.Spec.DNS == nil || len(shoot.Spec.DNS.Providers) == 0 {
		return false
	}
	provider := shoot.Spec.DNS.Providers[max(0, primary(shoot.Spec.DNS.Providers))]
	return provider.Type != nil && *provider.Type == gardencorev1beta1.DNSUnmanaged
}
