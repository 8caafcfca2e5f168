// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	securityv1alpha1 "github.com/pergola-dev/pergola/api/security/v1alpha1"
)

// ingressDomainPrefix is the first label of the ingress domain of a ManagedSeed.
const ingressDomainPrefix = "ingress"

// mutateManagedSeed fills in the seedConfig of a ManagedSeed from its Shoot. Source:
// plugin/pkg/managedseed/validator (admitSeedSpec).
func (s *Mutator) mutateManagedSeed(object *unstructured.Unstructured) Result {
	r := &changeRecorder{kind: kindManagedSeed.Kind, namespace: object.GetNamespace(), name: object.GetName()}
	name, _, _ := unstructured.NestedString(object.Object, "spec", "shoot", "name")
	shoot := s.findMutatedShoot(object.GetNamespace(), name)
	if name == "" || shoot == nil {
		return r.Result
	}
	config, found, err := unstructured.NestedMap(object.Object, "spec", "gardenlet", "config", "seedConfig")
	if found && err == nil {
		f := &seedFiller{changeRecorder: r, seedConfig: config, reason: "the value of the Shoot " + name}
		r.mutationID = managedSeedConfig
		s.fillSeedFromShoot(f, shoot)
	}
	r.syncSeedLabels(object.DeepCopy(), shoot.Spec.SeedName)
	return r.Result
}

// seedFiller fills in the spec of a seedConfig.
type seedFiller struct {
	*changeRecorder
	seedConfig map[string]any
	reason     string
}

// fillField sets a missing or empty field, unless the value is empty.
func (f *seedFiller) fillField(value any, fields ...string) {
	path := append([]string{"spec"}, fields...)
	current, found, err := unstructured.NestedFieldNoCopy(f.seedConfig, path...)
	if err != nil || value == "" || found && current != nil && current != "" {
		return
	}
	f.recordChange("spec.gardenlet.config.seedConfig."+strings.Join(path, "."), value, "%s", f.reason)
}

func (f *seedFiller) hasField(fields ...string) bool {
	value, found, err := unstructured.NestedFieldNoCopy(f.seedConfig, append([]string{"spec"}, fields...)...)
	return err == nil && found && value != nil
}

func (s *Mutator) fillSeedFromShoot(f *seedFiller, shoot *gardencorev1beta1.Shoot) {
	if f.hasField("backup") {
		f.fillField(shoot.Spec.Provider.Type, "backup", "provider")
	}
	if shoot.Spec.DNS != nil && shoot.Spec.DNS.Domain != nil {
		if !f.hasField("ingress") {
			f.fillField("nginx", "ingress", "controller", "kind")
		}
		if !f.hasField("dns", "provider") {
			if provider := s.findDNSProvider(shoot); provider != nil {
				f.fillField(provider, "dns", "provider")
			}
		}
		f.fillField(ingressDomainPrefix+"."+*shoot.Spec.DNS.Domain, "ingress", "domain")
	}
	for field, value := range shootNetworkRanges(shoot) {
		f.fillField(value, "networks", field)
	}
	f.fillField(shoot.Spec.Provider.Type, "provider", "type")
	f.fillField(shoot.Spec.Region, "provider", "region")
	if zones := workerZones(shoot); len(zones) > 0 && !f.hasField("provider", "zones") {
		f.fillField(zones, "provider", "zones")
	}
	f.reason = "the Shoot already has one"
	if !f.hasField("settings", "verticalPodAutoscaler") {
		f.fillField(false, "settings", "verticalPodAutoscaler", "enabled")
	}
}

// shootNetworkRanges yields the ranges of a Shoot, sorted by field name.
func shootNetworkRanges(shoot *gardencorev1beta1.Shoot) func(yield func(string, string) bool) {
	ranges := map[string]*string{}
	if n := shoot.Spec.Networking; n != nil {
		ranges = map[string]*string{"nodes": n.Nodes, "pods": n.Pods, "services": n.Services}
	}
	return func(yield func(string, string) bool) {
		for _, field := range slices.Sorted(maps.Keys(ranges)) {
			if ranges[field] != nil && !yield(field, *ranges[field]) {
				return
			}
		}
	}
}

// workerZones returns the zones of all pools. Source: pkg/api/core/v1beta1/helper
// (GetAllZonesFromShoot).
func workerZones(shoot *gardencorev1beta1.Shoot) []string {
	var zones []string
	for _, worker := range shoot.Spec.Provider.Workers {
		zones = append(zones, worker.Zones...)
	}
	return slices.Compact(slices.Sorted(slices.Values(zones)))
}

// findDNSProvider returns the provider of a Shoot's domain: its primary provider, or the provider
// of the default domain, or nil for none.
func (s *Mutator) findDNSProvider(shoot *gardencorev1beta1.Shoot) *gardencorev1beta1.SeedDNSProvider {
	if i := primaryProviderIndex(shoot.Spec.DNS.Providers); i >= 0 {
		provider := shoot.Spec.DNS.Providers[i]
		if provider.Type == nil {
			return nil
		}
		if *provider.Type != gardencorev1beta1.DNSUnmanaged {
			credentials := s.providerCredentials(shoot, &provider)
			if credentials == nil {
				return nil
			}
			return &gardencorev1beta1.SeedDNSProvider{Type: *provider.Type, CredentialsRef: credentials}
		}
	}
	var seed *gardencorev1beta1.Seed
	if shoot.Spec.SeedName != nil {
		seed = s.findSeed(*shoot.Spec.SeedName)
	}
	for _, domain := range s.defaultDomains(seed) {
		if strings.HasSuffix(*shoot.Spec.DNS.Domain, "."+domain.domain) {
			credentials := domain.credentials
			return &gardencorev1beta1.SeedDNSProvider{Type: domain.provider, CredentialsRef: &credentials}
		}
	}
	return nil
}

// providerCredentials returns the credentials of a DNS provider, by default those of the
// infrastructure.
func (s *Mutator) providerCredentials(shoot *gardencorev1beta1.Shoot, provider *gardencorev1beta1.DNSProvider) *corev1.ObjectReference {
	if ref := provider.CredentialsRef; ref != nil {
		return &corev1.ObjectReference{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: shoot.Namespace, Name: ref.Name}
	}
	if name := shoot.Spec.SecretBindingName; name != nil {
		binding := toTyped[gardencorev1beta1.SecretBinding](s.lister.Get(kindSecretBinding, shoot.Namespace, *name))
		if binding == nil {
			return nil
		}
		gardencorev1beta1.SetDefaults_SecretBinding(binding)
		return &corev1.ObjectReference{APIVersion: "v1", Kind: kindSecret.Kind, Namespace: binding.SecretRef.Namespace, Name: binding.SecretRef.Name}
	}
	if name := shoot.Spec.CredentialsBindingName; name != nil {
		binding := toTyped[securityv1alpha1.CredentialsBinding](s.lister.Get(kindCredentialsBinding, shoot.Namespace, *name))
		if binding == nil {
			return nil
		}
		securityv1alpha1.SetDefaults_CredentialsBinding(binding)
		return &binding.CredentialsRef
	}
	return nil
}

// mutateBastion fills in a Bastion from its Shoot. Declared Shoots have no uid, so Git has no
// owner. Source: plugin/pkg/bastion/validator.
func (s *Mutator) mutateBastion(object *unstructured.Unstructured) Result {
	r := &changeRecorder{kind: kindBastion.Kind, namespace: object.GetNamespace(), name: object.GetName(), mutationID: bastionFromShoot}
	name, _, _ := unstructured.NestedString(object.Object, "spec", "shootRef", "name")
	shoot := s.findMutatedShoot(object.GetNamespace(), name)
	if name == "" || shoot == nil || shoot.Spec.SeedName == nil || *shoot.Spec.SeedName == "" {
		return r.Result
	}
	reason := "the value of the Shoot " + name
	for field, value := range map[string]string{"seedName": *shoot.Spec.SeedName, "providerType": shoot.Spec.Provider.Type} {
		if current, _, _ := unstructured.NestedString(object.Object, "spec", field); current != value {
			r.recordChange("spec."+field, value, "%s", reason)
		}
	}
	slices.SortFunc(r.Changes, func(a, b Change) int { return strings.Compare(a.Field, b.Field) })
	owned := slices.ContainsFunc(object.GetOwnerReferences(), func(ref ownerReference) bool { return ref.UID == shoot.UID })
	if shoot.UID != "" && !owned {
		controller := true
		r.recordChange(fmt.Sprintf("metadata.ownerReferences[%d]", len(object.GetOwnerReferences())), ownerReference{
			APIVersion: gardencorev1beta1.SchemeGroupVersion.String(), Kind: kindShoot.Kind, Name: shoot.Name, UID: shoot.UID,
			Controller: &controller, BlockOwnerDeletion: &controller,
		}, "the bastion goes with its Shoot")
	}
	return r.Result
}
