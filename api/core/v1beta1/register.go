// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of this package.
const GroupName = "core.gardener.cloud"

// SchemeGroupVersion is the group and version of this package.
var SchemeGroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1beta1"}

// Kind returns the group-qualified kind.
func Kind(kind string) schema.GroupKind {
	return SchemeGroupVersion.WithKind(kind).GroupKind()
}

// Resource returns the group-qualified resource.
func Resource(resource string) schema.GroupResource {
	return SchemeGroupVersion.WithResource(resource).GroupResource()
}

// AddToScheme registers the types of this package with a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion,
		&BackupBucket{}, &BackupBucketList{},
		&BackupEntry{}, &BackupEntryList{},
		&CloudProfile{}, &CloudProfileList{},
		&ControllerDeployment{}, &ControllerDeploymentList{},
		&ControllerInstallation{}, &ControllerInstallationList{},
		&ControllerRegistration{}, &ControllerRegistrationList{},
		&ExposureClass{}, &ExposureClassList{},
		&InternalSecret{}, &InternalSecretList{},
		&NamespacedCloudProfile{}, &NamespacedCloudProfileList{},
		&Project{}, &ProjectList{},
		&Quota{}, &QuotaList{},
		&SecretBinding{}, &SecretBindingList{},
		&Seed{}, &SeedList{},
		&Shoot{}, &ShootList{},
		&ShootState{}, &ShootStateList{},
	)
	metav1.AddToGroupVersion(scheme, SchemeGroupVersion)
	return nil
}
