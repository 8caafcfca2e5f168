// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/internal/suggest"
	"github.com/pergola-dev/pergola/schemas"
)

// knownKinds returns the kinds that a landscape may declare, by group and version. Package schemas
// validates all of them.
func knownKinds() map[schema.GroupVersion][]string {
	kinds := map[schema.GroupVersion][]string{}
	for _, gvk := range schemas.KnownKinds() {
		kinds[gvk.GroupVersion()] = append(kinds[gvk.GroupVersion()], gvk.Kind)
	}
	return kinds
}

// checkKind returns the field and message about a kind that a landscape may not declare, or empty
// strings.
func checkKind(gvk schema.GroupVersionKind) (field string, typ schemas.ViolationType, message string) {
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
		if isForeignGroup(gvk.Group, known) {
			return "apiVersion", schemas.TypeNotSupported, fmt.Sprintf("%q is not an API of a landscape, where kind %s belongs to %s: add an object of another API to a component%s",
				gvk.GroupVersion().String(), gvk.Kind, strings.Join(elsewhere, " or "), overlayAdvice)
		}
		return "apiVersion", schemas.TypeNotSupported, fmt.Sprintf("%q has no kind %s; it is served by %s",
			gvk.GroupVersion().String(), gvk.Kind, strings.Join(elsewhere, " and "))
	}
	return "kind", schemas.TypeNotSupported, unknownKind(gvk, known)
}

// unknownKind suggests the most likely meaning of an unknown kind: another kind of the same API, a
// similar name, or an object for a component.
func unknownKind(gvk schema.GroupVersionKind, known map[schema.GroupVersion][]string) string {
	own := known[gvk.GroupVersion()]
	var all []string
	for _, names := range known {
		all = append(all, names...)
	}
	if isForeignGroup(gvk.Group, known) {
		all = nil // its kinds have their own names
	}
	for _, names := range [][]string{own, all} {
		if better := suggest.Closest(gvk.Kind, names); better != "" {
			return fmt.Sprintf("unknown kind %q; did you mean %s?", gvk.Kind, better)
		}
	}
	switch {
	case gvk.Group == "kustomize.config.k8s.io":
		return "an overlay belongs to components/OWNER/COMPONENT/kustomization.yaml"
	case gvk.Group == landscapev1alpha1.GroupName && gvk.Kind == KindOperation:
		return "an Operation belongs to " + operationFolder + "/ID.yaml of the landscape"
	case own != nil && gvk.Group != "":
		return fmt.Sprintf("unknown kind %q; %s has %s", gvk.Kind, gvk.GroupVersion(), strings.Join(slices.Sorted(slices.Values(own)), ", "))
	}
	return fmt.Sprintf("a landscape declares no %s: add it to a component%s", gvk.Kind, overlayAdvice)
}

// overlayAdvice explains how to add objects of other APIs.
const overlayAdvice = ", by an overlay components/OWNER/COMPONENT/kustomization.yaml that lists its file under resources"

// isForeignGroup reports whether an API group (cluster.x-k8s.io, argoproj.io) belongs to another
// project. Its kinds are unrelated to known kinds of the same name. Groups of Gardener and
// Kubernetes, even misspelt ones, are not foreign.
func isForeignGroup(group string, known map[schema.GroupVersion][]string) bool {
	if !strings.Contains(group, ".") || strings.HasSuffix(group, "gardener.cloud") || strings.HasSuffix(group, ".k8s.io") && !strings.HasSuffix(group, ".x-k8s.io") {
		return false
	}
	groups := make([]string, 0, len(known))
	for gv := range known {
		groups = append(groups, gv.Group)
	}
	return suggest.Closest(group, groups) == ""
}
