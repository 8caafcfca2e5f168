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
	var elsewhere []string
	for gv, names := range known {
		if slices.Contains(names, gvk.Kind) {
			elsewhere = append(elsewhere, gv.String())
		}
	}
	if len(elsewhere) > 0 {
		slices.Sort(elsewhere)
		return "apiVersion", schemas.TypeNotSupported, fmt.Sprintf("%q has no kind %s; it is served by %s",
			gvk.GroupVersion().String(), gvk.Kind, strings.Join(elsewhere, " and "))
	}
	return "kind", schemas.TypeNotSupported, unknownKind(gvk, known)
}

// unknownKind says what the author most likely means by a kind that no API of a landscape has: another kind of the same
// API, one whose name is nearly the same, or an object that a component should have.
func unknownKind(gvk schema.GroupVersionKind, known map[schema.GroupVersion][]string) string {
	own := known[gvk.GroupVersion()]
	var all []string
	for _, names := range known {
		all = append(all, names...)
	}
	for _, names := range [][]string{own, all} {
		if better := schemas.Suggest(gvk.Kind, names); better != "" {
			return fmt.Sprintf("unknown kind %q; did you mean %s?", gvk.Kind, better)
		}
	}
	switch {
	case gvk.Group == "kustomize.config.k8s.io":
		return "an overlay belongs to components/OWNER/COMPONENT/kustomization.yaml"
	case own != nil && gvk.Group != "":
		return fmt.Sprintf("unknown kind %q; %s has %s", gvk.Kind, gvk.GroupVersion(), strings.Join(slices.Sorted(slices.Values(own)), ", "))
	}
	return fmt.Sprintf("a landscape declares no %s: add it to a component, by an overlay components/OWNER/COMPONENT/kustomization.yaml that lists its file under resources", gvk.Kind)
}
