// SPDX-License-Identifier: Apache-2.0

package rulebook

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/structure"
)

// kindNames returns the names of a kind in lower case: Shoot, Shoot.core.gardener.cloud,
// Shoot.v1beta1.core.gardener.cloud, and extensions.Worker for group extensions.gardener.cloud.
func kindNames(kind *structure.Kind) []string {
	gvk := kind.GVK
	list := []string{structure.RulesName(gvk), gvk.Kind, gvk.Kind + "." + gvk.Version}
	if gvk.Group != "" {
		list = append(list, gvk.Kind+"."+gvk.Group, gvk.Kind+"."+gvk.Version+"."+gvk.Group)
	}
	for i := range list {
		list[i] = strings.ToLower(list[i])
	}
	return list
}

// Kinds returns the shortest unambiguous name of each kind, sorted.
func Kinds() ([]string, error) {
	kinds, err := schemas.StructuralKinds()
	if err != nil {
		return nil, err
	}
	var list []string
	for _, kind := range kinds {
		list = append(list, structure.RulesName(kind.GVK))
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// parseFieldReference splits a question such as Shoot.spec.provider into kind and field. Kinds of
// landscapes take precedence over kinds of extensions, and newer versions over older ones; others
// names the rest.
func parseFieldReference(question string) (kind *structure.Kind, field string, others []string, err error) {
	kinds, err := schemas.StructuralKinds()
	if err != nil {
		return nil, "", nil, err
	}
	best := 0
	var fitting []*structure.Kind
	for _, k := range kinds {
		for _, name := range kindNames(k) {
			rest, ok := strings.CutPrefix(strings.ToLower(question), name)
			switch {
			case !ok || rest != "" && rest[0] != '.' && rest[0] != '[' || len(name) < best:
			case len(name) > best:
				best, fitting = len(name), []*structure.Kind{k}
			case !slices.Contains(fitting, k):
				fitting = append(fitting, k)
			}
		}
	}
	if len(fitting) == 0 {
		known, err := Kinds()
		if err != nil {
			return nil, "", nil, err
		}
		word, _, _ := strings.Cut(question, ".")
		if kind := findKubernetesKind(word); kind != "" {
			return nil, "", nil, fmt.Errorf("%s is a kind of Kubernetes, which only overlays change; kubectl explain %s describes its fields", kind, kind)
		}
		return nil, "", nil, fmt.Errorf("there is no kind %q%s", word, suggestionOrList(word, known, "; known kinds are "))
	}
	slices.SortFunc(fitting, compareKinds)
	for _, k := range fitting[1:] {
		others = append(others, k.GVK.Kind+"."+k.GVK.Version+"."+k.GVK.Group)
	}
	return fitting[0], strings.TrimPrefix(question[best:], "."), others, nil
}

// findKubernetesKind returns the Kubernetes kind that a word names, ignoring case, or "" for none.
func findKubernetesKind(word string) string {
	for gvk := range scheme.Scheme.AllKnownTypes() {
		if strings.EqualFold(gvk.Kind, word) {
			return gvk.Kind
		}
	}
	return ""
}

func compareKinds(a, b *structure.Kind) int {
	first := func(k *structure.Kind) int {
		if strings.Contains(structure.RulesName(k.GVK), ".") {
			return 1
		}
		return 0
	}
	if d := first(a) - first(b); d != 0 {
		return d
	}
	return version.CompareKubeAwareVersionStrings(b.GVK.Version, a.GVK.Version)
}

// RulesOfKindName returns the rules of a kind by one of its names.
func RulesOfKindName(name string) ([]schemas.Rule, error) {
	kind, field, _, err := parseFieldReference(name)
	if err != nil {
		return nil, err
	}
	if field != "" {
		return nil, fmt.Errorf("--rules takes a kind, not a field; pergola explain %s lists the rules about it", name)
	}
	return RulesOfKind(kind.GVK)
}

// CompleteFieldReference returns completions of a question: kinds, and fields after a dot.
func CompleteFieldReference(begin string) ([]string, error) {
	offers, err := Kinds()
	if err != nil {
		return nil, err
	}
	if dot := strings.LastIndex(begin, "."); dot >= 0 {
		if e, err := Explain(begin[:dot]); err == nil {
			for _, field := range e.Fields {
				offers = append(offers, begin[:dot+1]+field.Name)
			}
		}
	}
	return slices.DeleteFunc(offers, func(offer string) bool {
		return len(offer) < len(begin) || !strings.EqualFold(offer[:len(begin)], begin)
	}), nil
}
