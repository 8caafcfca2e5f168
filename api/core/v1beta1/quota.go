// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,path=quotas,singular=quota,shortName=squota,categories=gardener
// +kubebuilder:printcolumn:name="Scope",type=string,JSONPath=`.spec.scope.kind`,description="What the limits are for."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since creation."

// Quota limits the resources that Shoots may use, for a Project or for all users of the same
// credentials.
type Quota struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Desired state of the Quota.
	// +optional
	Spec QuotaSpec `json:"spec,omitempty"`
}

// +kubebuilder:object:root=true

// QuotaList is a list of Quotas.
type QuotaList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []Quota `json:"items"`
}

// QuotaSpec is the desired state of a Quota.
type QuotaSpec struct {
	// Days after which Shoots are deleted. Unset: never.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ClusterLifetimeDays *int32 `json:"clusterLifetimeDays,omitempty"`
	// Limits: `cpu`, `gpu`, `memory`, `storage.standard`, `storage.premium` and `loadbalancer`.
	// +optional
	Metrics corev1.ResourceList `json:"metrics,omitempty"`
	// Scope of the limits: kind `Project` (core.gardener.cloud/v1beta1), `Secret` (v1) or
	// `WorkloadIdentity` (security.gardener.cloud/v1alpha1). Immutable.
	Scope corev1.ObjectReference `json:"scope"`
}

// Metrics that a Quota may limit.
const (
	// QuotaMetricCPU is the number of CPUs.
	QuotaMetricCPU corev1.ResourceName = "cpu"
	// QuotaMetricGPU is the number of GPUs.
	QuotaMetricGPU corev1.ResourceName = "gpu"
	// QuotaMetricMemory is the amount of memory.
	QuotaMetricMemory corev1.ResourceName = "memory"
	// QuotaMetricStorageStandard is the size of volumes of class `standard`.
	QuotaMetricStorageStandard corev1.ResourceName = "storage.standard"
	// QuotaMetricStoragePremium is the size of volumes of class `premium`.
	QuotaMetricStoragePremium corev1.ResourceName = "storage.premium"
	// QuotaMetricLoadbalancer is the number of load balancers.
	QuotaMetricLoadbalancer corev1.ResourceName = "loadbalancer"
)
