package landscapes

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pergola-dev/pergola/schemas"
)

// knownKinds are the kinds that a landscape may declare, by group and version: those that package schemas checks.
func knownKinds() map[schema.GroupVersion][]string {
	kinds := map[schema.GroupVersion][]string{}
	for _, gvk := range schemas.KnownKinds() {
		kinds[gvk.GroupVersion()] = append(kinds[gvk.GroupVersion()], gvk.Kind)
	}
	return kinds
}

// checkKind gives the field and the words about a kind that a landscape may not declare, or empty text.
func checkKind(gvk schema.GroupVersionKind) (field string, typ schemas.Type, message string) {
	known := knownKinds()
	if slices.Contains(known[gvk.GroupVersion()], gvk.Kind) {
		return "", "", ""
	}
	var elsewhere, kinds []string
	for gv, names := range known {
		if slices.Contains(names, gvk.Kind) {
			elsewhere = append(elsewhere, gv.String())
		}
		kinds = append(kinds, names...)
	}
	if len(elsewhere) > 0 {
		slices.Sort(elsewhere)
		return "apiVersion", schemas.TypeNotSupported, fmt.Sprintf("%q has no kind %s; it is served by %s",
			gvk.GroupVersion().String(), gvk.Kind, strings.Join(elsewhere, " and "))
	}
	slices.Sort(kinds)
	kinds = slices.Compact(kinds)
	hint := ""
	if better := schemas.Suggest(gvk.Kind, kinds); better != "" {
		hint = fmt.Sprintf("; did you mean %s?", better)
	} else if gvk.Kind == "Kustomization" {
		hint = "; overlays belong to components/OWNER/COMPONENT/kustomization.yaml"
	}
	return "kind", schemas.TypeNotSupported, fmt.Sprintf("unknown kind %q%s; a landscape may declare %s", gvk.Kind, hint, strings.Join(kinds, ", "))
}
