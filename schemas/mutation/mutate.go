// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

type ownerReference = metav1.OwnerReference

// The Mutate method returns what the API fills in of an object, without changing it. old is nil for
// a new object. The result is empty for kinds without mutations, deleted objects and broken
// structures. API defaults are in effect, but not among the changes.
func (s *Mutator) Mutate(object, old *unstructured.Unstructured) Result {
	if object == nil || object.GetDeletionTimestamp() != nil {
		return Result{}
	}
	switch object.GroupVersionKind().GroupKind() {
	case kindShoot:
		return s.mutateShootObject(object, old)
	case kindSeed:
		if seed := toTyped[gardencorev1beta1.Seed](object); seed != nil {
			return s.MutateSeed(seed)
		}
	case kindProject:
		if project := toTyped[gardencorev1beta1.Project](object); project != nil {
			return s.MutateProject(project, toTyped[gardencorev1beta1.Project](old))
		}
	case kindManagedSeed:
		return s.mutateManagedSeed(object)
	case kindBastion:
		return s.mutateBastion(object)
	default:
		return s.mutateExtensionLabels(object)
	}
	return Result{}
}

func (s *Mutator) mutateShootObject(object, old *unstructured.Unstructured) Result {
	shoot := toTyped[gardencorev1beta1.Shoot](object)
	if shoot == nil {
		return Result{}
	}
	before := toTyped[gardencorev1beta1.Shoot](old)
	if before == nil && old != nil {
		before = &gardencorev1beta1.Shoot{} // an old object exists, but is unreadable
	}
	return s.MutateShoot(shoot, before)
}

// MutateRevision returns the changes of a declaration that is the whole object, with its previous
// revision; see MutateShootRevision.
func (s *Mutator) MutateRevision(object, before *unstructured.Unstructured) Result {
	if object == nil || object.GetDeletionTimestamp() != nil || object.GroupVersionKind().GroupKind() != kindShoot {
		return s.Mutate(object, before)
	}
	shoot := toTyped[gardencorev1beta1.Shoot](object)
	if shoot == nil {
		return Result{}
	}
	return s.MutateShootRevision(shoot, toTyped[gardencorev1beta1.Shoot](before))
}

// MutateCopy returns the object with the filled-in values, and the changes; the same object if
// there are none.
func (s *Mutator) MutateCopy(object, old *unstructured.Unstructured) (*unstructured.Unstructured, Result, error) {
	result := s.Mutate(object, old)
	if len(result.Changes) == 0 {
		return object, result, nil
	}
	out := object.DeepCopy()
	return out, result, result.ApplyTo(out)
}

// mutateExtensionLabels handles kinds that only get extension labels.
func (s *Mutator) mutateExtensionLabels(object *unstructured.Unstructured) Result {
	text := func(from *unstructured.Unstructured, fields ...string) string {
		if from == nil {
			return ""
		}
		value, _, _ := unstructured.NestedString(from.Object, fields...)
		return value
	}
	var types string
	switch object.GroupVersionKind().GroupKind() {
	case kindSecretBinding, kindCredentialsBinding:
		types = text(object, "provider", "type")
	case kindWorkloadIdentity:
		types = text(object, "spec", "targetSystem", "type")
	case kindCloudProfile:
		types = text(object, "spec", "type")
	case kindNamespacedCloudProfile:
		types = text(s.lister.Get(kindCloudProfile, "", text(object, "spec", "parent", "name")), "spec", "type")
	case kindBackupBucket:
		types = text(object, "spec", "provider", "type")
	case kindBackupEntry:
		types = text(s.lister.Get(kindBackupBucket, "", text(object, "spec", "bucketName")), "spec", "provider", "type")
	default:
		return Result{}
	}
	if types == "" {
		return Result{}
	}
	r := &changeRecorder{kind: object.GetKind(), namespace: object.GetNamespace(), name: object.GetName()}
	wanted := labelSet{}
	for typ := range strings.SplitSeq(types, ",") {
		wanted.addType(labelProvider, strings.TrimSpace(typ))
	}
	r.syncExtensionLabels(object.DeepCopy(), wanted)
	return r.Result
}
