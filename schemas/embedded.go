package schemas

import (
	"embed"
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/api/crds"
	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	operatorv1alpha1 "github.com/pergola-dev/pergola/api/operator/v1alpha1"
	"github.com/pergola-dev/pergola/schemas/structure"
)

//go:embed base rules/*/*.cue
var files embed.FS

// checkedKinds are the kinds that are fully checked. Of all other kinds only the metadata are.
var checkedKinds = [...]schema.GroupVersionKind{
	operatorv1alpha1.SchemeGroupVersion.WithKind("Garden"),
	gardencorev1beta1.SchemeGroupVersion.WithKind("CloudProfile"),
	gardencorev1beta1.SchemeGroupVersion.WithKind("Project"),
	gardencorev1beta1.SchemeGroupVersion.WithKind("Seed"),
	gardencorev1beta1.SchemeGroupVersion.WithKind("Shoot"),
	landscapev1alpha1.SchemeGroupVersion.WithKind("Landscape"),
	corev1.SchemeGroupVersion.WithKind("Namespace"),
	corev1.SchemeGroupVersion.WithKind("Secret"),
	corev1.SchemeGroupVersion.WithKind("ConfigMap"),
}

// embedded parses the schemas of this package, once.
var embedded = sync.OnceValues(func() (*sources, error) {
	kinds, err := structuralKinds()
	if err != nil {
		return nil, err
	}
	return newSources(kinds, files)
})

// StructuralKinds gives the checked kinds, sorted, for the generator of the CUE base and for `explain`.
func StructuralKinds() ([]*structure.Kind, error) {
	kinds, err := structuralKinds()
	if err != nil {
		return nil, err
	}
	return sortedKinds(kinds), nil
}

func structuralKinds() (structure.Kinds, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		gardencorev1beta1.AddToScheme, operatorv1alpha1.AddToScheme, landscapev1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("registering the API types: %w", err)
		}
	}
	var wanted []*apiextensionsv1.CustomResourceDefinition
	for _, crd := range crds.All() {
		if slices.ContainsFunc(checkedKinds[:], func(gvk schema.GroupVersionKind) bool {
			return gvk.Group == crd.Spec.Group && gvk.Kind == crd.Spec.Names.Kind
		}) {
			wanted = append(wanted, crd)
		}
	}
	kinds, err := structure.FromCRDs(wanted, scheme)
	if err != nil {
		return nil, err
	}
	maps.Copy(kinds, structure.Core())
	return kinds, nil
}

// Known tells whether objects of the kind are fully checked.
func Known(gvk schema.GroupVersionKind) bool { return slices.Contains(checkedKinds[:], gvk) }

// Digest identifies the schemas, for caches that outlive the process.
func Digest() (string, error) {
	s, err := embedded()
	if err != nil {
		return "", err
	}
	return s.digest, nil
}
