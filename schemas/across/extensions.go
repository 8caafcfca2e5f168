package across

import (
	"fmt"
	"slices"

	"github.com/pergola-dev/pergola/internal/suggest"
	"github.com/pergola-dev/pergola/schemas"
)

// wanted is an object field that requires an extension of a kind; lists require one per item.
type wanted struct{ path, kind string }

// wants returns the extensions that an object requires. Source:
// plugin/pkg/global/extensionvalidation, and for Gardens
// pkg/operator/controller/extension/required/runtime.
func wants(kind string) []wanted {
	switch kind {
	case "Garden":
		return []wanted{{"spec.dns.providers[].type", "DNSRecord"}, {"spec.virtualCluster.etcd.main.backup.provider", "BackupBucket"}}
	case "Seed":
		return []wanted{
			{"spec.backup.provider", "BackupBucket"}, {"spec.provider.type", "ControlPlane"},
			{"spec.dns.provider.type", "DNSRecord"}, {"spec.dns.internal.type", "DNSRecord"}, {"spec.dns.defaults[].type", "DNSRecord"},
			{"spec.extensions[].type", "Extension"},
		}
	case "Shoot":
		return []wanted{
			{"spec.provider.type", "ControlPlane"}, {"spec.provider.type", "Infrastructure"}, {"spec.provider.type", "Worker"},
			{"spec.networking.type", "Network"}, {"spec.dns.providers[].type", "DNSRecord"}, {"spec.extensions[].type", "Extension"},
			{"spec.provider.workers[].machine.image.name", "OperatingSystemConfig"},
			{"spec.provider.workers[].cri.containerRuntimes[].type", "ContainerRuntime"},
		}
	}
	return nil
}

// knownTypes are the types of published extensions (https://github.com/gardener,
// https://gardener.cloud/docs/extensions).
var knownTypes = []string{
	"alicloud", "alicloud-dns", "aws", "aws-route53", "azure", "azure-dns", "azure-private-dns", "calico", "cilium", "cloudflare-dns", "coreos", "equinixmetal",
	"flatcar", "gardenlinux", "gcp", "google-clouddns", "gvisor", "infoblox-dns", "ironcore", "memoryone-chost", "memoryone-gardenlinux", "metal", "netlify-dns", "openstack",
	"openstack-designate", "powerdns", "registry-cache", "registry-mirror", "rfc2136", "shoot-cert-service", "shoot-dns-service", "shoot-falco-service", "shoot-lakom-service",
	"shoot-networking-filter", "shoot-networking-problemdetector", "shoot-oidc-service", "shoot-rsyslog-relp", "stackit", "suse-chost", "ubuntu", "vsphere",
}

// typeLocal is the type of provider-local. Gardener's development setup registers it, so landscapes
// need not.
const typeLocal = "local"

// extensions checks that the landscape registers each required extension. If registrations exist
// elsewhere, it only reports likely typos. Without declared registrations, Seeds have external
// ones. Gardens use only Extensions, as ControllerRegistrations are for seeds.
func (c *check) extensions() {
	offers, registrations := c.registered(), "ControllerRegistration or Extension"
	elsewhere := len(offers) == 0 || c.hasExternal(kindRegistration.Kind) || c.hasExternal(kindOperatorExtension.Kind)
	if c.kind() == kindGarden.Kind {
		offers, registrations = offersOf(c.all(kindOperatorExtension)), "Extension"
		elsewhere = c.hasExternal(kindOperatorExtension.Kind)
	}
	workerless := len(list(c.object(), "spec", "provider", "workers")) == 0
	said := map[string]bool{}
	for _, w := range wants(c.kind()) {
		if c.kind() == kindShoot.Kind && workerless && w.kind != "Extension" && w.kind != "DNSRecord" {
			continue
		}
		each(c.object(), w.path, func(path string, value any) {
			typ, ok := value.(string)
			if !ok || typ == "" || typ == "unmanaged" || offers[offer{w.kind, typ}] || said[path] || (len(offers) == 0 && typ == typeLocal) {
				return
			}
			said[path] = true
			if elsewhere {
				if meant := suggest.ClosestWithin(typ, slices.Concat(knownTypes, typesOf(offers, w.kind), []string{typeLocal}), 2); len(typ) > 3 && meant != "" && !slices.Contains(knownTypes, typ) {
					c.report(path, schemas.TypeNotSupported, "no extension of type %q is known; did you mean %q?", typ, meant)
				}
				return
			}
			c.report(path, schemas.TypeNotSupported, "no %s of this landscape is for %s of type %q%s: declare one, or name it in landscape.yaml under spec.external if it is made elsewhere",
				registrations, w.kind, typ, offered(typesOf(offers, w.kind)))
		})
	}
}

// offered lists the registered types for a message; empty for none.
func offered(types []string) string {
	if len(types) == 0 {
		return ""
	}
	return ", but of " + enumerate(types)
}

func typesOf(offers map[offer]bool, kind string) []string {
	var out []string
	for o := range offers {
		if o.kind == kind {
			out = append(out, o.typ)
		}
	}
	slices.Sort(out)
	return out
}

// registered returns the extensions that all registrations of the landscape offer.
func (c *check) registered() map[offer]bool {
	registrations := slices.Concat(c.all(kindRegistration), c.all(kindOperatorExtension))
	if c.offers != nil {
		return c.offers
	}
	c.offers = offersOf(registrations)
	return c.offers
}

func offersOf(registrations []*schemas.Input) map[offer]bool {
	offers := map[offer]bool{}
	for _, in := range registrations {
		for _, item := range list(in.Content().Object, "spec", "resources") {
			if r, ok := item.(map[string]any); ok {
				offers[offer{fmt.Sprint(r["kind"]), fmt.Sprint(r["type"])}] = true
			}
		}
	}
	return offers
}
