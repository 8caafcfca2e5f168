// SPDX-License-Identifier: Apache-2.0

package crosscheck

import (
	"fmt"
	"slices"

	"github.com/pergola-dev/pergola/internal/suggest"
	"github.com/pergola-dev/pergola/schemas"
)

// requiredExtension is an object field that requires an extension of a kind; lists require one per
// item.
type requiredExtension struct{ path, kind string }

// requiredExtensions returns the extensions that an object requires. Source:
// plugin/pkg/global/extensionvalidation, and for Gardens
// pkg/operator/controller/extension/required/runtime.
func requiredExtensions(kind string) []requiredExtension {
	switch kind {
	case "Garden":
		return []requiredExtension{{"spec.dns.providers[].type", "DNSRecord"}, {"spec.virtualCluster.etcd.main.backup.provider", "BackupBucket"}}
	case "Seed":
		return []requiredExtension{
			{"spec.backup.provider", "BackupBucket"}, {"spec.provider.type", "ControlPlane"},
			{"spec.dns.provider.type", "DNSRecord"}, {"spec.dns.internal.type", "DNSRecord"}, {"spec.dns.defaults[].type", "DNSRecord"},
			{"spec.extensions[].type", "Extension"},
		}
	case "Shoot":
		return []requiredExtension{
			{"spec.provider.type", "ControlPlane"}, {"spec.provider.type", "Infrastructure"}, {"spec.provider.type", "Worker"},
			{"spec.networking.type", "Network"}, {"spec.dns.providers[].type", "DNSRecord"}, {"spec.extensions[].type", "Extension"},
			{"spec.provider.workers[].machine.image.name", "OperatingSystemConfig"},
			{"spec.provider.workers[].cri.containerRuntimes[].type", "ContainerRuntime"},
		}
	}
	return nil
}

// knownExtensionTypes are the types of published extensions (https://github.com/gardener,
// https://gardener.cloud/docs/extensions).
var knownExtensionTypes = []string{
	"alicloud", "alicloud-dns", "aws", "aws-route53", "azure", "azure-dns", "azure-private-dns", "calico", "cilium", "cloudflare-dns", "coreos", "equinixmetal",
	"flatcar", "gardenlinux", "gcp", "google-clouddns", "gvisor", "infoblox-dns", "ironcore", "memoryone-chost", "memoryone-gardenlinux", "metal", "netlify-dns", "openstack",
	"openstack-designate", "powerdns", "registry-cache", "registry-mirror", "rfc2136", "shoot-cert-service", "shoot-dns-service", "shoot-falco-service", "shoot-lakom-service",
	"shoot-networking-filter", "shoot-networking-problemdetector", "shoot-oidc-service", "shoot-rsyslog-relp", "stackit", "suse-chost", "ubuntu", "vsphere",
}

// localExtensionType is the type of provider-local. Gardener's development setup registers it, so
// landscapes need not.
const localExtensionType = "local"

// checkExtensions checks that the landscape registers each required extension. If registrations
// exist elsewhere, it only reports likely typos. Without declared registrations, Seeds have
// external ones. Gardens use only Extensions, because ControllerRegistrations are for seeds.
func (c *checker) checkExtensions() {
	offers, registrations := c.registeredExtensions(), "ControllerRegistration or Extension"
	elsewhere := len(offers) == 0 || c.hasExternal(kindRegistration.Kind) || c.hasExternal(kindOperatorExtension.Kind)
	if c.kind() == kindGarden.Kind {
		offers, registrations = readExtensionOffers(c.allOfKind(kindOperatorExtension)), "Extension"
		elsewhere = c.hasExternal(kindOperatorExtension.Kind)
	}
	workerless := len(listAt(c.object(), "spec", "provider", "workers")) == 0
	said := map[string]bool{}
	for _, w := range requiredExtensions(c.kind()) {
		if c.kind() == kindShoot.Kind && workerless && w.kind != "Extension" && w.kind != "DNSRecord" {
			continue
		}
		visitValues(c.object(), w.path, func(path string, value any) {
			typ, ok := value.(string)
			if !ok || typ == "" || typ == "unmanaged" || offers[extensionOffer{w.kind, typ}] || said[path] || (len(offers) == 0 && typ == localExtensionType) {
				return
			}
			said[path] = true
			if elsewhere {
				if meant := suggest.ClosestWithin(typ, slices.Concat(knownExtensionTypes, offeredTypes(offers, w.kind), []string{localExtensionType}), 2); len(typ) > 3 && meant != "" && !slices.Contains(knownExtensionTypes, typ) {
					c.report(path, schemas.TypeNotSupported, "no extension of type %q is known; did you mean %q?", typ, meant)
				}
				return
			}
			c.report(path, schemas.TypeNotSupported, "no %s of this landscape is for %s of type %q%s; declare one, or list it under spec.external in landscape.yaml if it is made elsewhere",
				registrations, w.kind, typ, offeredTypesHint(offeredTypes(offers, w.kind)))
		})
	}
}

// offeredTypesHint lists the registered types for a message; it is empty for none.
func offeredTypesHint(types []string) string {
	if len(types) == 0 {
		return ""
	}
	return ", but only for " + joinQuoted(types)
}

func offeredTypes(offers map[extensionOffer]bool, kind string) []string {
	var out []string
	for o := range offers {
		if o.kind == kind {
			out = append(out, o.extensionType)
		}
	}
	slices.Sort(out)
	return out
}

// registeredExtensions returns the extensions that all registrations of the landscape offer.
func (c *checker) registeredExtensions() map[extensionOffer]bool {
	registrations := slices.Concat(c.allOfKind(kindRegistration), c.allOfKind(kindOperatorExtension))
	if c.extensionOffers != nil {
		return c.extensionOffers
	}
	c.extensionOffers = readExtensionOffers(registrations)
	return c.extensionOffers
}

func readExtensionOffers(registrations []*schemas.Input) map[extensionOffer]bool {
	offers := map[extensionOffer]bool{}
	for _, in := range registrations {
		for _, item := range listAt(in.Content().Object, "spec", "resources") {
			if r, ok := item.(map[string]any); ok {
				offers[extensionOffer{fmt.Sprint(r["kind"]), fmt.Sprint(r["type"])}] = true
			}
		}
	}
	return offers
}
