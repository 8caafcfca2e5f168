package garbagecollector

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
)

// Kinds that are collected, as annotations and logs name them.
const (
	kindSecret    = "secret"
	kindConfigMap = "configmap"
)

// objectID is one object: another one of its name is something else.
type objectID struct {
	kind, namespace, name string
	uid                   types.UID
}

// object is what has to be known of one.
type object struct {
	version string
	created time.Time
}

// reference is what an annotation names.
type reference struct{ kind, namespace, name string }

// references are what annotations name.
type references map[reference]struct{}

func (r references) has(id objectID) bool {
	_, ok := r[reference{id.kind, id.namespace, id.name}]
	return ok
}

// add notes what the annotations of an object name: its own namespace's Secrets and ConfigMaps. The
// hash is not looked at, as upstream does not: it only makes keys differ.
func (r references) add(namespace string, annotations map[string]string) {
	for key, name := range annotations {
		rest, ok := strings.CutPrefix(key, resourcesv1alpha1.ReferenceAnnotationPrefix)
		if !ok || name == "" {
			continue
		}
		if kind, _, ok := strings.Cut(rest, "-"); ok && (kind == kindSecret || kind == kindConfigMap) {
			r[reference{kind, namespace, name}] = struct{}{}
		}
	}
}

// named calls found with those names that stand anywhere in a value as a whole string. Where names
// stand differs by kind and by sort of volume; the names of garbage end in a hash, so that nothing
// else is likely to be one.
func named(value any, names map[string][]objectID, found func(objectID)) {
	switch v := value.(type) {
	case string:
		for _, id := range names[v] {
			found(id)
		}
	case []any:
		for _, element := range v {
			named(element, names, found)
		}
	case map[string]any:
		for _, element := range v {
			named(element, names, found)
		}
	}
}
