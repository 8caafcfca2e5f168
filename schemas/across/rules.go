package across

import (
	"github.com/pergola-dev/pergola/schemas"
)

// rules are all of them, in the order in which they are checked.
func rules() []rule {
	def := func(kind, id, title, doc, source string, do func(*check)) rule {
		return rule{schemas.Rule{ID: id, Kind: kind, Title: title, Doc: doc, Source: source, In: "go", Scope: "landscape", Severity: schemas.SeverityError}, do}
	}
	warning := func(r rule) rule {
		r.Severity = schemas.SeverityWarning
		return r
	}
	const validator = "plugin/pkg/shoot/validator"
	const external = " What exists outside of the landscape is listed in landscape.yaml under spec.external."
	all := []rule{
		def("Shoot", "shoot/profile-exists", "The cloud profile of a Shoot exists", "Declare it, or correct the name."+external, "plugin/pkg/global/resourcereferencemanager", (*check).profileExists),
		def("Shoot", "shoot/seed-exists", "The Seed of a Shoot exists", "Declare it, correct the name, or leave it to the scheduler."+external, "plugin/pkg/global/resourcereferencemanager", (*check).seedExists),
		def("Shoot", "shoot/project-exists", "The namespace of a Shoot is that of a Project", "Declare a Project with this spec.namespace, or correct the namespace."+external, validator, (*check).projectExists),
		def("Shoot", "shoot/provider-offered", "A Shoot has the provider of its profile", "Take a profile of the provider.", validator, (*check).provider),
		def("Shoot", "shoot/region-offered", "The profile offers the region, its zones and access restrictions", "Use what the profile lists under spec.regions.", validator, (*check).region),
		def("Shoot", "shoot/versions-offered", "The profile offers the Kubernetes versions, and they have not expired", "Use a version of the profile. A version that stood there before may have expired: maintenance raises it.", validator, (*check).versions),
		def("Shoot", "shoot/machines-offered", "The profile offers the machine and volume types", "Use types of the profile that the zones of the pool have.", validator, (*check).machines),
		def("Shoot", "shoot/images-offered", "The profile offers the machine images, and they fit the pool", "Use an image version that has not expired, for the architecture, container runtime and kubelet of the pool.", validator, (*check).machineImages),
		def("Shoot", "shoot/nodes-limit", "Pools stay within the limit of the profile", "Lower minimum and maximum of the pools.", validator, (*check).nodes),
		def("Shoot", "shoot/seed-taints", "A Shoot tolerates the taints of its Seed", "Add the toleration, or take another Seed.", validator, (*check).taints),
		def("Shoot", "shoot/seed-zones", "The Seed has the zones that the control plane needs", "Take a Seed with the zones.", validator, (*check).zonesOfSeed),
		def("Shoot", "shoot/seed-access-restrictions", "The Seed keeps the access restrictions of its Shoots", "Take a Seed with the restriction.", validator, (*check).restrictionsOfSeed),
		def("Shoot", "shoot/seed-default-domain", "A name below a default domain is made of Shoot and project", "Leave spec.dns.domain out, or use a domain of your own.", "plugin/pkg/shoot/dns", (*check).defaultDomain),
		def("Shoot", "shoot/seed-networks", "The networks of a Shoot and its Seed are disjoint", "Choose other ranges for the Shoot: those of a Seed cannot change.", validator, (*check).shootNetworks),
		warning(def("Shoot", "shoot/runtime-networks", "The networks of a Shoot and the runtime cluster are disjoint", "Nothing routes between them unless somebody connects the networks. Choose other ranges to be safe.", "ours: no upstream component compares them", (*check).shootOfRuntime)),
		warning(def("Seed", "seed/runtime-networks", "The networks of a Seed and the runtime cluster are disjoint", "Nothing routes between them unless somebody connects the networks. Choose other ranges to be safe.", "ours: no upstream component compares them", (*check).seedOfRuntime)),
		def("Project", "project/namespace-unique", "A namespace belongs to one project", "Give each Project a namespace of its own.", "plugin/pkg/global/resourcereferencemanager", (*check).projectNamespace),
		def("Garden", "landscape/domains-unique", "Each domain is used once", "Choose another domain.", "ours: DNS records would overwrite each other", func(c *check) {
			c.domains("spec.virtualCluster.dns.domains[].name", "spec.runtimeCluster.ingress.domains[].name")
		}),
		def("Seed", "landscape/domains-unique", "Each domain is used once", "Choose another domain.", "ours: DNS records would overwrite each other", func(c *check) { c.domains("spec.ingress.domain") }),
		def("Shoot", "landscape/domains-unique", "Each domain is used once", "Choose another domain.", "ours: DNS records would overwrite each other", func(c *check) { c.domains("spec.dns.domain") }),
		def("ManagedSeed", "managedseed/shoot", "The Shoot of a ManagedSeed can become a Seed", "Change the Shoot.", "plugin/pkg/managedseed/validator", (*check).managedSeed),
		def("ManagedSeed", "landscape/gardenlet-unique", "A Seed has one gardenlet", "Declare the seed by a ManagedSeed or by a Gardenlet.", "plugin/pkg/global/resourcereferencemanager", (*check).seedName),
		def("Gardenlet", "landscape/gardenlet-unique", "A Seed has one gardenlet", "Declare the seed by a ManagedSeed or by a Gardenlet.", "plugin/pkg/global/resourcereferencemanager", (*check).seedName),
		def("ControllerRegistration", "controllerregistration/primary-unique", "One registration is responsible for a kind and type", "Set primary: false in all but one.", "plugin/pkg/controllerregistration/resources", (*check).primary),
		def("Extension", "controllerregistration/primary-unique", "One registration is responsible for a kind and type", "Set primary: false in all but one.", "plugin/pkg/controllerregistration/resources", (*check).primary),
		def("Seed", "seed/extensions-registered", "Extensions that a Seed needs are registered", "Declare a ControllerRegistration, or an Extension of operator.gardener.cloud.", "plugin/pkg/global/extensionvalidation", (*check).extensions),
		def("Shoot", "shoot/extensions-registered", "Extensions that a Shoot needs are registered", "Declare a ControllerRegistration, or an Extension of operator.gardener.cloud.", "plugin/pkg/global/extensionvalidation", (*check).extensions),
	}
	return append(all, referenceRules()...)
}
