// SPDX-License-Identifier: Apache-2.0

package crosscheck

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pergola-dev/pergola/internal/suggest"
	"github.com/pergola-dev/pergola/schemas"
)

// seedTemplatePaths are the paths of Seed templates in the kinds that create Seeds.
var seedTemplatePaths = map[string][]string{
	"Gardenlet":      {"spec", "config", "seedConfig"},
	"ManagedSeed":    {"spec", "gardenlet", "config", "seedConfig"},
	"ManagedSeedSet": {"spec", "template", "spec", "gardenlet", "config", "seedConfig"},
}

// declaredSeedLabels returns the labels of all declared Seeds; ok is false if none or external ones
// exist.
func (c *checker) declaredSeedLabels() (all []labels.Set, ok bool) {
	if c.hasExternal(kindSeed.Kind) {
		return nil, false
	}
	add := func(object map[string]any, path ...string) {
		inside, _ := valueAt(object, path...).(map[string]any)
		all = append(all, readLabels(inside))
	}
	for _, in := range c.allOfKind(kindSeed) {
		add(in.Content().Object)
	}
	for kind, path := range seedTemplatePaths {
		for _, of := range c.kindsNamed(kind) {
			for _, in := range c.allOfKind(of) {
				add(in.Content().Object, path...)
			}
		}
	}
	return all, len(all) > 0
}

// checkSeedSelector checks that a Seed selector matches at least one Seed.
func checkSeedSelector(field ...string) func(*checker) {
	return func(c *checker) {
		selector := readSelector(valueAt(c.object(), field...))
		matches, err := metav1.LabelSelectorAsSelector(selector)
		if selector == nil || err != nil || matches.Empty() {
			return
		}
		all, ok := c.declaredSeedLabels()
		if ok && !slices.ContainsFunc(all, func(set labels.Set) bool { return matches.Matches(set) }) {
			c.report(strings.Join(field, "."), schemas.TypeInvalid, "no Seed of the landscape has the labels %s", metav1.FormatLabelSelector(selector))
		}
	}
}

// checkSelectedProviders checks that a Seed has one of the providers in a cloud profile's selector
// (* for any).
func (c *checker) checkSelectedProviders() {
	wanted := stringItems(listAt(c.object(), "spec", "seedSelector", "providerTypes"))
	if len(wanted) == 0 || slices.Contains(wanted, "*") || c.hasExternal(kindSeed.Kind) {
		return
	}
	var known []string
	for _, in := range c.allOfKind(kindSeed) {
		known = append(known, textAt(in.Content().Object, "spec", "provider", "type"))
	}
	for kind, path := range seedTemplatePaths {
		for _, of := range c.kindsNamed(kind) {
			for _, in := range c.allOfKind(of) {
				typ := textAt(in.Content().Object, append(slices.Clone(path), "spec", "provider", "type")...)
				if shoot := c.findObject(identity{kindShoot, identityOf(in).namespace, textAt(in.Content().Object, "spec", "shoot", "name")}); typ == "" && shoot != nil {
					typ = textAt(shoot.Content().Object, "spec", "provider", "type")
				}
				if typ == "" {
					return // a generated or undeclared Shoot has the type
				}
				known = append(known, typ)
			}
		}
	}
	if len(known) > 0 && !slices.ContainsFunc(wanted, func(typ string) bool { return slices.Contains(known, typ) }) {
		slices.Sort(known)
		c.report("spec.seedSelector.providerTypes", schemas.TypeInvalid, "no Seed of the landscape has the provider %s; they have %s", strings.Join(wanted, " or "), joinQuoted(slices.Compact(known)))
	}
}

// checkBucketProvider checks that a BackupBucket has the backup provider of its Seed.
func (c *checker) checkBucketProvider() {
	seed := c.findObject(identity{kind: kindSeed, name: textAt(c.object(), "spec", "seedName")})
	if seed == nil {
		return // the references rule reports it
	}
	own, of := textAt(c.object(), "spec", "provider", "type"), textAt(seed.Content().Object, "spec", "backup", "provider")
	if own != "" && of != "" && own != of {
		c.report("spec.provider.type", schemas.TypeInvalid, "%q is not the provider of the backups of %s, which is %q", own, objectPosition(seed), of)
	}
}

// checkShootsFit warns of taints and labels that would reject new Shoots like the Seed's current
// ones. Current Shoots stay.
func (c *checker) checkShootsFit() {
	if !c.input.HasOld() {
		return
	}
	before, now := c.input.OldContent().Object, c.object()
	old, taints := listAt(before, "spec", "taints"), listAt(now, "spec", "taints")
	type refusal struct{ field, words string }
	refused := map[refusal][]string{}
	for _, in := range c.allOfKind(kindShoot) {
		shoot := in.Content().Object
		if textAt(shoot, "spec", "seedName") != c.name() {
			continue
		}
		name := objectPosition(in)
		for i, item := range taints {
			taint, _ := item.(map[string]any)
			if !slices.ContainsFunc(old, func(other any) bool { return reflect.DeepEqual(other, item) }) && !c.canTolerate(shoot, taint) {
				r := refusal{fmt.Sprintf("spec.taints[%d]", i), fmt.Sprintf("does not tolerate %s", describeTaint(taint))}
				refused[r] = append(refused[r], name)
			}
		}
		for whose, selector := range c.seedSelectors(shoot) {
			matches, err := metav1.LabelSelectorAsSelector(selector)
			if err == nil && matches.Matches(readLabels(before)) && !matches.Matches(readLabels(now)) {
				r := refusal{"metadata.labels", fmt.Sprintf("needs a Seed with %s, because of %s", metav1.FormatLabelSelector(selector), whose)}
				refused[r] = append(refused[r], name)
			}
		}
	}
	for r, names := range refused { // findings are sorted later
		slices.Sort(names)
		more := ""
		if len(names) > 1 {
			more = fmt.Sprintf(", as %d more", len(names)-1)
		}
		c.report(r.field, schemas.TypeForbidden, "%s is on the Seed and %s%s; it stays, but similar Shoots are rejected", names[0], r.words, more)
	}
}

// seedSelectors returns the selectors that the Seed of a Shoot must match, keyed by their origin.
func (c *checker) seedSelectors(shoot map[string]any) map[string]*metav1.LabelSelector {
	out := map[string]*metav1.LabelSelector{}
	id, _ := profileReference(shoot, textAt(shoot, "metadata", "namespace"))
	c.recordQuery(landscapeQuery{topicProfile, id})
	if p := c.loadProfile(id); p != nil && p.spec.SeedSelector != nil {
		out[p.position] = &p.spec.SeedSelector.LabelSelector
	}
	if class := c.findObject(identity{kind: kindExposureClass, name: textAt(shoot, "spec", "exposureClassName")}); class != nil {
		if selector := readSelector(valueAt(class.Content().Object, "scheduling", "seedSelector")); selector != nil {
			out[objectPosition(class)] = selector
		}
	}
	return out
}

func readLabels(object map[string]any) labels.Set {
	set := labels.Set{}
	for key, value := range mapAt(object, "metadata", "labels") {
		set[key], _ = value.(string)
	}
	return set
}

// readSelector parses a label selector, or nil if it is missing or its structure is broken.
func readSelector(value any) *metav1.LabelSelector {
	fields, is := value.(map[string]any)
	selector := &metav1.LabelSelector{}
	if !is || runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"matchLabels": fields["matchLabels"], "matchExpressions": fields["matchExpressions"]}, selector) != nil {
		return nil
	}
	return selector
}

// checkVisibleSeed checks that the scheduler finds a visible Seed for a Shoot without one.
func (c *checker) checkVisibleSeed() {
	if textAt(c.object(), "spec", "seedName") != "" || c.hasExternal(kindSeed.Kind) {
		return
	}
	all, hidden := 0, 0
	look := func(in *schemas.Input, path ...string) {
		if all++; valueAt(in.Content().Object, append(slices.Clone(path), "spec", "settings", "scheduling", "visible")...) == false {
			hidden++
		}
	}
	for _, in := range c.allOfKind(kindSeed) {
		look(in)
	}
	for kind, path := range seedTemplatePaths {
		for _, of := range c.kindsNamed(kind) {
			for _, in := range c.allOfKind(of) {
				look(in, path...)
			}
		}
	}
	if hidden > 0 && hidden == all {
		c.report("spec.seedName", schemas.TypeRequired, "no Seed of the landscape is visible (spec.settings.scheduling), so the scheduler finds none; name a Seed, or make one visible")
	}
}

// checkBastion checks that a Bastion has the provider of its Shoot, and that the Shoot allows SSH
// access.
func (c *checker) checkBastion() {
	in := c.findObject(identity{kindShoot, c.namespace(), textAt(c.object(), "spec", "shootRef", "name")})
	if in == nil {
		return // the references rule reports it
	}
	shoot := in.Content().Object
	if own, typ := textAt(c.object(), "spec", "providerType"), textAt(shoot, "spec", "provider", "type"); own != "" && typ != "" && own != typ {
		c.report("spec.providerType", schemas.TypeInvalid, "%q is not the provider of the Shoot (%s), which is %q", own, objectPosition(in), typ)
	}
	if valueAt(shoot, "spec", "provider", "workersSettings", "sshAccess", "enabled") == false {
		c.report("spec.shootRef.name", schemas.TypeForbidden, "the Shoot (%s) allows no SSH access (spec.provider.workersSettings), so its Bastions are deleted", objectPosition(in))
	}
}

// checkIssuerUnique checks that clusters have different issuers. A token verifier finds only one of
// two key sets with the same issuer.
func (c *checker) checkIssuerUnique() {
	const field, words = "spec.kubernetes.kubeAPIServer.serviceAccountConfig.issuer", "the issuer %q already belongs to %s; choose another one, because each cluster has its own keys"
	issuer := textAt(c.object(), strings.Split(field, ".")...)
	for _, in := range c.allOfKind(kindGarden) {
		if issuer != "" && issuer == textAt(in.Content().Object, "spec", "virtualCluster", "kubernetes", "kubeAPIServer", "serviceAccountConfig", "issuer") {
			c.report(field, schemas.TypeDuplicate, words, issuer, objectPosition(in))
			return
		}
	}
	c.claimUniqueValue("issuer of service accounts", issuer, field, words, issuer)
}

// checkSeedRegion reports likely typos in the region and zones of a Seed; unknown names are
// allowed. Names with other digits, or zones with another last letter, are not typos. at is the
// path of a Seed template.
func checkSeedRegion(at ...string) func(*checker) {
	return func(c *checker) {
		spec := append(slices.Clone(at), "spec", "provider")
		field := strings.Join(spec, ".")
		in := func(name string) string { return textAt(c.object(), append(slices.Clone(spec), name)...) }
		provider, region := in("type"), in("region")
		regions, zones := c.profileRegions(provider)
		known := slices.Contains(regions, region)
		if !known && region != "" {
			if meant := suggest.ClosestWithin(region, regions, 2); meant != "" && digitsIn(meant) == digitsIn(region) {
				c.report(field+".region", schemas.TypeNotSupported, "no cloud profile of the provider %q has the region %q; did you mean %q?", provider, region, meant)
				return
			}
		}
		visitValues(c.object(), field+".zones[]", func(path string, value any) {
			zone, _ := value.(string)
			for _, other := range regions {
				if other != region && region != "" && strings.HasPrefix(zone, other) && slices.Contains(zones[other], zone) && !slices.Contains(zones[region], zone) {
					c.report(path, schemas.TypeInvalid, "the zone %q is in the region %q, and not in %q", zone, other, region)
					return
				}
			}
			if !known {
				return
			}
			meant := suggest.ClosestWithin(zone, zones[region], 2)
			if meant != "" && !slices.Contains(zones[region], zone) && len(zone) > 3 && digitsIn(meant) == digitsIn(zone) && meant[len(meant)-1] == zone[len(zone)-1] {
				c.report(path, schemas.TypeNotSupported, "no cloud profile of the provider %q has the zone %q in the region %q; did you mean %q?", provider, zone, region, meant)
			} else if isRegionPrefixMissing(zone, region, zones[region]) {
				c.report(path, schemas.TypeInvalid, "zones of the region %q begin with its name, as in %s, and %q does not", region, joinQuoted(zones[region]), zone)
			}
		})
	}
}

// profileRegions returns the sorted regions of a provider's cloud profiles, and their zones.
func (c *checker) profileRegions(provider string) (regions []string, zones map[string][]string) {
	zones = map[string][]string{}
	for _, in := range c.allOfKind(kindCloudProfile) {
		spec, _ := valueAt(in.Content().Object, "spec").(map[string]any)
		if textAt(spec, "type") != provider {
			continue
		}
		for _, item := range listAt(spec, "regions") {
			of, _ := item.(map[string]any)
			name := textAt(of, "name")
			regions = append(regions, name)
			for _, zone := range listAt(of, "zones") {
				entry, _ := zone.(map[string]any)
				zones[name] = append(zones[name], textAt(entry, "name"))
			}
		}
	}
	slices.Sort(regions)
	return regions, zones
}

// isRegionPrefixMissing reports whether a zone lacks the region's name as prefix, although all
// known zones have it.
func isRegionPrefixMissing(zone, region string, known []string) bool {
	return len(known) > 0 && zone != "" && !strings.HasPrefix(zone, region) && !slices.ContainsFunc(known, func(name string) bool { return !strings.HasPrefix(name, region) })
}

// digitsIn returns the digits of a name.
func digitsIn(name string) string {
	return string(slices.DeleteFunc([]byte(name), func(b byte) bool { return b < '0' || b > '9' }))
}
