// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/schemas"
)

// checkSeedClusters finds clusters of undeclared Seeds. A name similar to a Seed without a cluster
// is a typo and an error: that Seed would not be managed. Any other name is a warning, because the
// Seed may be new or about to be removed.
func (l *loader) checkSeedClusters(config *Declaration, spec map[string]any) {
	clusters, _ := spec["clusters"].(map[string]any)
	seeds, _ := clusters["seeds"].(map[string]any)
	declared := l.seedNames()
	free := slices.DeleteFunc(slices.Clone(declared), func(name string) bool {
		_, has := seeds[name]
		return has
	})
	for _, name := range slices.Sorted(maps.Keys(seeds)) {
		if slices.Contains(declared, name) {
			continue
		}
		hint := didYouMean(name, free)
		if hint == "" && l.isIncomplete() {
			continue // an unreadable file, already reported, may declare it
		}
		rest := ""
		switch {
		case hint == "" && len(declared) == 0:
			rest = "; it declares no Seed at all"
		case hint == "":
			rest = "; its Seeds are " + strings.Join(declared, ", ")
		}
		field := fmt.Sprintf("spec.clusters.seeds[%s]", name)
		l.reportField(config, field, schemas.TypeNotSupported, ruleConfig, fmt.Sprintf("the landscape declares no Seed %q%s%s", name, hint, rest))
		v, place := &l.violations[len(l.violations)-1], config.KeyPosition(field)
		v.Line, v.Column = place.Line, place.Column
		if hint == "" {
			v.Severity = schemas.SeverityWarning
		}
	}
}

// checkSharedClusters warns of a cluster that two owners have in common, in which each prunes
// objects that it does not declare. Only a Seed may share the runtime cluster. It is not an error,
// because --kubeconfig NAME=PATH may name another cluster.
func (l *loader) checkSharedClusters(config *Declaration, spec map[string]any) {
	clusters, _ := spec["clusters"].(map[string]any)
	seeds, _ := clusters["seeds"].(map[string]any)
	type cluster struct{ field, access string }
	var before []cluster
	add := func(name, field string, value any, mayShare string) {
		access, isMap := value.(map[string]any)
		if !isMap {
			return
		}
		here := cluster{field, fmt.Sprint(access)}
		i := slices.IndexFunc(before, func(c cluster) bool { return c.access == here.access && c.field != mayShare })
		if i >= 0 {
			l.reportField(config, field, schemas.TypeDuplicate, ruleConfig,
				fmt.Sprintf("has the same access as %s, so both would be the same cluster; give it its own context, or pass --kubeconfig %s=PATH", before[i].field, name))
			v, place := &l.violations[len(l.violations)-1], config.KeyPosition(field)
			v.Line, v.Column, v.Severity = place.Line, place.Column, schemas.SeverityWarning
		}
		before = append(before, here)
	}
	const runtime = "spec.clusters.runtime"
	add("runtime", runtime, clusters["runtime"], "")
	add("virtual", "spec.clusters.virtual", clusters["virtual"], "")
	for _, name := range slices.Sorted(maps.Keys(seeds)) {
		field := fmt.Sprintf("spec.clusters.seeds[%s]", name)
		add(name, field, seeds[name], runtime)
		access, isMap := seeds[name].(map[string]any)
		if first, _ := clusters["runtime"].(map[string]any); !isMap || fmt.Sprint(access) != fmt.Sprint(first) {
			continue
		}
		if differs := l.networkDifference(name); differs != "" {
			l.reportField(config, field, schemas.TypeInvalid, ruleConfig,
				fmt.Sprintf("has the same access as the runtime cluster, but the networks differ: %s; give it its own context, or correct the ranges", differs))
			v, place := &l.violations[len(l.violations)-1], config.KeyPosition(field)
			v.Line, v.Column, v.Severity = place.Line, place.Column, schemas.SeverityWarning
		}
	}
}

// networkDifference describes an address range that differs between a Seed and the runtime cluster.
// It is "" if none differs, or if one of the two sets none.
func (l *loader) networkDifference(seed string) string {
	var garden, own map[string]any
	for _, d := range l.landscape.Declarations {
		switch {
		case d.kind.Kind == "Garden":
			garden, _, _ = unstructured.NestedMap(d.Object().Object, "spec", "runtimeCluster", "networking")
		case d.kind == gardencorev1beta1.SchemeGroupVersion.WithKind("Seed") && d.name == seed:
			own, _, _ = unstructured.NestedMap(d.Object().Object, "spec", "networks")
		}
	}
	for _, field := range []string{"nodes", "pods", "services"} {
		mine, _ := own[field].(string)
		theirs, _ := garden[field].([]any)
		if mine != "" && len(theirs) > 0 && !slices.Contains(theirs, any(mine)) {
			return fmt.Sprintf("%s are %s in the Seed, and %v in the Garden", field, mine, theirs[0])
		}
	}
	return ""
}

// unreadableFileRules are the rules whose errors drop declarations.
var unreadableFileRules = []string{"landscape/file", "landscape/kind", "landscape/name", "landscape/cue", "landscape/layer", "landscape/limits", "landscape/link", "landscape/sops", ruleUnreadExtension}

// isIncomplete reports whether declarations are missing because of an unreadable file or an unknown
// kind.
func (l *loader) isIncomplete() bool {
	return slices.ContainsFunc(l.violations, func(v schemas.Violation) bool {
		return v.Severity == schemas.SeverityError && slices.Contains(unreadableFileRules, v.Rule)
	})
}

// seedNames returns the names of the declared Seeds.
func (l *loader) seedNames() []string {
	var names []string
	for _, d := range l.landscape.Declarations {
		if d.kind == gardencorev1beta1.SchemeGroupVersion.WithKind("Seed") {
			names = append(names, d.name)
		}
	}
	slices.Sort(names)
	return names
}
