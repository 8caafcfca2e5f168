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
	// Noun is what people call a set in messages, such as ManagedResource; default: set.
	Noun string
	// FormerNames are those under which the same set was applied before.
	FormerNames []string
	// Objects are the desired objects; they are not modified.
	Objects []*unstructured.Unstructured
	// InjectLabels are added to objects, pod templates and volume claim templates.
	InjectLabels map[string]string
	// FieldManager is the server-side apply manager; required.
	FieldManager string
	// Force takes fields over from other managers. Without it they are reported as Conflict.
	Force bool
	// TakeBack repairs drift against other managers: what somebody else has changed in fields that
	// we applied, and owns by now, is taken back. A new wish that meets another manager is a
	// Conflict all the same, unless that one has changed our fields, too.
	TakeBack bool
	// TakeBackFrom tells from which managers that is done; nil is from all. The others' fields are
	// a Conflict.
	TakeBackFrom func(manager string) bool
	// InOrder says that objects refer to those that are applied before them: when one fails, those
	// of later phases are not tried, and nothing is pruned.
	InOrder bool
	// KeepObjects makes Delete leave the objects where they are.
	KeepObjects bool
	// ForceOverwriteLabels and ForceOverwriteAnnotations remove keys that others added, except
	// annotations that Kubernetes' own controllers keep.
	ForceOverwriteLabels, ForceOverwriteAnnotations bool
	// LeaveToCollector leaves Secrets and ConfigMaps that leave the set to a garbage collector, if
	// they have its label: others may still refer to them.
	LeaveToCollector bool
	// Equivalences are kinds that are the same objects under another API group.
	Equivalences [][]schema.GroupKind
	// DeletePersistentVolumeClaims deletes the claims of a StatefulSet together with it.
	DeletePersistentVolumeClaims bool
	// RebuildFrom are kinds among which the objects of this set are looked for, by their origin
	// annotation, when its inventory was lost; none means that a lost inventory is an empty one. It
	// must not be set where sets of the same name may exist.
	RebuildFrom []schema.GroupVersionKind
	// Sources says where objects come from, for error messages.
	Sources map[Ref]string
	// Private says that nobody else has the objects: they are changed as they have to be sent, and
	// not copied.
	Private bool
	// KeepSources notes the file of each object in the inventory, so that others can say where it
	// is declared.
	KeepSources bool
	// Yields are the fields that are left to others while these own them.
	Yields []Yield
}

// desired is an object of a set, made ready to be sent.
type desired struct {
	ref    Ref
	obj    *unstructured.Unstructured
	digest string // appliedDigest without create-only fields
	source string
}

// decorate makes the object that is sent from the declared one: what only a server sets is removed,
// labels are injected, the label and annotations of the engine added.
func (k Keys) decorate(s *Set, in *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	o := in
	if !s.Private {
		o = in.DeepCopy()
	}
	for _, field := range []string{"labels", "annotations"} {
		if _, _, err := unstructured.NestedStringMap(o.Object, "metadata", field); err != nil {
			return nil, safef("metadata.%s are not a map of strings", field)
		}
	}
	normalize(o)
	labels := merge(o.GetLabels(), s.InjectLabels)
	labels[k.ManagedByLabel] = k.ManagedByValue
	o.SetLabels(labels)
	annotations := merge(o.GetAnnotations(), nil)
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

func merge(base, over map[string]string) map[string]string {
	out := map[string]string{}
	maps.Copy(out, base)
	maps.Copy(out, over)
	return out
}

func normalize(o *unstructured.Unstructured) {
	dropAssigned(o)
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
			return // the server will refuse it and say so
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
			return safef("%s: %s are not a map of strings", RefOf(o), strings.Join(at, "."))
		}
		if err := unstructured.SetNestedStringMap(o.Object, merge(have, labels), at...); err != nil {
			return safef("%s: %s cannot be set", RefOf(o), strings.Join(at, "."))
		}
	}
	claims, found, _ := unstructured.NestedSlice(o.Object, "spec", "volumeClaimTemplates")
	if !found || groupKindOf(o) != statefulSet {
		return nil
	}
	for _, claim := range claims {
		if m, ok := claim.(map[string]any); ok {
			have, _, _ := unstructured.NestedStringMap(m, "metadata", "labels")
			_ = unstructured.SetNestedStringMap(m, merge(have, labels), "metadata", "labels")
		}
	}
	return unstructured.SetNestedSlice(o.Object, claims, "spec", "volumeClaimTemplates")
}

// hasPodTemplate keeps labels out of templates of custom resources that are no pod templates.
func hasPodTemplate(o *unstructured.Unstructured, path []string) bool {
	if path[1] == "jobTemplate" {
		return groupKindOf(o) == schema.GroupKind{Group: "batch", Kind: "CronJob"}
	}
	_, found, _ := unstructured.NestedSlice(o.Object, append(append([]string{}, path...), "spec", "containers")...)
	return found
}

// payload is the body of the apply request.
func payload(o *unstructured.Unstructured) ([]byte, error) {
	body, err := json.Marshal(o.Object)
	if err != nil {
		return nil, safef("%s cannot be written as JSON", RefOf(o))
	}
	return body, nil
}

func (s *Set) check() error {
	switch {
	case s.Name == "":
		return fmt.Errorf("a set needs a name")
	case s.FieldManager == "":
		return fmt.Errorf("set %s needs a field manager", s.Name)
	}
	return nil
}
