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
	// Standard object metadata. The name may have 10 characters.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// The Project as declared.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.__namespace__) || has(self.__namespace__) && self.__namespace__ == oldSelf.__namespace__",message="namespace is immutable",fieldPath=".namespace"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.owner) || has(self.owner)",message="owner cannot be removed",fieldPath=".owner"
	Spec ProjectSpec `json:"spec,omitempty"`
	// The Project as it is.
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

// ProjectSpec declares a Project.
type ProjectSpec struct {
	// Who created the Project. Immutable. Default: the user of the request.
	// +optional
	CreatedBy *rbacv1.Subject `json:"createdBy,omitempty"`
	// What the Project is used for, for a person.
	// +optional
	Description *string `json:"description,omitempty"`
	// Owner of the Project; always a member with roles `admin` and `owner`. Default: the member with role `owner`, else
	// who created the Project.
	// +optional
	Owner *rbacv1.Subject `json:"owner,omitempty"`
	// Why the Project exists, for a person.
	// +optional
	Purpose *string `json:"purpose,omitempty"`
	// Members and their roles.
	// +optional
	// +listType=atomic
	Members []ProjectMember `json:"members,omitempty"`
	// Namespace of the Project: `garden` or a name that begins with `garden-`. Immutable. Default: made up from the name of the
	// Project.
	// +optional
	Namespace *string `json:"namespace,omitempty"`
	// Taints of Seeds that Shoots of the Project may, or do, put up with.
	// +optional
	Tolerations *ProjectTolerations `json:"tolerations,omitempty"`
	// Objects whose deletion takes two people.
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
	// Further roles: `admin`, `viewer`, `uam`, `serviceaccountmanager`, `owner`, or `extension:<name>` for roles that the
	// landscape defines.
	// +optional
	// +listType=atomic
	Roles []string `json:"roles,omitempty"`
}

const (
	// ProjectMemberAdmin is the role that may do everything with the Project's objects.
	ProjectMemberAdmin = "admin"
	// ProjectMemberOwner is the role of the owner.
	ProjectMemberOwner = "owner"
	// ProjectMemberUserAccessManager is the role that manages members.
	ProjectMemberUserAccessManager = "uam"
	// ProjectMemberServiceAccountManager is the role that manages service accounts.
	ProjectMemberServiceAccountManager = "serviceaccountmanager"
	// ProjectMemberViewer is the role that may read.
	ProjectMemberViewer = "viewer"
	// ProjectMemberExtensionPrefix begins roles that the landscape defines.
	ProjectMemberExtensionPrefix = "extension:"
)

// ProjectTolerations says which taints Shoots of a Project put up with.
type ProjectTolerations struct {
	// Tolerations added to every Shoot that does not name the key.
	// +optional
	// +listType=atomic
	Defaults []Toleration `json:"defaults,omitempty"`
	// Tolerations that Shoots may name. Changing them takes the verb `modify-spec-tolerations-whitelist`.
	// +optional
	// +listType=atomic
	Whitelist []Toleration `json:"whitelist,omitempty"`
}

// Toleration lets a Shoot onto Seeds with a taint.
type Toleration struct {
	// Key of the taint.
	Key string `json:"key"`
	// Value of the taint. Unset: any.
	// +optional
	Value *string `json:"value,omitempty"`
}

// DualApprovalForDeletion names objects whose deletion takes two people: one confirms, another deletes.
type DualApprovalForDeletion struct {
	// Resource: `shoots`, the only value.
	// +kubebuilder:validation:Enum=shoots
	Resource string `json:"resource"`
	// Labels of the objects.
	Selector metav1.LabelSelector `json:"selector"`
	// Whether the rule holds for deletion by service accounts too. Default: true.
	// +optional
	// +kubebuilder:default=true
	IncludeServiceAccounts *bool `json:"includeServiceAccounts,omitempty"`
}

// ProjectStatus is a Project as it is.
type ProjectStatus struct {
	// Generation of the Project that was last worked on.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// How the Project stands: `Pending`, `Ready`, `Failed` or `Terminating`.
	// +optional
	Phase ProjectPhase `json:"phase,omitempty"`
	// Time since which the Project is unused.
	// +optional
	StaleSinceTimestamp *metav1.Time `json:"staleSinceTimestamp,omitempty"`
	// Time at which the Project will be deleted because it is unused.
	// +optional
	StaleAutoDeleteTimestamp *metav1.Time `json:"staleAutoDeleteTimestamp,omitempty"`
	// Time at which something was last done in the Project.
	// +optional
	LastActivityTimestamp *metav1.Time `json:"lastActivityTimestamp,omitempty"`
	// Verdicts on the Project.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty"`
}

// ProjectPhase is how a Project stands.
type ProjectPhase string

const (
	// ProjectPending means the Project was not worked on yet.
	ProjectPending ProjectPhase = "Pending"
	// ProjectReady means the Project can be used.
	ProjectReady ProjectPhase = "Ready"
	// ProjectFailed means the last attempt failed.
	ProjectFailed ProjectPhase = "Failed"
	// ProjectTerminating means the Project is being deleted.
	ProjectTerminating ProjectPhase = "Terminating"
)
