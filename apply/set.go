// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"maps"
	"strings"

	"github.com/fluxcd/pkg/ssa/utils"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"

	"encoding/base64"
)

// Set is a group of objects that is applied, pruned and deleted as one, with one inventory.
type Set struct {
	// Name is unique in the cluster: "[<clusterID>:]<namespace>/<name>". It becomes the origin
	// annotation, by which sets hand objects over to each other.
	Name string
	// DisplayKind is the word for a set in messages, such as ManagedResource; the default is set.
	DisplayKind string
	// PreviousNames are names under which the same set was applied before.
	PreviousNames []string
	// Objects are the desired objects; they are not modified.
	Objects []*unstructured.Unstructured
	// InjectLabels are added to objects, pod templates and volume claim templates.
	InjectLabels map[string]string
	// FieldManager is the server-side apply manager; required.
	FieldManager string
	// Force takes over fields from other managers. Without it they are reported as Conflict.
	Force bool
	// TakeBack repairs drift against other managers: it takes back applied fields that they changed
	// and own now. A newly declared value that conflicts with a manager is a Conflict, unless that
	// manager has changed our fields, too.
	TakeBack bool
	// TakeBackFrom reports whether TakeBack applies to a manager; nil means all. Fields of the
	// others are a Conflict.
	TakeBackFrom func(manager string) bool
	// InOrder means that objects depend on those applied before them: after a failure, later phases
	// are not tried, and nothing is pruned.
	InOrder bool
	// KeepObjects makes Delete leave the objects in the cluster.
	KeepObjects bool
	// ForceOverwriteLabels and ForceOverwriteAnnotations remove keys that others added, except
	// annotations of Kubernetes' own controllers.
	ForceOverwriteLabels, ForceOverwriteAnnotations bool
	// LeaveToCollector leaves the deletion of Secrets and ConfigMaps with the garbage collector's
	// label to the collector: others may still refer to them.
	LeaveToCollector bool
	// Equivalences are kinds that are the same objects under another API group.
	Equivalences [][]schema.GroupKind
	// DeletePersistentVolumeClaims deletes the claims of a StatefulSet together with it.
	DeletePersistentVolumeClaims bool
	// RebuildFrom lists the kinds in which objects of this set are searched, by origin annotation,
	// when its inventory was lost. Without kinds, a lost inventory is an empty one. It must not be
	// set where sets of the same name may exist.
	RebuildFrom []schema.GroupVersionKind
	// Sources maps objects to file and line, for error messages.
	Sources map[Ref]string
	// ModifyObjects means that no one else uses the objects: they are modified and not copied.
	ModifyObjects bool
	// RecordSources stores the file of each object in the inventory, so that others can report it.
	RecordSources bool
	// FieldPolicies are the fields that are handed over while others own them.
	FieldPolicies []FieldPolicy
}

// desiredObject is an object of a set, ready to be sent.
type desiredObject struct {
	ref    Ref
	obj    *unstructured.Unstructured
	digest string // appliedDigest without create-only fields
	source string
}

// decorate returns the object to send for a declared one: without fields that only a server sets,
// with injected labels and the engine's own metadata.
func (k Keys) decorate(s *Set, in *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	o := in
	if !s.ModifyObjects {
		o = in.DeepCopy()
	}
	for _, field := range []string{"labels", "annotations"} {
		if _, _, err := unstructured.NestedStringMap(o.Object, "metadata", field); err != nil {
			return nil, valueFreeErrorf("metadata.%s are not a map of strings", field)
		}
	}
	normalize(o)
	labels := mergeMaps(o.GetLabels(), s.InjectLabels)
	labels[k.ManagedByLabel] = k.ManagedByValue
	o.SetLabels(labels)
	annotations := mergeMaps(o.GetAnnotations(), nil)
	annotations[k.Origin] = s.Name
	annotations[k.Description] = k.DescriptionText
	o.SetAnnotations(annotations)
	if len(s.InjectLabels) > 0 {
		if err := injectIntoTemplates(o, s.InjectLabels); err != nil {
			return nil, err
		}
	}
	return o, nil
}

func mergeMaps(base, over map[string]string) map[string]string {
	out := map[string]string{}
	maps.Copy(out, base)
	maps.Copy(out, over)
	return out
}

func normalize(o *unstructured.Unstructured) {
	dropAPIManagedFields(o)
	utils.RemoveCABundleFromCRD(o)
	if groupKindOf(o) == secretKind {
		stringDataToData(o)
	}
}

// stringDataToData moves stringData into data as the server does: an apply of stringData could
// never remove a key again (https://github.com/kubernetes/kubernetes/issues/108008).
func stringDataToData(o *unstructured.Unstructured) {
	plain, found, _ := unstructured.NestedMap(o.Object, "stringData")
	if !found {
		return
	}
	data, _, _ := unstructured.NestedMap(o.Object, "data")
	if data == nil {
		data = map[string]any{}
	}
	for k, v := range plain {
		text, ok := v.(string)
		if !ok {
			return // the server refuses it with an error
		}
		data[k] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	unstructured.RemoveNestedField(o.Object, "stringData")
	_ = unstructured.SetNestedMap(o.Object, data, "data")
}

// injectIntoTemplates adds labels to the pod template and the volume claim templates of a workload.
func injectIntoTemplates(o *unstructured.Unstructured, labels map[string]string) error {
	for _, path := range [][]string{{"spec", "template"}, {"spec", "jobTemplate"}, {"spec", "jobTemplate", "spec", "template"}} {
		if len(path) == 2 && !hasPodTemplate(o, path) {
			continue
		}
		if _, found, _ := unstructured.NestedMap(o.Object, path...); !found {
			continue
		}
		at := append(append([]string{}, path...), "metadata", "labels")
		have, _, err := unstructured.NestedStringMap(o.Object, at...)
		if err != nil {
			return valueFreeErrorf("%s: %s are not a map of strings", RefOf(o), strings.Join(at, "."))
		}
		if err := unstructured.SetNestedStringMap(o.Object, mergeMaps(have, labels), at...); err != nil {
			return valueFreeErrorf("%s: %s cannot be set", RefOf(o), strings.Join(at, "."))
		}
	}
	claims, found, _ := unstructured.NestedSlice(o.Object, "spec", "volumeClaimTemplates")
	if !found || groupKindOf(o) != statefulSet {
		return nil
	}
	for _, claim := range claims {
		if m, ok := claim.(map[string]any); ok {
			have, _, _ := unstructured.NestedStringMap(m, "metadata", "labels")
			_ = unstructured.SetNestedStringMap(m, mergeMaps(have, labels), "metadata", "labels")
		}
	}
	return unstructured.SetNestedSlice(o.Object, claims, "spec", "volumeClaimTemplates")
}

// hasPodTemplate reports whether a path leads to a pod template, and not to another template of a
// custom resource.
func hasPodTemplate(o *unstructured.Unstructured, path []string) bool {
	if path[1] == "jobTemplate" {
		return groupKindOf(o) == schema.GroupKind{Group: "batch", Kind: "CronJob"}
	}
	_, found, _ := unstructured.NestedSlice(o.Object, append(append([]string{}, path...), "spec", "containers")...)
	return found
}

// encodeBody encodes an object as the body of a request.
func encodeBody(o *unstructured.Unstructured) ([]byte, error) {
	body, err := json.Marshal(o.Object)
	if err != nil {
		return nil, valueFreeErrorf("%s cannot be written as JSON", RefOf(o))
	}
	return body, nil
}

func (s *Set) validate() error {
	switch {
	case s.Name == "":
		return fmt.Errorf("a set needs a name")
	case s.FieldManager == "":
		return fmt.Errorf("set %s needs a field manager", s.Name)
	}
	return nil
}
