package strict

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/pergola-dev/pergola/internal/suggest"
)

// KubernetesKinds are the kinds of Kubernetes itself.
func KubernetesKinds() []schema.GroupVersionKind {
	out := []schema.GroupVersionKind{definitionKind}
	for gvk, of := range scheme.Scheme.AllKnownTypes() {
		if _, has := of.FieldByName("ObjectMeta"); has {
			out = append(out, gvk)
		}
	}
	return out
}

// Unknown says why there is no such kind, where the known ones tell: the APIs of Kubernetes have no
// other kinds, and an API without a dot in its name is one of these. Of an API that definitions
// make, it names a kind that was probably meant. It is "" where neither is so.
func Unknown(gvk schema.GroupVersionKind, known []schema.GroupVersionKind) string {
	groups, versions, kinds := map[string]bool{}, map[string]bool{}, map[string]bool{}
	elsewhere := ""
	for _, k := range slices.SortedFunc(slices.Values(known), func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) }) {
		groups[k.Group] = true
		if k.Group == gvk.Group {
			versions[k.Version] = true
			if k.Kind == gvk.Kind {
				elsewhere = k.GroupVersion().String()
			}
			if k.Version == gvk.Version {
				kinds[k.Kind] = true
			}
		}
	}
	api := gvk.GroupVersion().String()
	// An API of definitions may have further kinds in a cluster.
	whole := scheme.Scheme.IsGroupRegistered(gvk.Group)
	switch {
	case kinds[gvk.Kind]:
		return ""
	case elsewhere != "":
		return fmt.Sprintf("there is no kind %s of %s; it is of %s", gvk.Kind, api, elsewhere)
	case len(kinds) > 0 && (whole || meant(gvk.Kind, kinds) != ""):
		return fmt.Sprintf("there is no kind %s of %s%s", gvk.Kind, api, meant(gvk.Kind, kinds))
	case groups[gvk.Group] && whole:
		return fmt.Sprintf("there is no version %s of the API %q%s", gvk.Version, gvk.Group, meant(gvk.Version, versions))
	case !groups[gvk.Group] && !strings.Contains(gvk.Group, "."):
		return fmt.Sprintf("there is no API %q%s", gvk.Group, meant(gvk.Group, groups))
	}
	return ""
}

// Near says which API was probably meant by one that is unknown: one that is written nearly the
// same and has the kind, or one that differs by a letter. It is "" where the API is known or like
// none.
func Near(gvk schema.GroupVersionKind, known []schema.GroupVersionKind) string {
	var all, ofKind []string
	for _, k := range known {
		switch {
		case k.Group == gvk.Group:
			return ""
		case strings.Contains(k.Group, "."):
			all = append(all, k.Group)
			if k.Kind == gvk.Kind {
				ofKind = append(ofKind, k.Group)
			}
		}
	}
	guess := suggest.Within(gvk.Group, ofKind, 3)
	if guess == "" {
		guess = suggest.Within(gvk.Group, all, 1)
	}
	if guess == "" {
		return ""
	}
	return fmt.Sprintf("nothing that is rendered defines the API %q; did you mean %q?", gvk.Group, guess)
}

// meant names the word that was probably meant.
func meant(word string, known map[string]bool) string {
	words := make([]string, 0, len(known))
	for w := range known {
		words = append(words, w)
	}
	if guess := suggest.Word(word, words); guess != "" {
		return fmt.Sprintf("; did you mean %s?", guess)
	}
	return ""
}
