// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"slices"
	"strings"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/internal/suggest"
)

// gardenletKind is a kind that declares a gardenlet, and the path of that declaration.
type gardenletKind struct {
	name string
	at   []string
}

func gardenletKinds() []gardenletKind {
	return []gardenletKind{
		{"Gardenlet", []string{"spec"}}, {"ManagedSeed", []string{"spec", "gardenlet"}}, {"ManagedSeedSet", []string{"spec", "template", "spec", "gardenlet"}},
	}
}

// seedManagementGoRules lists the Go rules of Gardenlets, ManagedSeeds and ManagedSeedSets, with
// the reason why each is not in CUE.
func seedManagementGoRules() []goRule {
	const source = "pkg/api/seedmanagement/validation/managedseed.go"
	var rules []goRule
	for _, kind := range gardenletKinds() {
		kind, at := kind.name, kind.at
		rule := func(name, field, title, doc, source string, check func(*findingCollector, ruleInput, fieldValue)) {
			rules = append(rules, goRule{
				Rule: Rule{ID: strings.ToLower(kind) + "/" + name, Kind: kind, Title: title, Doc: doc, Source: source,
					Fields: []string{strings.Join(append(slices.Clone(at), field), ".")}, Language: "go", Severity: SeverityError, Scope: scopeObject},
				check: func(in ruleInput) []finding {
					r := &findingCollector{}
					check(r, in, fieldValue{value: in.object}.lookup(at...))
					return r.findings
				},
			})
		}
		rule("deployment", "deployment", "The deployment of the gardenlet can be applied to a cluster",
			"Replicas are not negative. Account, labels and annotations have the forms that the API server requires. An image is given in one way, and no request is above its limit. The rule is in Go because the API server's own functions decide, and because three kinds share it.",
			source, func(r *findingCollector, _ ruleInput, gardenlet fieldValue) {
				r.checkGardenletDeployment(gardenlet.lookup("deployment"))
			})
		rule("config", "config", "The configuration of the gardenlet is valid",
			"Durations and counts are not negative, and the rest is what the gardenlet itself would accept when it starts. The rule is in Go because three kinds share it.",
			"pkg/api/config/gardenlet/v1alpha1/validation/validation.go", func(r *findingCollector, _ ruleInput, gardenlet fieldValue) {
				r.checkGardenletConfig(gardenlet.lookup("config"))
			})
		rule("access", "config", "The configuration of the gardenlet fits the way in which it gets access to the garden",
			"The controller sets the name of the seed. With a token or a service account for the first access it also sets the kubeconfig; otherwise the configuration must contain one. The rule is in Go because three kinds share it.",
			source, func(r *findingCollector, in ruleInput, gardenlet fieldValue) { r.checkGardenletAccess(in, gardenlet) })
	}
	for _, kind := range gardenletKinds() {
		at := kind.at
		rules = append(rules, goRule{
			Rule: Rule{ID: strings.ToLower(kind.name) + "/capacity", Kind: kind.name, Title: "The capacity of a seed has the name that the scheduler reads",
				Doc:    "The name is shoots, for the number of control planes on the seed. With a misspelt name, no limit applies. The rule is in Go because three kinds share it.",
				Source: "pkg/scheduler/controller/shoot/reconciler.go", Fields: []string{strings.Join(append(slices.Clone(at), "config"), ".")}, Language: "go", Severity: SeverityWarning, Scope: scopeObject},
			check: func(in ruleInput) []finding {
				r := &findingCollector{}
				for _, field := range []string{"capacity", "reserved"} {
					amounts := fieldValue{value: in.object}.lookup(at...).lookup("config", "resources", field)
					for _, name := range amounts.keys() {
						if shoots := string(gardencorev1beta1.ResourceShoots); name != shoots && suggest.Closest(name, []string{shoots}) != "" {
							r.add(amounts.entry(name), TypeNotSupported, "the scheduler does not read it, so it limits nothing; did you mean %q?", shoots)
						}
					}
				}
				return r.findings
			},
		})
	}
	return append(rules, goRule{
		Rule: Rule{ID: "managedseedset/selector", Kind: "ManagedSeedSet", Title: "The selector of a ManagedSeedSet matches its templates and never changes",
			Doc:    "The selector matches the labels of template, its seedConfig and shootTemplate. The rule is in Go because the API server's own functions decide.",
			Source: "pkg/api/seedmanagement/validation/managedseedset.go", Fields: []string{"spec.selector", "spec.shootTemplate.metadata.labels", "spec.template.metadata.labels", "spec.template.spec.gardenlet.config"}, Language: "go", Severity: SeverityError, Scope: scopeObject, Class: ClassChange},
		check: checkManagedSeedSetSelector,
	})
}
