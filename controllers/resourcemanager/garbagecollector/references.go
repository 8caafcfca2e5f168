// SPDX-License-Identifier: Apache-2.0

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

// objectID identifies one object: a new object of the same name has another UID.
type objectID struct {
	kind, namespace, name string
	uid                   types.UID
}

// deletionCandidate is the data about an object that a deletion needs.
type deletionCandidate struct {
	resourceVersion string
	created         time.Time
}

// reference is the object that an annotation names.
type reference struct{ kind, namespace, name string }

// references are the objects that annotations name.
type references map[reference]struct{}

func (r references) has(id objectID) bool {
	_, ok := r[reference{id.kind, id.namespace, id.name}]
	return ok
}

// add records the Secrets and ConfigMaps of the same namespace that annotations name. It ignores
// the hash, as upstream does: the hash only makes keys differ.
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

// findNames calls found for each name that is a whole string anywhere in a value. The place of
// names differs by kind and type of volume. Names of garbage end in a hash, so other strings hardly
// match.
func findNames(value any, names map[string][]objectID, found func(objectID)) {
	switch v := value.(type) {
	case string:
		for _, id := range names[v] {
			found(id)
		}
	case []any:
		for _, element := range v {
			findNames(element, names, found)
		}
	case map[string]any:
		for _, element := range v {
			findNames(element, names, found)
		}
	}
}
