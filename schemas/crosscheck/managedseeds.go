// SPDX-License-Identifier: Apache-2.0

package crosscheck

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/mutation"
)

// Paths of the gardenlet configuration in ManagedSeeds and ManagedSeedSets.
const (
	managedSeedConfigPath    = "spec.gardenlet.config"
	managedSeedSetConfigPath = "spec.template.spec.gardenlet.config"
)

// recordingLister gives mutations the landscape and records what they read.
type recordingLister struct{ *objectIndex }

// Get implements mutation.ObjectLister.
func (a recordingLister) Get(kind schema.GroupKind, namespace, name string) *unstructured.Unstructured {
	if in := a.findObject(identity{kind, namespace, name}); in != nil {
		return in.Content()
	}
	return nil
}

// List implements mutation.ObjectLister.
func (a recordingLister) List(kind schema.GroupKind) []*unstructured.Unstructured {
	var list []*unstructured.Unstructured
	for _, in := range a.allOfKind(kind) {
		list = append(list, in.Content())
	}
	return list
}

// seedShoot is a Shoot that becomes a Seed, with its position for messages.
type seedShoot struct {
	spec     gardencorev1beta1.ShootSpec
	position string
}

// shootOfManagedSeed returns the Shoot of a ManagedSeed with API defaults, or nil if it is
// undeclared or unreadable.
func (c *checker) shootOfManagedSeed() *seedShoot {
	in := c.findObject(identity{kindShoot, c.namespace(), textAt(c.object(), "spec", "shoot", "name")})
	shoot := &gardencorev1beta1.Shoot{}
	if in == nil || !toTyped(in.Content(), shoot) {
		return nil
	}
	mutation.New(recordingLister{c.objectIndex}, c.Now).MutateShoot(shoot, nil)
	return &seedShoot{shoot.Spec, objectPosition(in)}
}

// shootOfManagedSeedSet returns the Shoot template of a ManagedSeedSet with API defaults.
func (c *checker) shootOfManagedSeedSet() *seedShoot {
	template := mapAt(c.object(), "spec", "shootTemplate")
	shoot := &gardencorev1beta1.Shoot{}
	if template == nil || !toTyped(&unstructured.Unstructured{Object: map[string]any{"spec": template["spec"]}}, shoot) {
		return nil
	}
	gardencorev1beta1.SetDefaults_Shoot(shoot)
	return &seedShoot{shoot.Spec, "spec.shootTemplate"}
}

// checkManagedSeedShoot checks that the Shoot of a ManagedSeed can become a Seed. Source:
// plugin/pkg/managedseed/validator (Admit).
func (c *checker) checkManagedSeedShoot() {
	const field = "spec.shoot.name"
	if shoot := c.shootOfManagedSeed(); shoot != nil {
		c.checkSeedSuitability(shoot, field)
		c.claimUniqueValue("managed seed of a Shoot", c.namespace()+"/"+textAt(c.object(), "spec", "shoot", "name"), field, "the Shoot %q is already a Seed by %s", textAt(c.object(), "spec", "shoot", "name"))
	}
}

// checkShootNotHibernated checks that a ManagedSeed's Shoot is never hibernated, as the Seed uses
// its nodes.
func (c *checker) checkShootNotHibernated() {
	in := c.findObject(identity{kindShoot, c.namespace(), textAt(c.object(), "spec", "shoot", "name")})
	if in == nil {
		return
	}
	if valueAt(in.Content().Object, "spec", "hibernation", "enabled") == true || len(listAt(in.Content().Object, "spec", "hibernation", "schedules")) > 0 {
		c.report("spec.shoot.name", schemas.TypeInvalid, "%s is or will be hibernated (spec.hibernation), which stops everything that the Seed runs; remove spec.hibernation there", objectPosition(in))
	}
}

// checkManagedSeedSetShoot checks that the Shoots of a ManagedSeedSet can become Seeds. Another
// rule requires workers.
func (c *checker) checkManagedSeedSetShoot() {
	if shoot := c.shootOfManagedSeedSet(); shoot != nil && len(shoot.spec.Provider.Workers) > 0 {
		c.checkSeedSuitability(shoot, "spec.shootTemplate.spec")
	}
}

func (c *checker) checkSeedSuitability(shoot *seedShoot, field string) {
	if addons := shoot.spec.Addons; addons != nil && addons.NginxIngress != nil && addons.NginxIngress.Enabled {
		c.report(field, schemas.TypeInvalid, "%s has spec.addons.nginxIngress enabled: gardenlet brings its own", shoot.position)
	}
	if len(shoot.spec.Provider.Workers) == 0 {
		c.report(field, schemas.TypeInvalid, "%s has no workers (spec.provider.workers), and a Seed needs nodes", shoot.position)
		return // without nodes there is no autoscaler
	}
	// The API enables the autoscaler by default: plugin/pkg/shoot/vpa.
	if autoscaler := shoot.spec.Kubernetes.VerticalPodAutoscaler; autoscaler != nil && !autoscaler.Enabled {
		c.report(field, schemas.TypeInvalid, "%s must have spec.kubernetes.verticalPodAutoscaler.enabled: true", shoot.position)
	}
}

// checkSeedConfigured checks that a ManagedSeed configures its Seed. Source:
// pkg/api/seedmanagement/helper (ExtractSeedSpec).
func (c *checker) checkSeedConfigured() {
	config := mapAt(c.object(), strings.Split(managedSeedConfigPath, ".")...)
	switch {
	case config == nil:
		c.report(managedSeedConfigPath, schemas.TypeRequired, "must be a GardenletConfiguration of gardenlet.config.gardener.cloud/v1alpha1 with a seedConfig, from which the Seed is made")
	case config["seedConfig"] == nil:
		c.report(managedSeedConfigPath+".seedConfig", schemas.TypeRequired, "must be set, as in seedConfig: {spec: {…}}: the Seed is made from it")
	}
}

// checkDeclaredSeedEqual checks that a gardenlet configuration and a declared Seed of the same name
// agree, because both are written to the Seed. Fields that only one of them sets may differ.
func checkDeclaredSeedEqual(spec string) func(*checker) {
	return func(c *checker) {
		declared := c.findObject(identity{kind: kindSeed, name: c.name()})
		if declared == nil {
			return
		}
		var compare func(field string, own, other map[string]any)
		compare = func(field string, own, other map[string]any) {
			for _, name := range slices.Sorted(maps.Keys(own)) {
				value, has := other[name]
				if !has || reflect.DeepEqual(own[name], value) {
					continue
				}
				below := field + "." + name
				ownTable, isTable := own[name].(map[string]any)
				if otherTable, both := value.(map[string]any); isTable && both {
					compare(below, ownTable, otherTable)
					continue
				}
				c.report(spec+strings.TrimPrefix(below, "spec"), schemas.TypeInvalid, "the value differs from %s, so the gardenlet and the declaration overwrite each other; declare the same value, or remove one of them", fieldPosition(declared, below))
			}
		}
		compare("spec", mapAt(c.object(), strings.Split(spec, ".")...), mapAt(declared.Content().Object, "spec"))
	}
}

// checkSeedMatchesShoot checks that the Seed configuration matches its Shoot. Source:
// plugin/pkg/managedseed/validator (admitSeedSpec).
func checkSeedMatchesShoot(config string, hostOf func(*checker) *seedShoot) func(*checker) {
	return func(c *checker) {
		at := config + ".seedConfig.spec"
		seed, shoot := mapAt(c.object(), strings.Split(at, ".")...), hostOf(c)
		if seed == nil || shoot == nil {
			return
		}
		same := func(field, ofShoot string, want *string) {
			path := strings.Split(field, ".")
			if own := textAt(seed, path...); own != "" && want != nil && *want != "" && own != *want {
				c.report(at+"."+field, schemas.TypeInvalid, "%q must be %q, %s of %s; leave it out to take it from there", own, *want, ofShoot, shoot.position)
			}
		}
		same("provider.type", "spec.provider.type", &shoot.spec.Provider.Type)
		same("provider.region", "spec.region", &shoot.spec.Region)
		if n := shoot.spec.Networking; n != nil {
			same("networks.nodes", "spec.networking.nodes", n.Nodes)
			same("networks.pods", "spec.networking.pods", n.Pods)
			same("networks.services", "spec.networking.services", n.Services)
		}
		if dns := shoot.spec.DNS; dns != nil && dns.Domain != nil && *dns.Domain != "" {
			domain := "ingress." + *dns.Domain
			same("ingress.domain", "\"ingress.\" and spec.dns.domain", &domain)
		}
		if autoscaler := mapAt(seed, "settings", "verticalPodAutoscaler"); autoscaler != nil && autoscaler["enabled"] != false {
			c.report(at+".settings.verticalPodAutoscaler.enabled", schemas.TypeInvalid, "must be false: the autoscaler of the Shoot serves the Seed, too")
		}
		c.checkTopologyRouting(at, seed, shoot)
		c.checkSeedZones(at, seed, shoot)
	}
}

// checkTopologyRouting checks that the Shoot does not disable the feature gate for topology-aware
// routing, as old Kubernetes versions permit.
func (c *checker) checkTopologyRouting(at string, seed map[string]any, shoot *seedShoot) {
	const gate = "TopologyAwareHints"
	if routing := mapAt(seed, "settings", "topologyAwareRouting"); routing == nil || routing["enabled"] != true {
		return
	}
	gates := map[string]map[string]bool{}
	if server := shoot.spec.Kubernetes.KubeAPIServer; server != nil {
		gates["kubeAPIServer"] = server.FeatureGates
	}
	if manager := shoot.spec.Kubernetes.KubeControllerManager; manager != nil {
		gates["kubeControllerManager"] = manager.FeatureGates
	}
	if proxy := shoot.spec.Kubernetes.KubeProxy; proxy != nil {
		gates["kubeProxy"] = proxy.FeatureGates
	}
	for _, component := range []string{"kubeAPIServer", "kubeControllerManager", "kubeProxy"} {
		if on, set := gates[component][gate]; set && !on {
			c.report(at+".settings.topologyAwareRouting.enabled", schemas.TypeInvalid, "needs the feature gate %s, which %s has off (spec.kubernetes.%s.featureGates)", gate, shoot.position, component)
		}
	}
}

// checkSeedZones checks that the Seed's zones are zones of the worker pools. Previous zones may
// differ, as upstream once allowed that.
func (c *checker) checkSeedZones(at string, seed map[string]any, shoot *seedShoot) {
	var offered []string
	for _, worker := range shoot.spec.Provider.Workers {
		offered = append(offered, worker.Zones...)
	}
	slices.Sort(offered)
	offered = slices.Compact(offered)
	var before []string
	if c.input.HasOld() {
		before = stringItems(listAt(mapAt(c.oldObject(), strings.Split(at, ".")...), "provider", "zones"))
	}
	foreign := slices.DeleteFunc(stringItems(listAt(seed, "provider", "zones")), func(zone string) bool {
		return slices.Contains(offered, zone) || slices.Contains(before, zone)
	})
	if len(foreign) > 0 {
		c.report(at+".provider.zones", schemas.TypeInvalid, "the workers of %s are not in %s, but in %s", shoot.position, strings.Join(foreign, ", "), cmp.Or(strings.Join(offered, ", "), "no zone"))
	}
}
