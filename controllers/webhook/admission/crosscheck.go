// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	securityv1alpha1 "github.com/pergola-dev/pergola/api/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/pergola-dev/pergola/api/seedmanagement/v1alpha1"
	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/crosscheck"
	"github.com/pergola-dev/pergola/schemas/mutation"
)

// ruleExposureClassScheduling compares a Shoot with the fields that its exposure class adds. It
// needs the Shoot as its author wrote it: defaulting adds the fields.
const ruleExposureClassScheduling = "shoot/exposure-class-scheduling"

// isAuthorTextRule reports whether a rule checks the text of an author, which defaulting changes.
func isAuthorTextRule(rule string) bool {
	return rule == ruleExposureClassScheduling || crosscheck.IsUnreadRule(rule)
}

// relatedKinds returns the kinds that rules and mutations of a kind read, or none for other kinds.
// Secrets and ConfigMaps are never read: references to them are assumed to be valid.
func relatedKinds(kind schema.GroupKind) []schema.GroupVersionKind {
	core, seedmanagement := gardencorev1beta1.SchemeGroupVersion, seedmanagementv1alpha1.SchemeGroupVersion
	profiles := []schema.GroupVersionKind{core.WithKind("CloudProfile"), core.WithKind("NamespacedCloudProfile")}
	seed, shoot, project := core.WithKind("Seed"), core.WithKind("Shoot"), core.WithKind("Project")
	registrations, managed := core.WithKind("ControllerRegistration"), seedmanagement.WithKind("ManagedSeed")
	bindings := []schema.GroupVersionKind{core.WithKind("SecretBinding"), securityv1alpha1.SchemeGroupVersion.WithKind("CredentialsBinding")}
	ofShoot := slices.Concat(profiles, []schema.GroupVersionKind{seed, shoot, project, registrations, core.WithKind("ExposureClass")}, bindings)
	identities := securityv1alpha1.SchemeGroupVersion.WithKind("WorkloadIdentity")
	switch kind {
	case shoot.GroupKind():
		return ofShoot
	case seed.GroupKind():
		return []schema.GroupVersionKind{seed, shoot, registrations, managed, identities}
	case managed.GroupKind(), seedmanagement.WithKind("Gardenlet").GroupKind():
		return append(ofShoot, managed, seedmanagement.WithKind("Gardenlet"))
	case project.GroupKind():
		return []schema.GroupVersionKind{project}
	case profiles[0].GroupKind():
		return []schema.GroupVersionKind{profiles[1], shoot}
	case profiles[1].GroupKind():
		return []schema.GroupVersionKind{profiles[0], shoot}
	case registrations.GroupKind():
		return []schema.GroupVersionKind{registrations, core.WithKind("ControllerDeployment")}
	case bindings[0].GroupKind(), bindings[1].GroupKind():
		return []schema.GroupVersionKind{core.WithKind("Quota"), identities}
	case core.WithKind("BackupBucket").GroupKind():
		return []schema.GroupVersionKind{seed, identities}
	case core.WithKind("BackupEntry").GroupKind():
		return []schema.GroupVersionKind{seed, core.WithKind("BackupBucket")}
	case core.WithKind("ControllerInstallation").GroupKind():
		return []schema.GroupVersionKind{seed, registrations, core.WithKind("ControllerDeployment")}
	}
	if kind.Kind == "Bastion" {
		return slices.Concat(profiles, []schema.GroupVersionKind{seed, shoot, project})
	}
	return nil
}

// relatedObjects contains the objects that rules and mutations of an object read.
type relatedObjects struct {
	objects []*unstructured.Unstructured
	// usingShoots are Shoots that use the object. They only matter for the fields that it must keep
	// for them. There may be thousands.
	usingShoots []*unstructured.Unstructured
	// unreadableKinds are the kinds that cannot be read.
	unreadableKinds []crosscheck.External
}

// readRelatedObjects reads the landscape of an object, or nil without Surroundings, or if the kind
// does not belong to the virtual garden.
func (h *Handler) readRelatedObjects(ctx context.Context, object *unstructured.Unstructured, fresh bool) (*relatedObjects, error) {
	if h.objectLister == nil || !slices.Contains(ClusterVirtual.apiGroups(), object.GroupVersionKind().Group) {
		return nil, nil
	}
	kinds := relatedKinds(object.GroupVersionKind().GroupKind())
	around := &relatedObjects{}
	unknown := func(kind string) {
		around.unreadableKinds = append(around.unreadableKinds, crosscheck.External{Kind: kind, Namespace: "*", Name: "*"}, crosscheck.External{Kind: kind, Name: "*"})
	}
	for _, kind := range []string{"Secret", "ConfigMap", "InternalSecret"} {
		unknown(kind)
	}
	for _, kind := range kinds {
		// Only Shoots are numerous, and only those of the same namespace or domain matter.
		many := kind.Kind == "Shoot"
		found, served, err := h.objectLister.Objects(ctx, kind, fresh && !many)
		if err != nil {
			return nil, lookupError{err}
		}
		if !served {
			unknown(kind.Kind)
			if kind.Kind == "Project" {
				unknown(kindNamespace)
			}
		}
		for _, other := range found {
			switch {
			case !many || isRelevantShoot(object, other):
				around.objects = append(around.objects, other)
			case isShootUsing(other, object):
				around.usingShoots = append(around.usingShoots, other)
			}
		}
	}
	// Sort them as messages name them, because the order of a cache is random.
	slices.SortFunc(around.usingShoots, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return around, nil
}

// isRelevantShoot reports whether a Shoot can matter to an object: as a reference, a future Seed,
// or an owner of the same domain.
func isRelevantShoot(object, shoot *unstructured.Unstructured) bool {
	for _, ref := range [][]string{{"spec", "shoot", "name"}, {"spec", "shootRef", "name"}} {
		if name, _, _ := unstructured.NestedString(object.Object, ref...); name != "" && name == shoot.GetName() && shoot.GetNamespace() == object.GetNamespace() {
			return true
		}
	}
	if object.GetKind() == "Seed" && shoot.GetNamespace() == gardencorev1beta1.GardenNamespace {
		return true
	}
	own, other := dnsDomain(object), dnsDomain(shoot)
	return own != "" && own == other
}

// isShootUsing reports whether a Shoot is on a Seed or uses a cloud profile. A CloudProfile counts
// all Shoots with NamespacedCloudProfiles; rules check the parent later.
func isShootUsing(shoot, object *unstructured.Unstructured) bool {
	field := func(path ...string) string {
		value, _, _ := unstructured.NestedString(shoot.Object, path...)
		return value
	}
	profile, kind := cmp.Or(field("spec", "cloudProfile", "name"), field("spec", "cloudProfileName")), field("spec", "cloudProfile", "kind")
	switch object.GetKind() {
	case "Seed", "ManagedSeed":
		return field("spec", "seedName") == object.GetName() || field("status", "seedName") == object.GetName()
	case "CloudProfile":
		return profile == object.GetName() || kind == "NamespacedCloudProfile"
	case "NamespacedCloudProfile":
		return profile == object.GetName() && kind == object.GetKind() && shoot.GetNamespace() == object.GetNamespace()
	}
	return false
}

func dnsDomain(object *unstructured.Unstructured) string {
	for _, field := range [][]string{{"spec", "dns", "domain"}, {"spec", "ingress", "domain"}} {
		if name, _, _ := unstructured.NestedString(object.Object, field...); name != "" {
			return strings.ToLower(strings.TrimSuffix(name, "."))
		}
	}
	return ""
}

// crossCheck returns the findings of the rules across the landscape about an object.
func (h *Handler) crossCheck(around *relatedObjects, object, old *unstructured.Unstructured) []schemas.Violation {
	inputs := make([]schemas.Input, 0, len(around.objects)+len(around.usingShoots)+1)
	for _, other := range around.objects {
		if !isSameObject(object, other) {
			inputs = append(inputs, schemas.Input{Object: other, Old: other})
		}
	}
	users := map[*unstructured.Unstructured]bool{}
	for _, shoot := range around.usingShoots {
		users[shoot] = true
		inputs = append(inputs, schemas.Input{Object: shoot, Old: shoot})
	}
	// The object comes last: unique names belong to the existing objects.
	inputs = append(inputs, schemas.Input{Object: object, Old: old})
	var found []schemas.Violation
	onlyUses := func(in *schemas.Input) bool { return users[in.Object] }
	for _, v := range crosscheck.Check(inputs, crosscheck.Options{Now: h.clock.Now(), External: around.unreadableKinds, IsReferenceOnly: onlyUses}) {
		if v.Kind == object.GetKind() && v.Namespace == object.GetNamespace() && v.Name == object.GetName() {
			found = append(found, v)
		}
	}
	return found
}

func (h *Handler) newMutator(around *relatedObjects) *mutation.Mutator {
	return mutation.New(mutation.NewObjectLister(around.objects), h.clock.Now())
}

func isSameObject(a, b *unstructured.Unstructured) bool {
	return a.GroupVersionKind().GroupKind() == b.GroupVersionKind().GroupKind() && a.GetNamespace() == b.GetNamespace() && a.GetName() == b.GetName()
}

// completeObject returns an object with mutations and defaults; the object itself if they change
// nothing.
func (h *Handler) completeObject(around *relatedObjects, object, old *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if around != nil {
		filled, _, err := h.newMutator(around).MutateCopy(object, old)
		if err != nil {
			return nil, fmt.Errorf("setting the defaults of the object: %w", err)
		}
		object = filled
	}
	return h.defaults.withDefaults(object), nil
}

// validateObject returns all findings about an object. The cache may be stale, so errors that
// depend on other objects are checked again with fresh ones.
func (h *Handler) validateObject(ctx context.Context, object, old *unstructured.Unstructured) ([]schemas.Violation, error) {
	around, err := h.readRelatedObjects(ctx, object, false)
	if err != nil {
		return nil, err
	}
	var together []schemas.Violation
	if around != nil {
		if together = h.crossCheck(around, object, old); schemas.HasErrors(together) {
			if around, err = h.readRelatedObjects(ctx, object, true); err != nil {
				return nil, err
			}
			together = h.crossCheck(around, object, old)
		}
	}
	options := schemas.Options{Workers: 1}
	if around != nil {
		options.Landscape = &schemas.LandscapeObjects{Objects: around.objects}
	}
	found, err := h.validate(ctx, []schemas.Input{{Object: object, Old: old}}, options)
	if err != nil {
		return nil, err
	}
	found = append(found, slices.DeleteFunc(together, func(v schemas.Violation) bool { return isAuthorTextRule(v.Rule) })...)
	found = crosscheck.DropSuperseded(found)
	schemas.SortViolations(found)
	return found, nil
}
