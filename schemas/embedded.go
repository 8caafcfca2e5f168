// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"embed"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	gardencorev1 "github.com/pergola-dev/pergola/api/core/v1"
	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/api/crds"
	extensionsv1alpha1 "github.com/pergola-dev/pergola/api/extensions/v1alpha1"
	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	operationsv1alpha1 "github.com/pergola-dev/pergola/api/operations/v1alpha1"
	operatorv1alpha1 "github.com/pergola-dev/pergola/api/operator/v1alpha1"
	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
	securityv1alpha1 "github.com/pergola-dev/pergola/api/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/pergola-dev/pergola/api/seedmanagement/v1alpha1"
	"github.com/pergola-dev/pergola/schemas/structure"
)

//go:embed base rules/*/*.cue
var schemaFiles embed.FS

// checkedKinds lists the kinds that are fully checked. Other kinds have only their metadata
// checked.
func checkedKinds() []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	for _, of := range []struct {
		gv    schema.GroupVersion
		kinds []string
	}{
		{corev1.SchemeGroupVersion, []string{"ConfigMap", "Namespace", "Secret"}},
		{gardencorev1.SchemeGroupVersion, []string{"ControllerDeployment"}},
		{gardencorev1beta1.SchemeGroupVersion, []string{
			"BackupBucket", "BackupEntry", "CloudProfile", "ControllerDeployment", "ControllerInstallation", "ControllerRegistration",
			"ExposureClass", "InternalSecret", "NamespacedCloudProfile", "Project", "Quota", "SecretBinding", "Seed", "Shoot", "ShootState",
		}},
		{extensionsv1alpha1.SchemeGroupVersion, []string{
			"BackupBucket", "BackupEntry", "Bastion", "Cluster", "ContainerRuntime", "ControlPlane", "DNSRecord", "Extension",
			"Infrastructure", "Network", "OperatingSystemConfig", "SelfHostedShootExposure", "Worker",
		}},
		{landscapev1alpha1.SchemeGroupVersion, []string{"Landscape"}},
		{operationsv1alpha1.SchemeGroupVersion, []string{"Bastion"}},
		{operatorv1alpha1.SchemeGroupVersion, []string{"Extension", "Garden"}},
		{resourcesv1alpha1.SchemeGroupVersion, []string{"ManagedResource"}},
		{securityv1alpha1.SchemeGroupVersion, []string{"CredentialsBinding", "WorkloadIdentity"}},
		{seedmanagementv1alpha1.SchemeGroupVersion, []string{"Gardenlet", "ManagedSeed", "ManagedSeedSet"}},
	} {
		for _, kind := range of.kinds {
			kinds = append(kinds, of.gv.WithKind(kind))
		}
	}
	return kinds
}

// embeddedSources returns the schemas of this package, read once.
var embeddedSources = sync.OnceValues(func() (*sources, error) { return newSources(embeddedKinds(), schemaFiles) })

// embeddedKinds returns the checked kinds, which are read-only.
var embeddedKinds = sync.OnceValue(func() *kindSet { return newKindSet(checkedKinds(), definitionReader()) })

// StructuralKinds returns the checked kinds, sorted, for the generator of the CUE base and
// `explain`.
func StructuralKinds() ([]*structure.Kind, error) { return embeddedKinds().all() }

// definitionReader returns a function that reads the definition of a kind, with all its versions.
func definitionReader() func(schema.GroupVersionKind) (structure.Kinds, error) {
	scheme := sync.OnceValues(newScheme)
	return func(gvk schema.GroupVersionKind) (structure.Kinds, error) {
		if core := structure.CoreKinds(); core[gvk] != nil {
			return core, nil
		}
		types, err := scheme()
		if err != nil {
			return nil, err
		}
		crd := crds.Get(gvk.Group, gvk.Kind)
		if crd == nil {
			return nil, fmt.Errorf("there is no definition of %s", gvk)
		}
		return structure.KindsFromCRDs([]*apiextensionsv1.CustomResourceDefinition{crd}, types)
	}
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		gardencorev1.AddToScheme, gardencorev1beta1.AddToScheme, extensionsv1alpha1.AddToScheme, landscapev1alpha1.AddToScheme,
		operationsv1alpha1.AddToScheme, operatorv1alpha1.AddToScheme, resourcesv1alpha1.AddToScheme, securityv1alpha1.AddToScheme,
		seedmanagementv1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("registering the API types: %w", err)
		}
	}
	return scheme, nil
}

// KnownKinds lists the kinds that are fully checked: all kinds that a landscape may declare.
func KnownKinds() []schema.GroupVersionKind { return checkedKinds() }

// IsKnown reports whether objects of the kind are fully checked.
func IsKnown(gvk schema.GroupVersionKind) bool { return slices.Contains(checkedKinds(), gvk) }

// Digest identifies the schemas, for caches that outlive the process.
func Digest() (string, error) {
	s, err := embeddedSources()
	if err != nil {
		return "", err
	}
	return s.digest, nil
}
