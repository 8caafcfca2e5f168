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

// ManagedResource is a set of manifests that a resource manager applies to its target cluster, keeps there, and
// judges.
type ManagedResource struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// What is to be applied, and how.
	Spec ManagedResourceSpec `json:"spec,omitempty"`
	// What was applied, and how it fares.
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

// ManagedResourceSpec says which manifests are applied, and how.
type ManagedResourceSpec struct {
	// Which resource manager handles this object: each handles one class. Unset means the class of the resource
	// manager that serves the target cluster by default; `seed` means the one of the cluster the object is in.
	// +optional
	Class *string `json:"class,omitempty"`
	// Secrets of the same namespace whose values are the manifests. Every data key is read; keys ending in `.br` are
	// brotli-compressed, all others plain YAML with any number of documents.
	// +listType=atomic
	SecretRefs []corev1.LocalObjectReference `json:"secretRefs"`
	// Labels added to every object, its pod template and its volume claim templates.
	// +optional
	InjectLabels map[string]string `json:"injectLabels,omitempty"`
	// True removes labels from live objects that are not in the manifest. Default: false, foreign labels stay.
	// +optional
	ForceOverwriteLabels *bool `json:"forceOverwriteLabels,omitempty"`
	// True removes annotations from live objects that are not in the manifest. Default: false, foreign annotations stay.
	// +optional
	ForceOverwriteAnnotations *bool `json:"forceOverwriteAnnotations,omitempty"`
	// True leaves all objects in the target cluster when this object is deleted. Default: false.
	// +optional
	KeepObjects *bool `json:"keepObjects,omitempty"`
	// Sets of kinds that count as the same kind, so that moving an object from one API group to another does not
	// delete it. The moves from `extensions` to `apps` and `networking.k8s.io` are known without being listed.
	// +optional
	// +listType=atomic
	Equivalences [][]metav1.GroupKind `json:"equivalences,omitempty"`
	// True deletes the PersistentVolumeClaims of a StatefulSet with it. Default: false.
	// +optional
	DeletePersistentVolumeClaims *bool `json:"deletePersistentVolumeClaims,omitempty"`
}

// ManagedResourceStatus says what was applied, and how it fares.
type ManagedResourceStatus struct {
	// Verdicts: `ResourcesApplied`, `ResourcesHealthy` and `ResourcesProgressing`.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []gardencorev1beta1.Condition `json:"conditions,omitempty"`
	// Generation of this object that the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Every object this ManagedResource owns in the target cluster. What is listed here and no longer in the
	// manifests is pruned.
	// +optional
	// +listType=atomic
	Resources []ObjectReference `json:"resources,omitempty"`
	// What is wrong and why, in one line, from the conditions; or how many objects are well. An addition of Pergola.
	// +optional
	Summary string `json:"summary,omitempty"`
	// Checksum over the data of all referenced Secrets, as last applied.
	// +optional
	SecretsDataChecksum *string `json:"secretsDataChecksum,omitempty"`
	// Digest of the versions of all referenced Secrets, and of who applied them: while it stays, the Secrets need not be read to
	// know that nothing is wanted anew. An addition of Pergola.
	// +optional
	SecretsVersion string `json:"secretsVersion,omitempty"`
	// Origin under which the objects were applied last. The identity of the source cluster in it may be given, taken away or changed.
	// An addition of Pergola.
	// +optional
	Origin string `json:"origin,omitempty"`
}

// ObjectReference is an object owned in the target cluster.
type ObjectReference struct {
	corev1.ObjectReference `json:",inline"`
	// Labels that the manifest gave the object when it was last applied. Told apart from foreign labels by this.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations that the manifest gave the object when it was last applied.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
	// Digest of the manifest that was last applied, `<algorithm>:<hex>`. An object whose manifest still has this
	// digest and whose live fields still have LiveDigest is not applied again. `leaving` is an object that is not in the
	// manifests any more and is still being deleted. An addition of Pergola; absent where
	// another resource manager wrote the status.
	// +optional
	AppliedDigest string `json:"appliedDigest,omitempty"`
	// Digest of the fields this manager owned in the server's answer to that apply, `<algorithm>:<hex>`. A live
	// object that deviates from it has drifted. An addition of Pergola.
	// +optional
	LiveDigest string `json:"liveDigest,omitempty"`
	// Names of the create-only field groups that another manager owns by now and that are no longer sent, for
	// example `replicas`. An addition of Pergola.
	// +optional
	// +listType=set
	CreateOnly []string `json:"createOnly,omitempty"`
	// Why an object that is to be deleted or recreated is kept for now. An addition of Pergola, whose deletion gate holds it.
	// +optional
	HeldFor *landscapev1alpha1.HeldReason `json:"heldFor,omitempty"`
	// The same as a text, in the place of `heldFor`: former versions of Pergola wrote it. Nothing writes it any more.
	// +optional
	Held string `json:"held,omitempty"`
}
