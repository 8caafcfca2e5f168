// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,path=projects,singular=project,categories=gardener
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Namespace",type=string,JSONPath=`.spec.namespace`,description="Namespace of the Project."
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.phase`,description="Phase of the Project."
// +kubebuilder:printcolumn:name="Owner",type=string,JSONPath=`.spec.owner.name`,description="Owner of the Project."
// +kubebuilder:printcolumn:name="Creator",type=string,JSONPath=`.spec.createdBy.name`,description="Who created the Project."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since creation."

// Project is a group of people with a namespace for their Shoots.
type Project struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata. The name may have at most 10 characters.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Desired state of the Project.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.__namespace__) || has(self.__namespace__) && self.__namespace__ == oldSelf.__namespace__",message="namespace is immutable",fieldPath=".namespace"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.owner) || has(self.owner)",message="owner cannot be removed",fieldPath=".owner"
	Spec ProjectSpec `json:"spec,omitempty"`
	// Observed state of the Project.
	// +optional
	Status ProjectStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// ProjectList is a list of Projects.
type ProjectList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []Project `json:"items"`
}

// ProjectSpec is the desired state of a Project.
type ProjectSpec struct {
	// Creator of the Project. Immutable. Default: the user of the request.
	// +optional
	CreatedBy *rbacv1.Subject `json:"createdBy,omitempty"`
	// Description of the Project's use, for people.
	// +optional
	Description *string `json:"description,omitempty"`
	// Owner of the Project; always a member with roles `admin` and `owner`. Default: the member
	// with role `owner`, otherwise the creator of the Project.
	// +optional
	Owner *rbacv1.Subject `json:"owner,omitempty"`
	// Purpose of the Project, for people.
	// +optional
	Purpose *string `json:"purpose,omitempty"`
	// Members and their roles.
	// +optional
	// +listType=atomic
	Members []ProjectMember `json:"members,omitempty"`
	// Namespace of the Project: `garden` or a name that begins with `garden-`. Immutable. Default:
	// derived from the name of the Project.
	// +optional
	Namespace *string `json:"namespace,omitempty"`
	// Taints of Seeds that Shoots of the Project tolerate, or may tolerate.
	// +optional
	Tolerations *ProjectTolerations `json:"tolerations,omitempty"`
	// Objects whose deletion requires two people.
	// +optional
	// +listType=atomic
	DualApprovalForDeletion []DualApprovalForDeletion `json:"dualApprovalForDeletion,omitempty"`
}

// ProjectMember is a member with roles.
type ProjectMember struct {
	// User, group or service account.
	rbacv1.Subject `json:",inline"`
	// First role of the member; see `roles`.
	// +optional
	Role string `json:"role"`
	// Additional roles: `admin`, `viewer`, `uam`, `serviceaccountmanager`, `owner`, or
	// `extension:<name>` for roles that the landscape defines.
	// +optional
	// +listType=atomic
	Roles []string `json:"roles,omitempty"`
}

const (
	// ProjectMemberAdmin is the role with full access to the Project's objects.
	ProjectMemberAdmin = "admin"
	// ProjectMemberOwner is the role of the owner.
	ProjectMemberOwner = "owner"
	// ProjectMemberUserAccessManager is the role that can manage members.
	ProjectMemberUserAccessManager = "uam"
	// ProjectMemberServiceAccountManager is the role that can manage service accounts.
	ProjectMemberServiceAccountManager = "serviceaccountmanager"
	// ProjectMemberViewer is the role that can read.
	ProjectMemberViewer = "viewer"
	// ProjectMemberExtensionPrefix starts roles that the landscape defines.
	ProjectMemberExtensionPrefix = "extension:"
)

// ProjectTolerations defines which taints Shoots of a Project tolerate.
type ProjectTolerations struct {
	// Tolerations added to every Shoot that does not set one with that key.
	// +optional
	// +listType=atomic
	Defaults []Toleration `json:"defaults,omitempty"`
	// Tolerations that Shoots may set. Changes require the verb
	// `modify-spec-tolerations-whitelist`.
	// +optional
	// +listType=atomic
	Whitelist []Toleration `json:"whitelist,omitempty"`
}

// Toleration allows a Shoot on Seeds with a taint.
type Toleration struct {
	// Key of the taint.
	Key string `json:"key"`
	// Value of the taint. Unset: any.
	// +optional
	Value *string `json:"value,omitempty"`
}

// DualApprovalForDeletion selects objects whose deletion requires two people: one confirms, another
// deletes.
type DualApprovalForDeletion struct {
	// Resource: `shoots`, the only value.
	// +kubebuilder:validation:Enum=shoots
	Resource string `json:"resource"`
	// Labels of the objects.
	Selector metav1.LabelSelector `json:"selector"`
	// Whether the rule also applies to deletions by service accounts. Default: true.
	// +optional
	// +kubebuilder:default=true
	IncludeServiceAccounts *bool `json:"includeServiceAccounts,omitempty"`
}

// ProjectStatus is the observed state of a Project.
type ProjectStatus struct {
	// Generation of the Project that was last reconciled.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Phase of the Project: `Pending`, `Ready`, `Failed` or `Terminating`.
	// +optional
	Phase ProjectPhase `json:"phase,omitempty"`
	// Time since which the Project is unused.
	// +optional
	StaleSinceTimestamp *metav1.Time `json:"staleSinceTimestamp,omitempty"`
	// Time at which the Project will be deleted because it is unused.
	// +optional
	StaleAutoDeleteTimestamp *metav1.Time `json:"staleAutoDeleteTimestamp,omitempty"`
	// Time of the last activity in the Project.
	// +optional
	LastActivityTimestamp *metav1.Time `json:"lastActivityTimestamp,omitempty"`
	// Conditions of the Project.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty"`
}

// ProjectPhase is the phase of a Project.
type ProjectPhase string

const (
	// ProjectPending means the Project was not reconciled yet.
	ProjectPending ProjectPhase = "Pending"
	// ProjectReady means the Project can be used.
	ProjectReady ProjectPhase = "Ready"
	// ProjectFailed means the last attempt failed.
	ProjectFailed ProjectPhase = "Failed"
	// ProjectTerminating means the Project is being deleted.
	ProjectTerminating ProjectPhase = "Terminating"
)
