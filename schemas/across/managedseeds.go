package across

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
	configOfManagedSeed    = "spec.gardenlet.config"
	configOfManagedSeedSet = "spec.template.spec.gardenlet.config"
)

// askedAround gives mutations the landscape and records what they read.
type askedAround struct{ *index }

// Get implements mutation.Around.
func (a askedAround) Get(kind schema.GroupKind, namespace, name string) *unstructured.Unstructured {
	if in := a.find(identity{kind, namespace, name}); in != nil {
		return in.Content()
	}
	return nil
}

// List implements mutation.Around.
func (a askedAround) List(kind schema.GroupKind) []*unstructured.Unstructured {
	var list []*unstructured.Unstructured
	for _, in := range a.all(kind) {
		list = append(list, in.Content())
	}
	return list
}

// host is a Shoot that becomes a Seed, with its position for messages.
type host struct {
	spec  gardencorev1beta1.ShootSpec
	place string
}

// hostOfManagedSeed returns the Shoot of a ManagedSeed with API defaults; nil if it is undeclared
// or unreadable.
func (c *check) hostOfManagedSeed() *host {
	in := c.find(identity{kindShoot, c.namespace(), text(c.object(), "spec", "shoot", "name")})
	shoot := &gardencorev1beta1.Shoot{}
	if in == nil || !typed(in.Content(), shoot) {
		return nil
	}
	mutation.New(askedAround{c.index}, c.Now).Shoot(shoot, nil)
	return &host{shoot.Spec, place(in)}
}

// hostOfManagedSeedSet returns the Shoot template of a ManagedSeedSet with API defaults.
func (c *check) hostOfManagedSeedSet() *host {
	template := table(c.object(), "spec", "shootTemplate")
	shoot := &gardencorev1beta1.Shoot{}
	if template == nil || !typed(&unstructured.Unstructured{Object: map[string]any{"spec": template["spec"]}}, shoot) {
		return nil
	}
	gardencorev1beta1.SetDefaults_Shoot(shoot)
	return &host{shoot.Spec, "spec.shootTemplate"}
}

// managedSeed checks that the Shoot of a ManagedSeed can become a Seed. Source:
// plugin/pkg/managedseed/validator (Admit).
func (c *check) managedSeed() {
	const field = "spec.shoot.name"
	if shoot := c.hostOfManagedSeed(); shoot != nil {
		c.canBeSeed(shoot, field)
		c.once("managed seed of a Shoot", c.namespace()+"/"+text(c.object(), "spec", "shoot", "name"), field, "the Shoot %q is a Seed already by %s", text(c.object(), "spec", "shoot", "name"))
	}
}

// hostAwake checks that a ManagedSeed's Shoot is never hibernated, as the Seed uses its nodes.
func (c *check) hostAwake() {
	in := c.find(identity{kindShoot, c.namespace(), text(c.object(), "spec", "shoot", "name")})
	if in == nil {
		return
	}
	if at(in.Content().Object, "spec", "hibernation", "enabled") == true || len(list(in.Content().Object, "spec", "hibernation", "schedules")) > 0 {
		c.report("spec.shoot.name", schemas.TypeInvalid, "%s is hibernated, or will be by a schedule (spec.hibernation), and with its nodes goes all that the Seed runs; remove spec.hibernation there", place(in))
	}
}

// managedSeedSet checks that the Shoots of a ManagedSeedSet can become Seeds. Another rule requires
// workers.
func (c *check) managedSeedSet() {
	if shoot := c.hostOfManagedSeedSet(); shoot != nil && len(shoot.spec.Provider.Workers) > 0 {
		c.canBeSeed(shoot, "spec.shootTemplate.spec")
	}
}

func (c *check) canBeSeed(shoot *host, field string) {
	if addons := shoot.spec.Addons; addons != nil && addons.NginxIngress != nil && addons.NginxIngress.Enabled {
		c.report(field, schemas.TypeInvalid, "%s has spec.addons.nginxIngress enabled: gardenlet brings its own", shoot.place)
	}
	if len(shoot.spec.Provider.Workers) == 0 {
		c.report(field, schemas.TypeInvalid, "%s has no workers (spec.provider.workers), and a Seed needs nodes", shoot.place)
		return // without nodes there is no autoscaler
	}
	// The API enables the autoscaler by default: plugin/pkg/shoot/vpa.
	if autoscaler := shoot.spec.Kubernetes.VerticalPodAutoscaler; autoscaler != nil && !autoscaler.Enabled {
		c.report(field, schemas.TypeInvalid, "%s must have spec.kubernetes.verticalPodAutoscaler.enabled: true", shoot.place)
	}
}

// seedConfigured checks that a ManagedSeed configures its Seed. Source:
// pkg/api/seedmanagement/helper (ExtractSeedSpec).
func (c *check) seedConfigured() {
	config := table(c.object(), strings.Split(configOfManagedSeed, ".")...)
	switch {
	case config == nil:
		c.report(configOfManagedSeed, schemas.TypeRequired, "must be a GardenletConfiguration of gardenlet.config.gardener.cloud/v1alpha1 with a seedConfig, from which the Seed is made")
	case config["seedConfig"] == nil:
		c.report(configOfManagedSeed+".seedConfig", schemas.TypeRequired, "must be set, as in seedConfig: {spec: {…}}: the Seed is made from it")
	}
}

// seedAsDeclared checks that a gardenlet configuration and a declared Seed of the same name agree,
// as both are written to the Seed. Fields that only one of them sets may differ.
func seedAsDeclared(spec string) func(*check) {
	return func(c *check) {
		declared := c.find(identity{kind: kindSeed, name: c.name()})
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
				c.report(spec+strings.TrimPrefix(below, "spec"), schemas.TypeInvalid, "it is another value than in %s: its gardenlet writes this one, and whoever applies that declaration the other one, in turns; declare the same, or remove one of them", placeOf(declared, below))
			}
		}
		compare("spec", table(c.object(), strings.Split(spec, ".")...), table(declared.Content().Object, "spec"))
	}
}

// seedOfHost checks that the Seed configuration matches its Shoot. Source:
// plugin/pkg/managedseed/validator (admitSeedSpec).
func seedOfHost(config string, hostOf func(*check) *host) func(*check) {
	return func(c *check) {
		at := config + ".seedConfig.spec"
		seed, shoot := table(c.object(), strings.Split(at, ".")...), hostOf(c)
		if seed == nil || shoot == nil {
			return
		}
		same := func(field, ofShoot string, want *string) {
			path := strings.Split(field, ".")
			if own := text(seed, path...); own != "" && want != nil && *want != "" && own != *want {
				c.report(at+"."+field, schemas.TypeInvalid, "%q must be %q, %s of %s; leave it out to take it from there", own, *want, ofShoot, shoot.place)
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
		if autoscaler := table(seed, "settings", "verticalPodAutoscaler"); autoscaler != nil && autoscaler["enabled"] != false {
			c.report(at+".settings.verticalPodAutoscaler.enabled", schemas.TypeInvalid, "must be false: the autoscaler of the Shoot serves the Seed, too")
		}
		c.routedByTopology(at, seed, shoot)
		c.zonesOfHost(at, seed, shoot)
	}
}

// routedByTopology checks that the Shoot does not disable the feature gate for topology-aware
// routing, as old Kubernetes versions permit.
func (c *check) routedByTopology(at string, seed map[string]any, shoot *host) {
	const gate = "TopologyAwareHints"
	if routing := table(seed, "settings", "topologyAwareRouting"); routing == nil || routing["enabled"] != true {
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
			c.report(at+".settings.topologyAwareRouting.enabled", schemas.TypeInvalid, "needs the feature gate %s, which %s has off (spec.kubernetes.%s.featureGates)", gate, shoot.place, component)
		}
	}
}

// zonesOfHost checks that the Seed's zones are zones of the worker pools. Previous zones may
// differ, as upstream once allowed that.
func (c *check) zonesOfHost(at string, seed map[string]any, shoot *host) {
	var offered []string
	for _, worker := range shoot.spec.Provider.Workers {
		offered = append(offered, worker.Zones...)
	}
	slices.Sort(offered)
	offered = slices.Compact(offered)
	var before []string
	if c.in.HasOld() {
		before = texts(list(table(c.oldObject(), strings.Split(at, ".")...), "provider", "zones"))
	}
	foreign := slices.DeleteFunc(texts(list(seed, "provider", "zones")), func(zone string) bool {
		return slices.Contains(offered, zone) || slices.Contains(before, zone)
	})
	if len(foreign) > 0 {
		c.report(at+".provider.zones", schemas.TypeInvalid, "the workers of %s are not in %s, but in %s", shoot.place, strings.Join(foreign, ", "), cmp.Or(strings.Join(offered, ", "), "no zone"))
	}
}
