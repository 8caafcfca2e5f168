// SPDX-License-Identifier: Apache-2.0

package report

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/structure"
)

const (
	gardenerReference   = "https://github.com/gardener/gardener/blob/master/docs/api-reference/"
	druidReference      = "https://github.com/gardener/etcd-druid/blob/master/docs/api-reference/etcd-druid-api.md"
	kubernetesReference = "https://kubernetes.io/docs/reference/kubernetes-api/core/"
	landscapeReference  = "https://github.com/pergola-dev/pergola/blob/main/landscapes/README.md#landscapeyaml"
)

// fieldReferencePage returns the field reference of a kind, or "" if unknown. Upstream pages have
// an anchor per type, its name in lower case. The anchors for operations.gardener.cloud depend on
// the generator, so its link has none.
func fieldReferencePage(gvk schema.GroupVersionKind) string {
	anchor := "#" + strings.ToLower(gvk.Kind)
	switch gvk.Group {
	case "core.gardener.cloud":
		if gvk.Version == "v1" {
			return gardenerReference + "core-v1.md" + anchor
		}
		return gardenerReference + "core.md" + anchor
	case "extensions.gardener.cloud", "operator.gardener.cloud", "resources.gardener.cloud", "security.gardener.cloud", "seedmanagement.gardener.cloud":
		name, _, _ := strings.Cut(gvk.Group, ".")
		return gardenerReference + name + ".md" + anchor
	case "operations.gardener.cloud":
		return gardenerReference + "operations.md"
	case "druid.gardener.cloud":
		return druidReference + anchor
	case "landscape.pergola.dev":
		return landscapeReference
	case "":
		switch gvk.Kind {
		case "ConfigMap":
			return kubernetesReference + "config-map-v1/"
		case "Namespace", "Secret":
			return kubernetesReference + strings.ToLower(gvk.Kind) + "-v1/"
		}
	}
	return ""
}

// documentationLink returns the reference of a finding's kind, or "" for files and kinds without
// one. Findings have no group: if several groups have the kind, the rule or the file decides.
func (s *sourceCache) documentationLink(v schemas.Violation) string {
	if v.Kind == "" {
		return ""
	}
	fitting := slices.DeleteFunc(schemas.KnownKinds(), func(gvk schema.GroupVersionKind) bool { return gvk.Kind != v.Kind })
	folder, _, _ := strings.Cut(v.Rule, "/")
	fitting = narrowKinds(fitting, func(gvk schema.GroupVersionKind) bool { return strings.ToLower(structure.RulesName(gvk)) == folder })
	if len(fitting) > 1 {
		written := s.apiVersion(v)
		fitting = narrowKinds(fitting, func(gvk schema.GroupVersionKind) bool { return gvk.GroupVersion().String() == written })
	}
	if len(fitting) != 1 {
		return ""
	}
	return fieldReferencePage(fitting[0])
}

// narrowKinds returns the kinds for which holds is true, or all if there are none.
func narrowKinds(kinds []schema.GroupVersionKind, holds func(schema.GroupVersionKind) bool) []schema.GroupVersionKind {
	var out []schema.GroupVersionKind
	for _, gvk := range kinds {
		if holds(gvk) {
			out = append(out, gvk)
		}
	}
	if len(out) == 0 {
		return kinds
	}
	return out
}
