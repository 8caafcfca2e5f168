// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,path=workers,singular=worker
// +kubebuilder:metadata:labels="gardener.cloud/deletion-protected=true"
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`,description="Type of the extension."
// +kubebuilder:printcolumn:name="Region",type=string,JSONPath=`.spec.region`,description="Region of the infrastructure."
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.lastOperation.state`,description="State of the last operation."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since creation."

// Worker requests the machines of a cluster, by pool.
type Worker struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Desired state of the object. Immutable once the object is being deleted.
	Spec WorkerSpec `json:"spec"`
	// Observed state of the object. Set by the extension.
	// +optional
	Status WorkerStatus `json:"status,omitempty"`
}

// GetDefaultSpec returns the part of the spec that all extension kinds share.
func (o *Worker) GetDefaultSpec() *DefaultSpec { return &o.Spec.DefaultSpec }

// GetDefaultStatus returns the part of the status that all extension kinds share.
func (o *Worker) GetDefaultStatus() *DefaultStatus { return &o.Status.DefaultStatus }

// +kubebuilder:object:root=true

// WorkerList is a list of workers.
type WorkerList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []Worker `json:"items"`
}

// WorkerSpec is the desired state of a Worker.
type WorkerSpec struct {
	DefaultSpec `json:",inline"`
	// Provider status of the Infrastructure of the same cluster.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	InfrastructureProviderStatus *runtime.RawExtension `json:"infrastructureProviderStatus,omitempty"`
	// Region of the infrastructure. Immutable.
	Region string `json:"region"`
	// Secret with the credentials for the infrastructure.
	SecretRef corev1.SecretReference `json:"secretRef"`
	// Public SSH key for the machines, in OpenSSH format.
	// +optional
	SSHPublicKey []byte `json:"sshPublicKey,omitempty"`
	// Worker pools.
	// +listType=map
	// +listMapKey=name
	Pools []WorkerPool `json:"pools"`
}

// WorkerStatus is the observed state of a Worker.
type WorkerStatus struct {
	DefaultStatus `json:",inline"`
	// Machine deployments of the pools, one per pool and zone. Input of the cluster autoscaler.
	// +optional
	// +listType=map
	// +listMapKey=name
	MachineDeployments []MachineDeployment `json:"machineDeployments,omitempty"`
	// Time of the last change of the list of machine deployments.
	// +optional
	MachineDeploymentsLastUpdateTime *metav1.Time `json:"machineDeploymentsLastUpdateTime,omitempty"`
	// Progress of in-place updates.
	// +optional
	InPlaceUpdates *InPlaceUpdatesWorkerStatus `json:"inPlaceUpdates,omitempty"`
}

// InPlaceUpdatesWorkerStatus is the progress of in-place updates.
type InPlaceUpdatesWorkerStatus struct {
	// Hash of the configuration that each pool has reached, by pool name.
	// +optional
	WorkerPoolToHashMap map[string]string `json:"workerPoolToHashMap,omitempty"`
}

// MachineDeployment is a group of machines of one pool.
type MachineDeployment struct {
	// Name of the MachineDeployment.
	Name string `json:"name"`
	// Minimum number of machines.
	Minimum int32 `json:"minimum"`
	// Maximum number of machines.
	Maximum int32 `json:"maximum"`
	// Priority for the cluster autoscaler's priority expander.
	// +optional
	Priority *int32 `json:"priority,omitempty"`
}
