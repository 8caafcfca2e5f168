// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/internal/suggest"
	"github.com/pergola-dev/pergola/landscapes"
)

// cloudProfile returns the CloudProfile of a Shoot as its components see it, or nil if the Shoot
// names none, which the schemas report.
func (b *ownerBuilder) cloudProfile(declared landscapes.TypedObject[gardencorev1beta1.Shoot]) (map[string]any, error) {
	spec := declared.Object.Spec
	kind, name, field := gardencorev1beta1.CloudProfileKind, "", "spec.cloudProfile.name"
	if spec.CloudProfile != nil {
		kind, name = spec.CloudProfile.Kind, spec.CloudProfile.Name
	} else if spec.CloudProfileName != nil {
		name, field = *spec.CloudProfileName, "spec.cloudProfileName"
	}
	if name == "" {
		return nil, nil
	}
	if kind == gardencorev1beta1.NamespacedCloudProfileKind {
		return b.namespacedCloudProfile(declared, name)
	}
	profile, ok := b.profiles[name]
	if !ok {
		return nil, declaredFinding(declared.Declaration, field, ruleBinding, fmt.Sprintf("no CloudProfile %q in this landscape%s", name, didYouMean(name, sortedKeys(b.profiles))))
	}
	return toMap(profile)
}

func didYouMean(name string, known []string) string {
	if guess := suggest.Closest(name, known); guess != "" {
		return fmt.Sprintf("; did you mean %q?", guess)
	}
	return ""
}

// namespacedCloudProfile merges a NamespacedCloudProfile into its parent.
func (b *ownerBuilder) namespacedCloudProfile(shoot landscapes.TypedObject[gardencorev1beta1.Shoot], name string) (map[string]any, error) {
	kind := schema.GroupKind{Group: gardencorev1beta1.SchemeGroupVersion.Group, Kind: gardencorev1beta1.NamespacedCloudProfileKind}
	namespace := shoot.Object.Namespace
	declaration := b.shootObjects.byName[objectName{kind, namespace, name}]
	if declaration == nil {
		return nil, declaredFinding(shoot.Declaration, "spec.cloudProfile.name", ruleBinding, fmt.Sprintf("no NamespacedCloudProfile %q in namespace %s of this landscape", name, namespace))
	}
	own := &gardencorev1beta1.NamespacedCloudProfile{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(declaration.Object().Object, own); err != nil {
		return nil, declaration.WrapError(err)
	}
	parent, ok := b.profiles[own.Spec.Parent.Name]
	if !ok {
		return nil, declaredFinding(declaration, "spec.parent.name", ruleBinding, fmt.Sprintf("no CloudProfile %q in this landscape%s", own.Spec.Parent.Name, didYouMean(own.Spec.Parent.Name, sortedKeys(b.profiles))))
	}
	if own.Spec.ProviderConfig != nil && parent.Spec.ProviderConfig != nil {
		return nil, declaredFinding(declaration, "spec.providerConfig", ruleBinding, "only the provider's extension can merge it with the parent's, and this version does not call it: remove one of them")
	}
	return toMap(gardencorev1beta1.CombineCloudProfiles(parent, own))
}
