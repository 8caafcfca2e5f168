// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,path=containerruntimes,shortName=cr,singular=containerruntime
// +kubebuilder:metadata:labels="gardener.cloud/deletion-protected=true"
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`,description="Type of the extension."
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.lastOperation.state`,description="State of the last operation."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since creation."

// ContainerRuntime requests a container runtime on the nodes of a worker pool.
type ContainerRuntime struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Desired state of the object. Immutable once the object is being deleted.
	Spec ContainerRuntimeSpec `json:"spec"`
	// Observed state of the object. Set by the extension.
	// +optional
	Status ContainerRuntimeStatus `json:"status,omitempty"`
}

// GetDefaultSpec returns the part of the spec that all extension kinds share.
func (o *ContainerRuntime) GetDefaultSpec() *DefaultSpec { return &o.Spec.DefaultSpec }

// GetDefaultStatus returns the part of the status that all extension kinds share.
func (o *ContainerRuntime) GetDefaultStatus() *DefaultStatus { return &o.Status.DefaultStatus }

// +kubebuilder:object:root=true

// ContainerRuntimeList is a list of containerruntimes.
type ContainerRuntimeList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []ContainerRuntime `json:"items"`
}

// ContainerRuntimeSpec is the desired state of a ContainerRuntime.
type ContainerRuntimeSpec struct {
	// Directory on the node for the binaries of the runtime.
	BinaryPath string `json:"binaryPath"`
	// Worker pool whose nodes get the runtime.
	WorkerPool  ContainerRuntimeWorkerPool `json:"workerPool"`
	DefaultSpec `json:",inline"`
}

// ContainerRuntimeWorkerPool is a worker pool of a cluster.
type ContainerRuntimeWorkerPool struct {
	// Name of the worker pool. Immutable.
	Name string `json:"name"`
	// Labels of the nodes of the pool.
	Selector metav1.LabelSelector `json:"selector"`
}

// ContainerRuntimeStatus is the observed state of a ContainerRuntime.
type ContainerRuntimeStatus struct {
	DefaultStatus `json:",inline"`
}
