package across

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pergola-dev/pergola/schemas"
)

// templatesOfSeeds are the paths of templates of Seeds in the kinds that make one.
var templatesOfSeeds = map[string][]string{
	"Gardenlet":      {"spec", "config", "seedConfig"},
	"ManagedSeed":    {"spec", "gardenlet", "config", "seedConfig"},
	"ManagedSeedSet": {"spec", "template", "spec", "gardenlet", "config", "seedConfig"},
}

// seedLabels are the labels of all Seeds of the landscape; ok is false where there are others.
func (c *check) seedLabels() (all []labels.Set, ok bool) {
	if c.hasExternal(kindSeed.Kind) {
		return nil, false
	}
	add := func(object map[string]any, path ...string) {
		set := labels.Set{}
		values, _ := at(object, append(slices.Clone(path), "metadata", "labels")...).(map[string]any)
		for key, value := range values {
			set[key], _ = value.(string)
		}
		all = append(all, set)
	}
	for _, in := range c.all(kindSeed) {
		add(in.Content().Object)
	}
	for kind, path := range templatesOfSeeds {
		for _, of := range c.kindsNamed(kind) {
			for _, in := range c.all(of) {
				add(in.Content().Object, path...)
			}
		}
	}
	return all, len(all) > 0
}

// seedSelected: a selector of Seeds that fits none schedules nothing.
func seedSelected(path ...string) func(*check) {
	return func(c *check) {
		value, is := at(c.object(), path...).(map[string]any)
		if !is {
			return
		}
		selector := metav1.LabelSelector{}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"matchLabels": value["matchLabels"], "matchExpressions": value["matchExpressions"]}, &selector) != nil {
			return // the structure says so
		}
		matches, err := metav1.LabelSelectorAsSelector(&selector)
		if err != nil || matches.Empty() {
			return
		}
		all, ok := c.seedLabels()
		if ok && !slices.ContainsFunc(all, func(set labels.Set) bool { return matches.Matches(set) }) {
			c.report(strings.Join(path, "."), schemas.TypeInvalid, "no Seed of the landscape has the labels %s", metav1.FormatLabelSelector(&selector))
		}
	}
}

// visibleSeed: a Shoot without a Seed gets one from the scheduler, which takes those that are visible.
func (c *check) visibleSeed() {
	if text(c.object(), "spec", "seedName") != "" || c.hasExternal(kindSeed.Kind) {
		return
	}
	all, hidden := 0, 0
	look := func(in *schemas.Input, path ...string) {
		if all++; at(in.Content().Object, append(slices.Clone(path), "spec", "settings", "scheduling", "visible")...) == false {
			hidden++
		}
	}
	for _, in := range c.all(kindSeed) {
		look(in)
	}
	for kind, path := range templatesOfSeeds {
		for _, of := range c.kindsNamed(kind) {
			for _, in := range c.all(of) {
				look(in, path...)
			}
		}
	}
	if hidden > 0 && hidden == all {
		c.report("spec.seedName", schemas.TypeRequired, "no Seed of the landscape is visible (spec.settings.scheduling), so that the scheduler finds none: name a Seed, or make one visible")
	}
}

// bastionOfShoot: a Bastion is at the provider of its Shoot, and one that has no SSH access has none.
func (c *check) bastionOfShoot() {
	in := c.find(identity{kindShoot, c.namespace(), text(c.object(), "spec", "shootRef", "name")})
	if in == nil {
		return // the references say so
	}
	shoot := in.Content().Object
	if own, typ := text(c.object(), "spec", "providerType"), text(shoot, "spec", "provider", "type"); own != "" && typ != "" && own != typ {
		c.report("spec.providerType", schemas.TypeInvalid, "%q is not the provider of the Shoot (%s), which is %q", own, place(in), typ)
	}
	if at(shoot, "spec", "provider", "workersSettings", "sshAccess", "enabled") == false {
		c.report("spec.shootRef.name", schemas.TypeForbidden, "the Shoot (%s) allows no SSH access (spec.provider.workersSettings), so that its Bastions are deleted", place(in))
	}
}

// ownIssuer: tokens of two clusters with one issuer have two sets of keys, of which a verifier finds one.
func (c *check) ownIssuer() {
	const field, words = "spec.kubernetes.kubeAPIServer.serviceAccountConfig.issuer", "the issuer %q is that of %s already; each cluster has keys of its own"
	issuer := text(c.object(), strings.Split(field, ".")...)
	for _, in := range c.all(kindGarden) {
		if issuer != "" && issuer == text(in.Content().Object, "spec", "virtualCluster", "kubernetes", "kubeAPIServer", "serviceAccountConfig", "issuer") {
			c.report(field, schemas.TypeDuplicate, words, issuer, place(in))
			return
		}
	}
	c.once("issuer of service accounts", issuer, field, words, issuer)
}

// seedRegion: a Seed is in a region that a profile of its provider has, and in its zones. Profiles need not have them: only a name that is nearly
// one of theirs is a slip. Another number is another region, and another last letter another zone.
func (c *check) seedRegion() {
	provider, region := text(c.object(), "spec", "provider", "type"), text(c.object(), "spec", "provider", "region")
	var regions []string
	zones := map[string][]string{}
	for _, in := range c.all(kindCloudProfile) {
		spec, _ := at(in.Content().Object, "spec").(map[string]any)
		if text(spec, "type") != provider {
			continue
		}
		for _, item := range list(spec, "regions") {
			of, _ := item.(map[string]any)
			name := text(of, "name")
			regions = append(regions, name)
			for _, zone := range list(of, "zones") {
				entry, _ := zone.(map[string]any)
				zones[name] = append(zones[name], text(entry, "name"))
			}
		}
	}
	slices.Sort(regions)
	if !slices.Contains(regions, region) {
		if meant := schemas.SuggestWithin(region, regions, 2); meant != "" && digitsOf(meant) == digitsOf(region) {
			c.report("spec.provider.region", schemas.TypeNotSupported, "no cloud profile of the provider %q has the region %q; did you mean %q?", provider, region, meant)
		}
		return
	}
	each(c.object(), "spec.provider.zones[]", func(path string, value any) {
		zone, _ := value.(string)
		meant := schemas.SuggestWithin(zone, zones[region], 2)
		if meant != "" && !slices.Contains(zones[region], zone) && len(zone) > 3 && digitsOf(meant) == digitsOf(zone) && meant[len(meant)-1] == zone[len(zone)-1] {
			c.report(path, schemas.TypeNotSupported, "no cloud profile of the provider %q has the zone %q in the region %q; did you mean %q?", provider, zone, region, meant)
		}
	})
}

// digitsOf are those of a name.
func digitsOf(name string) string {
	return string(slices.DeleteFunc([]byte(name), func(b byte) bool { return b < '0' || b > '9' }))
}
