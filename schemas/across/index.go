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

// The kinds that others refer to.
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

// index finds the objects of a landscape. Rules ask it by its methods only, which note the
// questions: while the answers stay the same, so does what the rules find.
type index struct {
	objects map[identity]*schemas.Input
	names   map[schema.GroupKind][]*schemas.Input
	// projects are those by their namespace.
	projects map[string]*schemas.Input
	// profiles are the cloud profiles that were asked for, nil where one cannot be read.
	profiles map[identity]*profile
	// uses is who has a value that only one may have, by what it is.
	uses map[use]*schemas.Input
	// offers are the kinds and types that registrations offer; nil until they are asked for.
	offers map[offer]bool
	// configs are the configurations in ConfigMaps that were asked for.
	configs map[configKey]config

	// noted is what was asked about the object that is looked at; nil where nobody wants to know.
	noted *notes
	// digests are those of objects that were asked for, answers those of questions.
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
		if in.Declared() {
			id := identityOf(in)
			i.objects[id] = in
			i.names[id.kind] = append(i.names[id.kind], in)
		}
	}
	return i
}

// addProject notes the namespace of a Project.
func (i *index) addProject(in *schemas.Input, namespace string) {
	if namespace != "" && i.projects[namespace] == nil {
		i.projects[namespace] = in
	}
}

// find gives an object; nil if the landscape has it not.
func (i *index) find(id identity) *schemas.Input {
	i.ask(question{aboutContent, id})
	return i.objects[id]
}

// has tells whether the landscape has an object.
func (i *index) has(id identity) bool {
	i.ask(question{aboutPresence, id})
	return i.objects[id] != nil
}

// all gives the objects of a kind.
func (i *index) all(kind schema.GroupKind) []*schemas.Input {
	i.ask(question{aboutKind, identity{kind: kind}})
	return i.names[kind]
}

// projectOf gives the Project of a namespace; nil if there is none.
func (i *index) projectOf(namespace string) *schemas.Input {
	i.ask(question{aboutProject, identity{namespace: namespace}})
	return i.projects[namespace]
}

// kindsNamed gives the kinds of that name that the landscape has, in the order of their groups.
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

// suggest is a hint at a declared object of the kind and namespace whose name is like the one that
// does not exist.
func (i *index) suggest(id identity) string {
	var names []string
	for _, in := range i.names[id.kind] {
		if known := identityOf(in); known.namespace == id.namespace {
			names = append(names, known.name)
		}
	}
	if guess := suggest.Word(id.name, names); guess != "" {
		return "; did you mean \"" + guess + "\"?"
	}
	return ""
}

// typed reads an object into its Go type; false where its structure is broken.
func typed(object *unstructured.Unstructured, into any) bool {
	return runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into) == nil
}
