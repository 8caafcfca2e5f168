package across

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/internal/suggest"
	"github.com/pergola-dev/pergola/schemas"
)

// seedOf returns the Seed of a Shoot; nil if the Shoot has none or the landscape does not declare
// it.
func (c *check) seedOf() map[string]any {
	in := c.find(identity{kind: kindSeed, name: text(c.object(), "spec", "seedName")})
	if in == nil {
		return nil
	}
	return in.Content().Object
}

// staysOnSeed reports whether a Shoot stays on its Seed, whose new requirements then do not apply.
func (c *check) staysOnSeed() bool {
	return c.in.HasOld() && text(c.oldObject(), "spec", "seedName") == text(c.object(), "spec", "seedName")
}

// project returns the Project of the current namespace; nil if none exists.
func (c *check) project() map[string]any {
	if in := c.projectOf(c.namespace()); in != nil {
		return in.Content().Object
	}
	return nil
}

func (c *check) profileExists() {
	id, field := profileField(c.object(), c.namespace())
	if id.name != "" && !c.has(id) && !c.isExternal(id) {
		c.report(field, schemas.TypeInvalid, "no %s %q in this landscape%s", id.kind.Kind, id.name, c.suggest(id))
	}
}

func (c *check) seedExists() {
	id := identity{kind: kindSeed, name: text(c.object(), "spec", "seedName")}
	if id.name != "" && !c.has(id) && !c.isExternal(id) {
		c.report("spec.seedName", schemas.TypeInvalid, "no Seed %q in this landscape%s", id.name, c.suggest(id))
	}
}

func (c *check) projectExists() {
	namespace := c.namespace()
	if namespace == "" || c.project() != nil || c.isExternal(identity{kind: kindNamespace, name: namespace}) {
		return
	}
	var known []string
	for namespace := range c.projects {
		known = append(known, namespace)
	}
	hint := ""
	if guess := suggest.Closest(namespace, known); guess != "" {
		hint = fmt.Sprintf("; did you mean %q?", guess)
	}
	c.report("metadata.namespace", schemas.TypeInvalid, "no Project in this landscape has spec.namespace %q%s", namespace, hint)
}

// nameLength checks the name length, which the names of machines limit.
func (c *check) nameLength() {
	const most = 21
	project := c.project()
	if project == nil || c.namespace() == gardencorev1beta1.GardenNamespace {
		return
	}
	own, name := c.name(), text(project, "metadata", "name")
	if len(name)+len(own) > most {
		c.report("metadata.name", schemas.TypeInvalid, "%q has %d characters; together with the project %q at most %d are possible, which leaves %d", own, len(own), name, most, most-len(name))
	}
}

// taints checks that a Shoot tolerates all taints of its Seed. Source: plugin/pkg/shoot/validator;
// plugin/pkg/shoot/tolerationrestriction and plugin/pkg/shoot/exposureclass add tolerations.
func (c *check) taints() {
	seed := c.seedOf()
	if seed == nil || c.staysOnSeed() {
		return
	}
	for _, item := range list(seed, "spec", "taints") {
		if taint, ok := item.(map[string]any); ok && !c.tolerates(c.object(), taint) {
			c.reportNew("spec.seedName", schemas.TypeForbidden, "the Seed %q has the taint %s, which the Shoot does not tolerate (spec.tolerations)", text(c.object(), "spec", "seedName"), describeTaint(taint))
		}
	}
}

// tolerates reports whether a Shoot, its Project or its ExposureClass tolerates a taint.
func (c *check) tolerates(shoot, taint map[string]any) bool {
	namespace := text(shoot, "metadata", "namespace")
	if text(taint, "key") == gardencorev1beta1.SeedTaintProtected && namespace == gardencorev1beta1.GardenNamespace {
		return true
	}
	tolerations := list(shoot, "spec", "tolerations")
	if project := c.projectOf(namespace); project != nil {
		tolerations = slices.Concat(tolerations, list(project.Content().Object, "spec", "tolerations", "defaults"))
	}
	if class := c.find(identity{kind: kindExposureClass, name: text(shoot, "spec", "exposureClassName")}); class != nil {
		tolerations = slices.Concat(tolerations, list(class.Content().Object, "scheduling", "tolerations"))
	}
	return slices.ContainsFunc(tolerations, func(item any) bool {
		t, ok := item.(map[string]any)
		return ok && text(t, "key") == text(taint, "key") && (at(taint, "value") == nil || text(t, "value") == text(taint, "value"))
	})
}

// tolerationsAllowed checks that the Project or the configuration of the plugin
// ShootTolerationRestriction lists the tolerations.
func (c *check) tolerationsAllowed() {
	project, gardens := c.project(), c.all(kindGarden)
	if project == nil || len(gardens) == 0 {
		return // the plugin may have its own list
	}
	allowed := list(project, "spec", "tolerations", "whitelist")
	for _, in := range gardens {
		for _, item := range list(in.Content().Object, "spec", "virtualCluster", "gardener", "gardenerAPIServer", "admissionPlugins") {
			plugin, _ := item.(map[string]any)
			switch {
			case text(plugin, "name") != "ShootTolerationRestriction":
			case at(plugin, "disabled") == true:
				return
			default:
				allowed = slices.Concat(allowed, list(plugin, "config", "whitelist"))
			}
		}
	}
	for i, item := range list(c.object(), "spec", "tolerations") {
		toleration, _ := item.(map[string]any)
		if text(toleration, "key") == "" || slices.ContainsFunc(allowed, func(item any) bool {
			entry, ok := item.(map[string]any)
			return ok && text(entry, "key") == text(toleration, "key") && (at(entry, "value") == nil || text(entry, "value") == text(toleration, "value"))
		}) {
			continue
		}
		c.reportNew(fmt.Sprintf("spec.tolerations[%d]", i), schemas.TypeForbidden,
			"%s is not in spec.tolerations.whitelist of the Project %q: the API refuses a Shoot that asks for it", describeTaint(toleration), text(project, "metadata", "name"))
	}
}

func describeTaint(taint map[string]any) string {
	if value := text(taint, "value"); value != "" {
		return text(taint, "key") + "=" + value
	}
	return text(taint, "key")
}

// seedSelector checks that the cloud profile of a Shoot allows its Seed.
func (c *check) seedSelector() {
	seed, p := c.seedOf(), c.profileOf()
	if seed == nil || p == nil || p.spec.SeedSelector == nil || c.staysOnSeed() {
		return
	}
	name, field := text(c.object(), "spec", "seedName"), "spec.seedName"
	selector, err := metav1.LabelSelectorAsSelector(&p.spec.SeedSelector.LabelSelector)
	if err != nil {
		return // the rules about cloud profiles report it
	}
	own := labels.Set{}
	for key, value := range table(seed, "metadata", "labels") {
		own[key], _ = value.(string)
	}
	if !selector.Matches(own) {
		c.reportNew(field, schemas.TypeForbidden, "the Seed %q does not have the labels that %s asks for: %s", name, p.place, selector)
	}
	provider, allowed := text(seed, "spec", "provider", "type"), p.spec.SeedSelector.ProviderTypes
	if len(allowed) > 0 && !slices.Contains(allowed, provider) && !slices.Contains(allowed, "*") {
		c.reportNew(field, schemas.TypeForbidden, "the Seed %q is of provider %q, and %s allows %s", name, provider, p.place, enumerate(allowed))
	}
}

// zonesOfSeed checks that the Seed has the zones of the control plane, and three for failure
// tolerance zone.
func (c *check) zonesOfSeed() {
	seed := c.seedOf()
	if seed == nil {
		return
	}
	name, zones := text(c.object(), "spec", "seedName"), texts(list(seed, "spec", "provider", "zones"))
	const failure = "spec.controlPlane.highAvailability.failureTolerance.type"
	if text(c.object(), strings.Split(failure, ".")...) == "zone" && len(zones) < 3 {
		c.report(failure, schemas.TypeForbidden, "the Seed %q has %d zones; to tolerate the failure of a zone takes 3", name, len(zones))
	}
	each(c.object(), "spec.controlPlane.zones[]", func(path string, value any) {
		if zone, ok := value.(string); ok && !slices.Contains(zones, zone) {
			c.report(path, schemas.TypeNotSupported, "the Seed %q has no zone %q; it has %s", name, zone, enumerate(zones))
		}
	})
}

// restrictionsOfSeed checks that the Seed supports the access restrictions of the Shoot.
func (c *check) restrictionsOfSeed() {
	seed := c.seedOf()
	if seed == nil {
		return
	}
	var offered []string
	each(seed, "spec.accessRestrictions[].name", func(_ string, value any) { offered = append(offered, fmt.Sprint(value)) })
	each(c.object(), "spec.accessRestrictions[].name", func(path string, value any) {
		if name, ok := value.(string); ok && !slices.Contains(offered, name) {
			c.report(path, schemas.TypeForbidden, "the Seed %q does not keep the access restriction %q; it has %s", text(c.object(), "spec", "seedName"), name, enumerate(offered))
		}
	})
}

// defaultDomain checks that names below a default domain have the form SHOOT.PROJECT.DOMAIN.
// Source: plugin/pkg/shoot/dns.
func (c *check) defaultDomain() {
	seed, project, domain := c.seedOf(), c.project(), text(c.object(), "spec", "dns", "domain")
	if seed == nil || project == nil || domain == "" {
		return
	}
	each(seed, "spec.dns.defaults[].domain", func(_ string, value any) {
		base, ok := value.(string)
		if !ok || !strings.HasSuffix(domain, "."+base) {
			return
		}
		want := text(project, "metadata", "name") + "." + base
		fits := strings.HasSuffix(domain, "."+want) // a generated name is unknown
		if name := c.name(); name != "" {
			want = name + "." + want
			fits = domain == want
		}
		if !fits {
			c.report("spec.dns.domain", schemas.TypeInvalid, "%q is below the default domain %q of the Seed, where the name has to be %q; leave it out to get that, or use a domain of your own with a provider", domain, base, want)
		}
	})
}

// domainServed checks that a DNS provider of the Shoot or a default domain of the Seed serves its
// domain. Source: pkg/utils/gardener (ConstructExternalDomain).
func (c *check) domainServed() {
	seed, domain := c.seedOf(), text(c.object(), "spec", "dns", "domain")
	if seed == nil || domain == "" || len(list(c.object(), "spec", "dns", "providers")) > 0 {
		return
	}
	var defaults []string
	each(seed, "spec.dns.defaults[].domain", func(_ string, value any) { defaults = append(defaults, fmt.Sprint(value)) })
	if len(defaults) == 0 || slices.ContainsFunc(defaults, func(base string) bool { return strings.HasSuffix(domain, "."+base) }) {
		return
	}
	c.report("spec.dns.domain", schemas.TypeInvalid, "nobody makes the records of %q: it is below no default domain of the Seed (%s), and the Shoot names no provider; add one to spec.dns.providers, or leave the domain out", domain, enumerate(defaults))
}
