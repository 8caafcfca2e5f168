package across

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	operatorv1alpha1 "github.com/pergola-dev/pergola/api/operator/v1alpha1"
	securityv1alpha1 "github.com/pergola-dev/pergola/api/security/v1alpha1"
	"github.com/pergola-dev/pergola/schemas"
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

// index finds the objects of a landscape.
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
}

func newIndex(inputs []schemas.Input) *index {
	i := &index{
		objects: make(map[identity]*schemas.Input, len(inputs)), names: map[schema.GroupKind][]*schemas.Input{},
		projects: map[string]*schemas.Input{}, profiles: map[identity]*profile{}, uses: map[use]*schemas.Input{}, configs: map[configKey]config{},
	}
	for n := range inputs {
		in := &inputs[n]
		if in.Object == nil {
			continue
		}
		id := identityOf(in.Object)
		i.objects[id] = in
		i.names[id.kind] = append(i.names[id.kind], in)
		if id.kind == kindProject {
			if namespace := text(in.Object.Object, "spec", "namespace"); namespace != "" && i.projects[namespace] == nil {
				i.projects[namespace] = in
			}
		}
	}
	return i
}

func (i *index) has(id identity) bool { return i.objects[id] != nil }

// suggest is a hint at a declared object of the kind and namespace whose name is like the one that does not exist.
func (i *index) suggest(id identity) string {
	var names []string
	for _, in := range i.names[id.kind] {
		if in.Object.GetNamespace() == id.namespace {
			names = append(names, in.Object.GetName())
		}
	}
	if guess := schemas.Suggest(id.name, names); guess != "" {
		return "; did you mean \"" + guess + "\"?"
	}
	return ""
}

// typed reads an object into its Go type; false where its structure is broken.
func typed(in *schemas.Input, into any) bool {
	return runtime.DefaultUnstructuredConverter.FromUnstructured(in.Object.Object, into) == nil
}
