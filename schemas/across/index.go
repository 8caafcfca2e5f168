package across

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
	"github.com/pergola-dev/pergola/schemas/kept"
)

func core(kind string) schema.GroupKind {
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
	kindSeed               = core("Seed")
	kindShoot              = core("Shoot")
	kindProject            = core("Project")
	kindCloudProfile       = core("CloudProfile")
	kindNamespacedProfile  = core("NamespacedCloudProfile")
	kindExposureClass      = core("ExposureClass")
	kindRegistration       = core("ControllerRegistration")
)

// index finds the objects of a landscape. Its methods record the rules' questions: while the
// answers stay the same, so do the findings.
type index struct {
	objects map[identity]*schemas.Input
	names   map[schema.GroupKind][]*schemas.Input
	// projects are keyed by namespace.
	projects map[string]*schemas.Input
	// profiles are the requested cloud profiles; nil for unreadable ones.
	profiles map[identity]*profile
	// uses maps a unique value to its object.
	uses map[use]*schemas.Input
	// offers are the registered extension kinds and types; nil before the first request.
	offers map[offer]bool
	// configs are the requested configurations in ConfigMaps.
	configs map[configKey]config

	// noted are the questions about the current object; nil disables recording.
	noted *notes
	// digests of requested objects, and answers to questions.
	digests map[*schemas.Input]kept.Key
	answers map[question]kept.Key
}

func newIndex(inputs []schemas.Input) *index {
	i := &index{
		objects: make(map[identity]*schemas.Input, len(inputs)), names: map[schema.GroupKind][]*schemas.Input{},
		projects: map[string]*schemas.Input{}, profiles: map[identity]*profile{}, uses: map[use]*schemas.Input{}, configs: map[configKey]config{},
		digests: map[*schemas.Input]kept.Key{}, answers: map[question]kept.Key{},
	}
	for n := range inputs {
		in := &inputs[n]
		if in.IsDeclared() {
			id := identityOf(in)
			i.objects[id] = in
			i.names[id.kind] = append(i.names[id.kind], in)
		}
	}
	return i
}

// addProject indexes the namespace of a Project.
func (i *index) addProject(in *schemas.Input, namespace string) {
	if namespace != "" && i.projects[namespace] == nil {
		i.projects[namespace] = in
	}
}

// find returns an object; nil if the landscape does not declare it.
func (i *index) find(id identity) *schemas.Input {
	i.ask(question{aboutContent, id})
	return i.objects[id]
}

// has reports whether the landscape declares an object.
func (i *index) has(id identity) bool {
	i.ask(question{aboutPresence, id})
	return i.objects[id] != nil
}

// all returns the objects of a kind.
func (i *index) all(kind schema.GroupKind) []*schemas.Input {
	i.ask(question{aboutKind, identity{kind: kind}})
	return i.names[kind]
}

// projectOf returns the Project of a namespace; nil if none exists.
func (i *index) projectOf(namespace string) *schemas.Input {
	i.ask(question{aboutProject, identity{namespace: namespace}})
	return i.projects[namespace]
}

// kindsNamed returns the landscape's kinds of that name, sorted by group.
func (i *index) kindsNamed(name string) []schema.GroupKind {
	i.ask(question{aboutKindName, identity{name: name}})
	var kinds []schema.GroupKind
	for kind := range i.names {
		if kind.Kind == name {
			kinds = append(kinds, kind)
		}
	}
	slices.SortFunc(kinds, func(a, b schema.GroupKind) int { return strings.Compare(a.Group, b.Group) })
	return kinds
}

// suggest returns a hint at a declared object with a similar name, of the same kind and namespace.
func (i *index) suggest(id identity) string {
	var names []string
	for _, in := range i.names[id.kind] {
		if known := identityOf(in); known.namespace == id.namespace {
			names = append(names, known.name)
		}
	}
	if guess := suggest.Closest(id.name, names); guess != "" {
		return "; did you mean \"" + guess + "\"?"
	}
	return ""
}

// typed converts an object to its Go type; false if its structure is broken.
func typed(object *unstructured.Unstructured, into any) bool {
	return runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into) == nil
}
