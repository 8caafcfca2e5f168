// SPDX-License-Identifier: Apache-2.0

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

// UnknownKind explains why a kind does not exist, or returns "". Kubernetes APIs have no other
// kinds than known ones, and an API without a dot in its name must be one of them. For APIs of
// definitions, it reports only likely misspellings.
func UnknownKind(gvk schema.GroupVersionKind, known []schema.GroupVersionKind) string {
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
	// A cluster may have further kinds of an API of definitions.
	whole := scheme.Scheme.IsGroupRegistered(gvk.Group)
	switch {
	case kinds[gvk.Kind]:
		return ""
	case elsewhere != "":
		return fmt.Sprintf("there is no kind %s of %s; it is of %s", gvk.Kind, api, elsewhere)
	case len(kinds) > 0 && (whole || likelyWordHint(gvk.Kind, kinds) != ""):
		return fmt.Sprintf("there is no kind %s of %s%s", gvk.Kind, api, likelyWordHint(gvk.Kind, kinds))
	case groups[gvk.Group] && whole:
		return fmt.Sprintf("there is no version %s of the API %q%s", gvk.Version, gvk.Group, likelyWordHint(gvk.Version, versions))
	case !groups[gvk.Group] && !strings.Contains(gvk.Group, "."):
		return fmt.Sprintf("there is no API %q%s", gvk.Group, likelyWordHint(gvk.Group, groups))
	}
	return ""
}

// SimilarAPI suggests an API for an unknown one: with a similar name and the kind, or with one
// different letter. It is "" if the API is known or not similar to any.
func SimilarAPI(gvk schema.GroupVersionKind, known []schema.GroupVersionKind) string {
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
	guess := suggest.ClosestWithin(gvk.Group, ofKind, 3)
	if guess == "" {
		guess = suggest.ClosestWithin(gvk.Group, all, 1)
	}
	if guess == "" {
		return ""
	}
	return fmt.Sprintf("no rendered object defines the API %q; did you mean %q?", gvk.Group, guess)
}

// likelyWordHint is a hint with the most likely word.
func likelyWordHint(word string, known map[string]bool) string {
	words := make([]string, 0, len(known))
	for w := range known {
		words = append(words, w)
	}
	if guess := suggest.Closest(word, words); guess != "" {
		return fmt.Sprintf("; did you mean %s?", guess)
	}
	return ""
}
