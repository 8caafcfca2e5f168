// SPDX-License-Identifier: Apache-2.0

package crosscheck

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

// findSeed returns the Seed of a Shoot, or nil if the Shoot has none or the landscape does not
// declare it.
func (c *checker) findSeed() map[string]any {
	in := c.findObject(identity{kind: kindSeed, name: textAt(c.object(), "spec", "seedName")})
	if in == nil {
		return nil
	}
	return in.Content().Object
}

// isOnSameSeed reports whether a Shoot stays on its Seed, whose new requirements then do not apply.
func (c *checker) isOnSameSeed() bool {
	return c.input.HasOld() && textAt(c.oldObject(), "spec", "seedName") == textAt(c.object(), "spec", "seedName")
}

// projectOfNamespace returns the Project of the current namespace, or nil if none exists.
func (c *checker) projectOfNamespace() map[string]any {
	if in := c.findProject(c.namespace()); in != nil {
		return in.Content().Object
	}
	return nil
}

func (c *checker) checkProfileExists() {
	id, field := profileReference(c.object(), c.namespace())
	if id.name != "" && !c.hasObject(id) && !c.isExternal(id) {
		c.report(field, schemas.TypeInvalid, "no %s %q in this landscape%s", id.kind.Kind, id.name, c.suggestName(id))
	}
}

func (c *checker) checkSeedExists() {
	id := identity{kind: kindSeed, name: textAt(c.object(), "spec", "seedName")}
	if id.name != "" && !c.hasObject(id) && !c.isExternal(id) {
		c.report("spec.seedName", schemas.TypeInvalid, "no Seed %q in this landscape%s", id.name, c.suggestName(id))
	}
}

func (c *checker) checkProjectExists() {
	namespace := c.namespace()
	if namespace == "" || c.projectOfNamespace() != nil || c.isExternal(identity{kind: kindNamespace, name: namespace}) {
		return
	}
	var known []string
	for namespace := range c.projectsByNamespace {
		known = append(known, namespace)
	}
	hint := ""
	if guess := suggest.Closest(namespace, known); guess != "" {
		hint = fmt.Sprintf("; did you mean %q?", guess)
	}
	c.report("metadata.namespace", schemas.TypeInvalid, "no Project in this landscape has spec.namespace %q%s", namespace, hint)
}

// checkNameLength checks the name length, which the names of machines limit.
func (c *checker) checkNameLength() {
	const most = 21
	project := c.projectOfNamespace()
	if project == nil || c.namespace() == gardencorev1beta1.GardenNamespace {
		return
	}
	own, name := c.name(), textAt(project, "metadata", "name")
	if len(name)+len(own) > most {
		c.report("metadata.name", schemas.TypeInvalid, "%q has %d characters; together with the project %q at most %d are possible, which leaves %d", own, len(own), name, most, most-len(name))
	}
}

// checkTaints checks that a Shoot tolerates all taints of its Seed. Source:
// plugin/pkg/shoot/validator; plugin/pkg/shoot/tolerationrestriction and
// plugin/pkg/shoot/exposureclass add tolerations.
func (c *checker) checkTaints() {
	seed := c.findSeed()
	if seed == nil || c.isOnSameSeed() {
		return
	}
	for _, item := range listAt(seed, "spec", "taints") {
		if taint, ok := item.(map[string]any); ok && !c.canTolerate(c.object(), taint) {
			c.reportNew("spec.seedName", schemas.TypeForbidden, "the Seed %q has the taint %s, which the Shoot does not tolerate (spec.tolerations)", textAt(c.object(), "spec", "seedName"), describeTaint(taint))
		}
	}
}

// canTolerate reports whether a Shoot, its Project or its ExposureClass tolerates a taint.
func (c *checker) canTolerate(shoot, taint map[string]any) bool {
	namespace := textAt(shoot, "metadata", "namespace")
	if textAt(taint, "key") == gardencorev1beta1.SeedTaintProtected && namespace == gardencorev1beta1.GardenNamespace {
		return true
	}
	tolerations := listAt(shoot, "spec", "tolerations")
	if project := c.findProject(namespace); project != nil {
		tolerations = slices.Concat(tolerations, listAt(project.Content().Object, "spec", "tolerations", "defaults"))
	}
	if class := c.findObject(identity{kind: kindExposureClass, name: textAt(shoot, "spec", "exposureClassName")}); class != nil {
		tolerations = slices.Concat(tolerations, listAt(class.Content().Object, "scheduling", "tolerations"))
	}
	return slices.ContainsFunc(tolerations, func(item any) bool {
		t, ok := item.(map[string]any)
		return ok && textAt(t, "key") == textAt(taint, "key") && (valueAt(taint, "value") == nil || textAt(t, "value") == textAt(taint, "value"))
	})
}

// checkTolerations checks that the Project or the configuration of the plugin
// ShootTolerationRestriction lists the tolerations.
func (c *checker) checkTolerations() {
	project, gardens := c.projectOfNamespace(), c.allOfKind(kindGarden)
	if project == nil || len(gardens) == 0 {
		return // the plugin may have its own list
	}
	allowed := listAt(project, "spec", "tolerations", "whitelist")
	for _, in := range gardens {
		for _, item := range listAt(in.Content().Object, "spec", "virtualCluster", "gardener", "gardenerAPIServer", "admissionPlugins") {
			plugin, _ := item.(map[string]any)
			switch {
			case textAt(plugin, "name") != "ShootTolerationRestriction":
			case valueAt(plugin, "disabled") == true:
				return
			default:
				allowed = slices.Concat(allowed, listAt(plugin, "config", "whitelist"))
			}
		}
	}
	for i, item := range listAt(c.object(), "spec", "tolerations") {
		toleration, _ := item.(map[string]any)
		if textAt(toleration, "key") == "" || slices.ContainsFunc(allowed, func(item any) bool {
			entry, ok := item.(map[string]any)
			return ok && textAt(entry, "key") == textAt(toleration, "key") && (valueAt(entry, "value") == nil || textAt(entry, "value") == textAt(toleration, "value"))
		}) {
			continue
		}
		c.reportNew(fmt.Sprintf("spec.tolerations[%d]", i), schemas.TypeForbidden,
			"%s is not in spec.tolerations.whitelist of the Project %q, so the API rejects the Shoot", describeTaint(toleration), textAt(project, "metadata", "name"))
	}
}

func describeTaint(taint map[string]any) string {
	if value := textAt(taint, "value"); value != "" {
		return textAt(taint, "key") + "=" + value
	}
	return textAt(taint, "key")
}

// checkProfileAllowsSeed checks that the cloud profile of a Shoot allows its Seed.
func (c *checker) checkProfileAllowsSeed() {
	seed, p := c.findSeed(), c.shootProfile()
	if seed == nil || p == nil || p.spec.SeedSelector == nil || c.isOnSameSeed() {
		return
	}
	name, field := textAt(c.object(), "spec", "seedName"), "spec.seedName"
	selector, err := metav1.LabelSelectorAsSelector(&p.spec.SeedSelector.LabelSelector)
	if err != nil {
		return // the rules about cloud profiles report it
	}
	own := labels.Set{}
	for key, value := range mapAt(seed, "metadata", "labels") {
		own[key], _ = value.(string)
	}
	if !selector.Matches(own) {
		c.reportNew(field, schemas.TypeForbidden, "the Seed %q does not have the labels that %s asks for: %s", name, p.position, selector)
	}
	provider, allowed := textAt(seed, "spec", "provider", "type"), p.spec.SeedSelector.ProviderTypes
	if len(allowed) > 0 && !slices.Contains(allowed, provider) && !slices.Contains(allowed, "*") {
		c.reportNew(field, schemas.TypeForbidden, "the Seed %q is of provider %q, and %s allows %s", name, provider, p.position, joinQuoted(allowed))
	}
}

// checkControlPlaneZones checks that the Seed has the zones of the control plane, and three for
// failure tolerance zone.
func (c *checker) checkControlPlaneZones() {
	seed := c.findSeed()
	if seed == nil {
		return
	}
	name, zones := textAt(c.object(), "spec", "seedName"), stringItems(listAt(seed, "spec", "provider", "zones"))
	const failure = "spec.controlPlane.highAvailability.failureTolerance.type"
	if textAt(c.object(), strings.Split(failure, ".")...) == "zone" && len(zones) < 3 {
		c.report(failure, schemas.TypeForbidden, "the Seed %q has %d zones, but tolerating the failure of a zone needs 3", name, len(zones))
	}
	visitValues(c.object(), "spec.controlPlane.zones[]", func(path string, value any) {
		if zone, ok := value.(string); ok && !slices.Contains(zones, zone) {
			c.report(path, schemas.TypeNotSupported, "the Seed %q has no zone %q; it has %s", name, zone, joinQuoted(zones))
		}
	})
}

// checkAccessRestrictions checks that the Seed supports the access restrictions of the Shoot.
func (c *checker) checkAccessRestrictions() {
	seed := c.findSeed()
	if seed == nil {
		return
	}
	var offered []string
	visitValues(seed, "spec.accessRestrictions[].name", func(_ string, value any) { offered = append(offered, fmt.Sprint(value)) })
	visitValues(c.object(), "spec.accessRestrictions[].name", func(path string, value any) {
		if name, ok := value.(string); ok && !slices.Contains(offered, name) {
			c.report(path, schemas.TypeForbidden, "the Seed %q does not have the access restriction %q; it has %s", textAt(c.object(), "spec", "seedName"), name, joinQuoted(offered))
		}
	})
}

// checkDefaultDomain checks that names below a default domain have the form SHOOT.PROJECT.DOMAIN.
// Source: plugin/pkg/shoot/dns.
func (c *checker) checkDefaultDomain() {
	seed, project, domain := c.findSeed(), c.projectOfNamespace(), textAt(c.object(), "spec", "dns", "domain")
	if seed == nil || project == nil || domain == "" {
		return
	}
	visitValues(seed, "spec.dns.defaults[].domain", func(_ string, value any) {
		base, ok := value.(string)
		if !ok || !strings.HasSuffix(domain, "."+base) {
			return
		}
		want := textAt(project, "metadata", "name") + "." + base
		fits := strings.HasSuffix(domain, "."+want) // a generated name is unknown
		if name := c.name(); name != "" {
			want = name + "." + want
			fits = domain == want
		}
		if !fits {
			c.report("spec.dns.domain", schemas.TypeInvalid, "%q is below the default domain %q of the Seed, so it must be %q; leave it out, or use another domain with a provider", domain, base, want)
		}
	})
}

// checkDomainServed checks that a DNS provider of the Shoot or a default domain of the Seed serves
// its domain. Source: pkg/utils/gardener (ConstructExternalDomain).
func (c *checker) checkDomainServed() {
	seed, domain := c.findSeed(), textAt(c.object(), "spec", "dns", "domain")
	if seed == nil || domain == "" || len(listAt(c.object(), "spec", "dns", "providers")) > 0 {
		return
	}
	var defaults []string
	visitValues(seed, "spec.dns.defaults[].domain", func(_ string, value any) { defaults = append(defaults, fmt.Sprint(value)) })
	if len(defaults) == 0 || slices.ContainsFunc(defaults, func(base string) bool { return strings.HasSuffix(domain, "."+base) }) {
		return
	}
	c.report("spec.dns.domain", schemas.TypeInvalid, "%q is not below a default domain of the Seed (%s) and has no DNS provider; add one to spec.dns.providers, or leave the domain out", domain, joinQuoted(defaults))
}
