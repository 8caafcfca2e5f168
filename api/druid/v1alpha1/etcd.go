// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,path=etcds,singular=etcd
// +kubebuilder:metadata:labels="gardener.cloud/deletion-protected=true"
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.ready`
// +kubebuilder:printcolumn:name="Quorate",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="All Members Ready",type=string,JSONPath=`.status.conditions[?(@.type=="AllMembersReady")].status`
// +kubebuilder:printcolumn:name="Backup Ready",type=string,JSONPath=`.status.conditions[?(@.type=="BackupReady")].status`
// +kubebuilder:printcolumn:name="Cluster ID Mismatch",type=string,JSONPath=`.status.conditions[?(@.type=="ClusterIDMismatch")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Cluster Size",type=integer,JSONPath=`.spec.replicas`,priority=1
// +kubebuilder:printcolumn:name="Current Replicas",type=integer,JSONPath=`.status.currentReplicas`,priority=1
// +kubebuilder:printcolumn:name="Ready Replicas",type=integer,JSONPath=`.status.readyReplicas`,priority=1

// Etcd is an etcd cluster with its backups.
type Etcd struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Desired state of the etcd cluster.
	// +optional
	Spec EtcdSpec `json:"spec,omitempty"`
	// Observed state of the etcd cluster.
	// +optional
	Status EtcdStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// EtcdList is a list of Etcds.
type EtcdList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []Etcd `json:"items"`
}

// EtcdSpec is the desired state of an etcd cluster.
// +kubebuilder:validation:XValidation:rule="has(oldSelf.storageClass) == has(self.storageClass)",message="storageClass cannot be added or removed"
type EtcdSpec struct {
	// Labels that select the pods.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// Labels of the pods.
	Labels map[string]string `json:"labels"`
	// Annotations of the pods.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
	// Settings of etcd.
	Etcd EtcdConfig `json:"etcd"`
	// Settings of backups and of the process that takes them.
	Backup BackupSpec `json:"backup"`
	// Settings that etcd and the backup process share.
	// +optional
	Common SharedConfig `json:"sharedConfig,omitempty"`
	// Constraints on the scheduling of the pods.
	// +optional
	SchedulingConstraints SchedulingConstraints `json:"schedulingConstraints,omitempty"`
	// Number of members. It can be raised, or set to zero and back; a cluster is never reduced to
	// fewer members.
	// +kubebuilder:validation:XValidation:rule="self == 0 || self >= oldSelf",message="replicas can be raised or set to 0, not lowered"
	Replicas int32 `json:"replicas"`
	// PriorityClass of the pods.
	// +optional
	PriorityClassName *string `json:"priorityClassName,omitempty"`
	// StorageClass of the volumes. Immutable.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="storageClass is immutable"
	StorageClass *string `json:"storageClass,omitempty"`
	// Size of the volume of each member.
	// +optional
	StorageCapacity *resource.Quantity `json:"storageCapacity,omitempty"`
	// Name of the volume claim template. Immutable.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="volumeClaimTemplate is immutable"
	VolumeClaimTemplate *string `json:"volumeClaimTemplate,omitempty"`
	// True runs the containers as root. Default: false.
	// +optional
	RunAsRoot *bool `json:"runAsRoot,omitempty"`
	// Volatile volume instead of a claimed one. Cannot be reverted once set.
	// +optional
	EmptyDirVolumeSource *corev1.EmptyDirVolumeSource `json:"emptyDirVolumeSource,omitempty"`
}

// SharedConfig holds settings that etcd and the backup process share.
type SharedConfig struct {
	// Compaction mode of the history: `periodic` (by age) or `revision` (by number).
	// +optional
	AutoCompactionMode *CompactionMode `json:"autoCompactionMode,omitempty"`
	// Retained history: a duration or a number, depending on the mode.
	// +optional
	AutoCompactionRetention *string `json:"autoCompactionRetention,omitempty"`
}

// CompactionMode is a mode of compacting the history.
// +kubebuilder:validation:Enum=periodic;revision
type CompactionMode string

// SchedulingConstraints holds constraints on the scheduling of pods.
type SchedulingConstraints struct {
	// Affinity of the pods.
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`
	// Spread of the pods over nodes and zones.
	// +optional
	// +listType=atomic
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`
}

// EtcdStatus is the observed state of the etcd cluster.
type EtcdStatus struct {
	// Generation that etcd-druid last reconciled.
	// +optional
	ObservedGeneration *int64 `json:"observedGeneration,omitempty"`
	// StatefulSet of the cluster.
	// +optional
	Etcd *CrossVersionObjectReference `json:"etcd,omitempty"`
	// Conditions reported by etcd-druid.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty"`
	// Errors of the last operation.
	// +optional
	// +listType=atomic
	LastErrors []LastError `json:"lastErrors,omitempty"`
	// Operation in progress, or the last one.
	// +optional
	LastOperation *LastOperation `json:"lastOperation,omitempty"`
	// Number of members that run the current spec.
	// +optional
	CurrentReplicas int32 `json:"currentReplicas,omitempty"`
	// Number of members.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`
	// Number of members that are ready.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`
	// Whether all members are ready.
	// +optional
	Ready *bool `json:"ready,omitempty"`
	// Labels that select the pods. Deprecated: see selector.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
	// Members of the cluster.
	// +optional
	// +listType=map
	// +listMapKey=name
	Members []EtcdMemberStatus `json:"members,omitempty"`
	// Whether members communicate by TLS.
	// +optional
	PeerUrlTLSEnabled *bool `json:"peerUrlTLSEnabled,omitempty"`
	// Labels that select the pods, in text form.
	// +optional
	Selector *string `json:"selector,omitempty"`
}

// CrossVersionObjectReference refers to an object of the same namespace.
type CrossVersionObjectReference struct {
	// Kind of the object.
	// +required
	Kind string `json:"kind,omitempty"`
	// Name of the object.
	// +required
	Name string `json:"name,omitempty"`
	// API version of the object.
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`
}

// EtcdMemberConditionStatus is the state of a member.
type EtcdMemberConditionStatus string

const (
	// EtcdMemberStatusReady means the member is ready.
	EtcdMemberStatusReady EtcdMemberConditionStatus = "Ready"
	// EtcdMemberStatusNotReady means the member is not ready.
	EtcdMemberStatusNotReady EtcdMemberConditionStatus = "NotReady"
	// EtcdMemberStatusUnknown means the member does not report its state.
	EtcdMemberStatusUnknown EtcdMemberConditionStatus = "Unknown"
)

// EtcdRole is the role of a member.
type EtcdRole string

const (
	// EtcdRoleLeader is the leader.
	EtcdRoleLeader EtcdRole = "Leader"
	// EtcdRoleMember is a follower.
	EtcdRoleMember EtcdRole = "Member"
)

// EtcdMemberStatus is the state of one member.
type EtcdMemberStatus struct {
	// Name of the member, which is the name of its pod.
	Name string `json:"name"`
	// Identity of the member within etcd.
	// +optional
	ID *string `json:"id,omitempty"`
	// Role of the member: `Leader` or `Member`.
	// +optional
	Role *EtcdRole `json:"role,omitempty"`
	// State of the member: `Ready`, `NotReady` or `Unknown`.
	Status EtcdMemberConditionStatus `json:"status"`
	// Machine-readable cause of the state.
	Reason string `json:"reason"`
	// Time at which the state last changed.
	LastTransitionTime metav1.Time `json:"lastTransitionTime"`
}
