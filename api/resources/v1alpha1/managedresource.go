// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,path=managedresources,shortName=mr,singular=managedresource
// +kubebuilder:metadata:labels="gardener.cloud/deletion-protected=true"
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Class",type=string,JSONPath=`.spec.class`,description="Which resource manager handles the object."
// +kubebuilder:printcolumn:name="Applied",type=string,JSONPath=`.status.conditions[?(@.type=="ResourcesApplied")].status`,description="Whether all objects were applied."
// +kubebuilder:printcolumn:name="Healthy",type=string,JSONPath=`.status.conditions[?(@.type=="ResourcesHealthy")].status`,description="Whether all objects are healthy."
// +kubebuilder:printcolumn:name="Progressing",type=string,JSONPath=`.status.conditions[?(@.type=="ResourcesProgressing")].status`,description="Whether some object is still rolling out."
// +kubebuilder:printcolumn:name="Summary",type=string,JSONPath=`.status.summary`,description="What is wrong and why, in one line. An addition of Pergola."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since creation."

// ManagedResource is a set of manifests that a resource manager applies to its target cluster,
// maintains there, and judges.
type ManagedResource struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Manifests to apply, and options.
	Spec ManagedResourceSpec `json:"spec,omitempty"`
	// Observed state of the applied objects.
	// +optional
	Status ManagedResourceStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// ManagedResourceList is a list of ManagedResources.
type ManagedResourceList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []ManagedResource `json:"items"`
}

// ManagedResourceSpec defines which manifests are applied, and how.
type ManagedResourceSpec struct {
	// Class of the resource manager that handles this object: each handles one class. Unset: the
	// resource manager that serves the target cluster by default. `seed`: the resource manager of
	// the cluster that stores the object.
	// +optional
	Class *string `json:"class,omitempty"`
	// Secrets of the same namespace whose values are the manifests. Every data key is read; keys
	// ending in `.br` are brotli-compressed, all others plain YAML with any number of documents.
	// +listType=atomic
	SecretRefs []corev1.LocalObjectReference `json:"secretRefs"`
	// Labels added to every object, its pod template and its volume claim templates.
	// +optional
	InjectLabels map[string]string `json:"injectLabels,omitempty"`
	// True removes labels from live objects that are not in the manifest. Default: false; foreign
	// labels stay.
	// +optional
	ForceOverwriteLabels *bool `json:"forceOverwriteLabels,omitempty"`
	// True removes annotations from live objects that are not in the manifest. Default: false;
	// foreign annotations stay.
	// +optional
	ForceOverwriteAnnotations *bool `json:"forceOverwriteAnnotations,omitempty"`
	// True leaves all objects in the target cluster when this object is deleted. Default: false.
	// +optional
	KeepObjects *bool `json:"keepObjects,omitempty"`
	// Sets of kinds that count as the same kind, so that an object that moves to another API group
	// is not deleted. The moves from `extensions` to `apps` and `networking.k8s.io` are built in.
	// +optional
	// +listType=atomic
	Equivalences [][]metav1.GroupKind `json:"equivalences,omitempty"`
	// True deletes the PersistentVolumeClaims of a StatefulSet with it. Default: false.
	// +optional
	DeletePersistentVolumeClaims *bool `json:"deletePersistentVolumeClaims,omitempty"`
}

// ManagedResourceStatus is the observed state of the applied objects.
type ManagedResourceStatus struct {
	// Conditions: `ResourcesApplied`, `ResourcesHealthy` and `ResourcesProgressing`.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []gardencorev1beta1.Condition `json:"conditions,omitempty"`
	// Generation of this object that the status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Objects that this ManagedResource owns in the target cluster. Objects that are listed here,
	// but no longer in the manifests, are pruned.
	// +optional
	// +listType=atomic
	Resources []ObjectReference `json:"resources,omitempty"`
	// Summary of the conditions in one line: the problem and its cause, or the number of healthy
	// objects. An addition of Pergola.
	// +optional
	Summary string `json:"summary,omitempty"`
	// Checksum over the data of all referenced Secrets, as last applied.
	// +optional
	SecretsDataChecksum *string `json:"secretsDataChecksum,omitempty"`
	// Digest of the versions of all referenced Secrets, as last applied, and of the options of the
	// resource manager. While it stays the same, the Secrets need not be read again. An addition of
	// Pergola.
	// +optional
	SecretsVersion string `json:"secretsVersion,omitempty"`
	// Origin under which the objects were last applied. The identity of the source cluster in it
	// may be added, removed or changed. An addition of Pergola.
	// +optional
	Origin string `json:"origin,omitempty"`
}

// ObjectReference is an object owned in the target cluster.
type ObjectReference struct {
	corev1.ObjectReference `json:",inline"`
	// Labels that the manifest gave the object when it was last applied. They distinguish own from
	// foreign labels.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations that the manifest gave the object when it was last applied.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
	// Digest of the manifest that was last applied, `<algorithm>:<hex>`. If the manifest still has
	// this digest and the live fields still have LiveDigest, the object is not applied again.
	// `leaving` marks an object that is no longer in the manifests and is still being deleted. An
	// addition of Pergola; absent if another resource manager wrote the status.
	// +optional
	AppliedDigest string `json:"appliedDigest,omitempty"`
	// Digest of the fields that this manager owned in the server's answer to that apply,
	// `<algorithm>:<hex>`. A live object with another digest has drifted. An addition of Pergola.
	// +optional
	LiveDigest string `json:"liveDigest,omitempty"`
	// Names of the create-only field groups that another manager owns now and that are no longer
	// sent, for example `replicas`. An addition of Pergola.
	// +optional
	// +listType=set
	CreateOnly []string `json:"createOnly,omitempty"`
	// Reason why the deletion gate holds the deletion or recreation of the object. An addition of
	// Pergola.
	// +optional
	HeldFor *landscapev1alpha1.HeldReason `json:"heldFor,omitempty"`
	// Reason as text, which older versions of Pergola wrote instead of `heldFor`. No longer
	// written.
	// +optional
	Held string `json:"held,omitempty"`
}
