// SPDX-License-Identifier: Apache-2.0

package crosscheck

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	operatorv1alpha1 "github.com/pergola-dev/pergola/api/operator/v1alpha1"
	securityv1alpha1 "github.com/pergola-dev/pergola/api/security/v1alpha1"
	"github.com/pergola-dev/pergola/internal/suggest"
	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/resultcache"
)

func coreKind(kind string) schema.GroupKind {
	return schema.GroupKind{Group: gardencorev1beta1.SchemeGroupVersion.Group, Kind: kind}
}

// Kinds that other objects refer to.
var (
	kindSecret             = schema.GroupKind{Kind: "Secret"}
	kindConfigMap          = schema.GroupKind{Kind: "ConfigMap"}
	kindNamespace          = schema.GroupKind{Kind: "Namespace"}
	kindGarden             = schema.GroupKind{Group: operatorv1alpha1.SchemeGroupVersion.Group, Kind: "Garden"}
	kindLandscape          = schema.GroupKind{Group: landscapev1alpha1.SchemeGroupVersion.Group, Kind: "Landscape"}
	kindOperatorExtension  = schema.GroupKind{Group: operatorv1alpha1.SchemeGroupVersion.Group, Kind: "Extension"}
	kindCredentialsBinding = schema.GroupKind{Group: securityv1alpha1.SchemeGroupVersion.Group, Kind: "CredentialsBinding"}
	kindWorkloadIdentity   = schema.GroupKind{Group: securityv1alpha1.SchemeGroupVersion.Group, Kind: "WorkloadIdentity"}
	kindSeed               = coreKind("Seed")
	kindShoot              = coreKind("Shoot")
	kindProject            = coreKind("Project")
	kindCloudProfile       = coreKind("CloudProfile")
	kindNamespacedProfile  = coreKind("NamespacedCloudProfile")
	kindExposureClass      = coreKind("ExposureClass")
	kindRegistration       = coreKind("ControllerRegistration")
)

// objectIndex finds the objects of a landscape. Its methods record the rules' questions: while the
// answers stay the same, so do the findings.
type objectIndex struct {
	objectsByID   map[identity]*schemas.Input
	objectsByKind map[schema.GroupKind][]*schemas.Input
	// projectsByNamespace are keyed by namespace.
	projectsByNamespace map[string]*schemas.Input
	// loadedProfiles are the requested cloud profiles; they are nil for unreadable ones.
	loadedProfiles map[identity]*profileOffers
	// valueOwners maps a unique value to its object.
	valueOwners map[uniqueValue]*schemas.Input
	// extensionOffers are the registered extension kinds and types; nil before the first request.
	extensionOffers map[extensionOffer]bool
	// configContents are the requested configurations in ConfigMaps.
	configContents map[configKey]configMapContent

	// currentNotes are the questions about the current object; nil disables recording.
	currentNotes *cleanResult
	// objectDigests are the digests of requested objects, and answers to questions.
	objectDigests map[*schemas.Input]resultcache.Key
	answerDigests map[landscapeQuery]resultcache.Key
}

func newIndex(inputs []schemas.Input) *objectIndex {
	i := &objectIndex{
		objectsByID: make(map[identity]*schemas.Input, len(inputs)), objectsByKind: map[schema.GroupKind][]*schemas.Input{},
		projectsByNamespace: map[string]*schemas.Input{}, loadedProfiles: map[identity]*profileOffers{}, valueOwners: map[uniqueValue]*schemas.Input{}, configContents: map[configKey]configMapContent{},
		objectDigests: map[*schemas.Input]resultcache.Key{}, answerDigests: map[landscapeQuery]resultcache.Key{},
	}
	for n := range inputs {
		in := &inputs[n]
		if in.IsDeclared() {
			id := identityOf(in)
			i.objectsByID[id] = in
			i.objectsByKind[id.kind] = append(i.objectsByKind[id.kind], in)
		}
	}
	return i
}

// addProject indexes the namespace of a Project.
func (i *objectIndex) addProject(in *schemas.Input, namespace string) {
	if namespace != "" && i.projectsByNamespace[namespace] == nil {
		i.projectsByNamespace[namespace] = in
	}
}

// findObject returns an object, or nil if the landscape does not declare it.
func (i *objectIndex) findObject(id identity) *schemas.Input {
	i.recordQuery(landscapeQuery{topicContent, id})
	return i.objectsByID[id]
}

// hasObject reports whether the landscape declares an object.
func (i *objectIndex) hasObject(id identity) bool {
	i.recordQuery(landscapeQuery{topicPresence, id})
	return i.objectsByID[id] != nil
}

// allOfKind returns the objects of a kind.
func (i *objectIndex) allOfKind(kind schema.GroupKind) []*schemas.Input {
	i.recordQuery(landscapeQuery{topicKind, identity{kind: kind}})
	return i.objectsByKind[kind]
}

// findProject returns the Project of a namespace, or nil if none exists.
func (i *objectIndex) findProject(namespace string) *schemas.Input {
	i.recordQuery(landscapeQuery{topicProject, identity{namespace: namespace}})
	return i.projectsByNamespace[namespace]
}

// kindsNamed returns the landscape's kinds of that name, sorted by group.
func (i *objectIndex) kindsNamed(name string) []schema.GroupKind {
	i.recordQuery(landscapeQuery{topicKindName, identity{name: name}})
	var kinds []schema.GroupKind
	for kind := range i.objectsByKind {
		if kind.Kind == name {
			kinds = append(kinds, kind)
		}
	}
	slices.SortFunc(kinds, func(a, b schema.GroupKind) int { return strings.Compare(a.Group, b.Group) })
	return kinds
}

// suggestName returns a hint at a declared object with a similar name, of the same kind and
// namespace.
func (i *objectIndex) suggestName(id identity) string {
	var names []string
	for _, in := range i.objectsByKind[id.kind] {
		if known := identityOf(in); known.namespace == id.namespace {
			names = append(names, known.name)
		}
	}
	if guess := suggest.Closest(id.name, names); guess != "" {
		return "; did you mean \"" + guess + "\"?"
	}
	return ""
}

// toTyped converts an object to its Go type; the result is false if its structure is broken.
func toTyped(object *unstructured.Unstructured, into any) bool {
	return runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into) == nil
}
