// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,path=landscapes,singular=landscape,shortName=ls,categories=pergola
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether the landscape is converged and healthy."
// +kubebuilder:printcolumn:name="Revision",type=string,JSONPath=`.status.lastAppliedRevision`,description="Commit that was last applied completely."
// +kubebuilder:printcolumn:name="Last Operation",type=string,JSONPath=`.status.lastOperation.state`,description="State of the last operation."
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,description="Why it is, or is not, ready."
// +kubebuilder:printcolumn:name="Suspended",type=boolean,JSONPath=`.spec.suspend`,description="Whether syncing is paused.",priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since creation."

// Landscape is a folder of declarations with its settings: catalogue, layers, access to clusters,
// disabled components and limits on deletions. In the runtime cluster it also makes the operator
// sync that folder from Git.
type Landscape struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Desired state of the landscape.
	// +optional
	Spec LandscapeSpec `json:"spec,omitempty"`
	// Observed state of the landscape. Set only in the cluster.
	// +optional
	Status LandscapeStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// LandscapeList is a list of Landscapes.
type LandscapeList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []Landscape `json:"items"`
}

// LandscapeSpec is the desired state of a landscape.
type LandscapeSpec struct {
	// Catalogue of components that the landscape is written for. Unset: the catalogue built into
	// the program, with a warning.
	// +optional
	Catalogue *Catalogue `json:"catalogue,omitempty"`
	// Base folders that the landscape builds on, as paths relative to `landscape.yaml` that stay
	// within the repository. Later layers override earlier ones; the landscape's own files override
	// all layers.
	// +optional
	// +listType=atomic
	Layers []string `json:"layers,omitempty"`
	// Server of `core.gardener.cloud` in the virtual garden: `crd` (Pergola's CRDs and webhooks) or
	// `aggregated` (upstream's gardener-apiserver). The two exclude each other. Default: `crd`.
	// +optional
	// +kubebuilder:default=crd
	GardenAPI GardenAPI `json:"gardenAPI,omitempty"`
	// Feature gates of gardener-operator's configuration that can still be chosen. They decide
	// which components are deployed and how health is judged. Feature gates of components are
	// fields of the Garden.
	// +optional
	FeatureGates *FeatureGates `json:"featureGates,omitempty"`
	// Access to the clusters of the landscape.
	// +optional
	Clusters *Clusters `json:"clusters,omitempty"`
	// Settings of components, by owner kind (`garden`, `seed`, `shoot`) and name of the component.
	// The component's own condition decides whether an unlisted component is enabled.
	// +optional
	Components map[Owner]map[string]ComponentSettings `json:"components,omitempty"`
	// Images that replace images of the catalogue's image vector. Later entries override earlier
	// ones.
	// +optional
	// +listType=atomic
	Images []ImageOverride `json:"images,omitempty"`
	// Limits on deletions without approval.
	// +optional
	DeletionGate *DeletionGate `json:"deletionGate,omitempty"`
	// Time for which a check may fail before its condition changes from `Progressing` to `False`,
	// by condition type. Unlisted conditions of a Garden, `SeedSystemComponentsHealthy` and
	// `ControlPlaneHealthy`: 1m; other types change at once.
	// +optional
	// +listType=map
	// +listMapKey=type
	ConditionThresholds []ConditionThreshold `json:"conditionThresholds,omitempty"`
	// Time for which a ManagedResource may be progressing before the conditions of its Garden, Seed
	// or Shoot count it as failed. Unset: a progressing ManagedResource fails the check at once.
	// `conditionThresholds` apply in both cases.
	// +optional
	// +kubebuilder:validation:Format=duration
	ManagedResourceProgressingThreshold *metav1.Duration `json:"managedResourceProgressingThreshold,omitempty"`
	// Rules for the health of objects.
	// +optional
	Health *Health `json:"health,omitempty"`
	// True takes over fields of declared and rendered objects from other field managers. Default:
	// false; such fields are reported as conflicts. The annotation
	// `landscape.pergola.dev/force-conflicts: "true"` requests it for a single object.
	// +optional
	ForceConflicts bool `json:"forceConflicts,omitempty"`
	// Path, relative to `landscape.yaml`, of a file with recorded facts (names of Secrets,
	// discovered addresses …). Rendering uses it before a cluster exists. Unset: facts stay
	// symbolic.
	// +optional
	Facts string `json:"facts,omitempty"`
	// Objects that exist outside of the landscape: created by hand, by another tool or through the
	// API. Declarations may refer to them; a reference to any other undeclared object is an error.
	// +optional
	// +listType=atomic
	External []ExternalObject `json:"external,omitempty"`

	SyncSpec `json:",inline"`
}

// ExternalObject names one or several objects that exist outside of the landscape.
type ExternalObject struct {
	// Kind, for example `Secret`.
	// +kubebuilder:validation:MinLength=1
	Kind string `json:"kind"`
	// Namespace; `*` matches any text. Unset: the object is cluster-scoped.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Name; `*` matches any text.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
}

// GardenAPI is the server of `core.gardener.cloud` in the virtual garden.
// +kubebuilder:validation:Enum=aggregated;crd
type GardenAPI string

const (
	// GardenAPIAggregated is upstream's gardener-apiserver, registered by APIServices.
	GardenAPIAggregated GardenAPI = "aggregated"
	// GardenAPICRD is Pergola's CRDs and admission webhooks.
	GardenAPICRD GardenAPI = "crd"
)

// FeaturePrometheusHealthChecks is the feature gate that Go code reads. It makes care query each
// Prometheus.
const FeaturePrometheusHealthChecks = "PrometheusHealthChecks"

// FeatureGates holds feature gates of gardener-operator.
type FeatureGates struct {
	// Whether the ingress gateway terminates TLS connections of API server clients and balances
	// their requests. Otherwise it passes connections through. Default: true.
	// +optional
	IstioTLSTermination *bool `json:"IstioTLSTermination,omitempty"`
	// Whether VictoriaLogs stores logs, too. Default: false.
	// +optional
	VictoriaLogsBackend *bool `json:"VictoriaLogsBackend,omitempty"`
	// True omits Vali, which otherwise stores logs. Default: false.
	// +optional
	RemoveVali *bool `json:"RemoveVali,omitempty"`
	// True omits, and removes, the ingress controller (nginx) of the runtime cluster for Ingresses
	// of class `nginx-ingress-gardener`. The Garden does not need it. Default: true.
	// +optional
	DisableNginxIngressInGarden *bool `json:"DisableNginxIngressInGarden,omitempty"`
	// Whether the provider's extension creates backup credentials for the etcd of the virtual
	// garden from a BackupEntry. They are valid only for that entry of the bucket. Otherwise etcd
	// uses the credentials of the bucket. Default: true.
	// +optional
	BackupEntryForGarden *bool `json:"BackupEntryForGarden,omitempty"`
	// Whether an OpenTelemetry collector forwards logs of the runtime cluster to the log stores.
	// Otherwise Fluent Bit sends them directly to Vali, and VictoriaLogs gets none. Default: true.
	// +optional
	OpenTelemetryCollector *bool `json:"OpenTelemetryCollector,omitempty"`
	// Whether the condition ObservabilityComponentsHealthy of the Garden also depends on a
	// `healthcheck` query to each Prometheus of the garden. Default: false.
	// +optional
	PrometheusHealthChecks *bool `json:"PrometheusHealthChecks,omitempty"`
	// Whether new pods in Gardener's namespaces of the runtime cluster get the seccomp profile of
	// the container runtime, unless they set one. A webhook of gardener-resource-manager sets it.
	// Default: false; upstream's chart of gardener-operator enables it.
	// +optional
	DefaultSeccompProfile *bool `json:"DefaultSeccompProfile,omitempty"`
}

// Values returns the value of each gate by name, with defaults applied.
func (g *FeatureGates) Values() map[string]bool {
	if g == nil {
		g = &FeatureGates{}
	}
	is := func(gate *bool, byDefault bool) bool {
		if gate == nil {
			return byDefault
		}
		return *gate
	}
	return map[string]bool{
		"IstioTLSTermination":         is(g.IstioTLSTermination, true),
		"VictoriaLogsBackend":         is(g.VictoriaLogsBackend, false),
		"RemoveVali":                  is(g.RemoveVali, false),
		"DisableNginxIngressInGarden": is(g.DisableNginxIngressInGarden, true),
		"BackupEntryForGarden":        is(g.BackupEntryForGarden, true),
		"OpenTelemetryCollector":      is(g.OpenTelemetryCollector, true),
		FeaturePrometheusHealthChecks: is(g.PrometheusHealthChecks, false),
		"DefaultSeccompProfile":       is(g.DefaultSeccompProfile, false),
	}
}

// Catalogue is the set of components that a landscape is written for.
type Catalogue struct {
	// Version of the catalogue, a semantic version. Rendering with another version fails, so that
	// an upgrade is a commit whose diff shows its effect.
	// +kubebuilder:validation:Pattern=`^v?(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`
	Version string `json:"version"`
}

// Owner is the kind of declaration a component belongs to.
type Owner string

const (
	// OwnerGarden is the owner kind of components of a Garden.
	OwnerGarden Owner = "garden"
	// OwnerSeed is the owner kind of components of a Seed.
	OwnerSeed Owner = "seed"
	// OwnerShoot is the owner kind of components of a Shoot.
	OwnerShoot Owner = "shoot"
)

// ComponentSettings are settings of one component.
type ComponentSettings struct {
	// Whether the component is enabled. Unset: the component's own condition decides.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
}

// ImageOverride replaces an image of the image vector.
type ImageOverride struct {
	// Name of the image in the image vector, for example `kube-apiserver`.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
	// Repository to pull from. Unset: unchanged.
	// +optional
	Repository string `json:"repository,omitempty"`
	// Tag or digest (`sha256:…`). Unset: unchanged.
	// +optional
	Tag string `json:"tag,omitempty"`
	// Range of Kubernetes versions that the override applies to, for example `>= 1.33`. Unset: all.
	// +optional
	Version string `json:"version,omitempty"`
}

// DeletionGate limits deletions without approval. Deletions and recreations beyond a limit are held
// until they are approved. For each cluster and run, the gate counts the deletions of one owner
// together, and those among the declarations.
type DeletionGate struct {
	// Maximum number of objects that one run may delete or recreate on a cluster, for one owner or
	// the declarations. 0 holds every deletion. Default: 100.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxDeletions *int32 `json:"maxDeletions,omitempty"`
	// Maximum share of the objects of one owner, or of the declarations, on a cluster that one run
	// may delete or recreate, for example `10%`. Up to ten deletions are exempt, unless the share
	// is `0%`. Default: `50%`.
	// +optional
	// +kubebuilder:validation:Pattern=`^(100|[1-9]?[0-9])%$`
	MaxShare *string `json:"maxShare,omitempty"`
	// Kinds whose objects are never deleted without approval, as `Kind` or `Kind.group`. Default:
	// PersistentVolumeClaim, PersistentVolume, Namespace, CustomResourceDefinition, Etcd, Garden,
	// Seed, Shoot, Project. An empty list protects no kind.
	// +optional
	// +listType=set
	ProtectedKinds []string `json:"protectedKinds,omitempty"`
}

// ConditionThreshold is the time for which a check may fail.
type ConditionThreshold struct {
	// Type of the condition, for example `APIServerAvailable`.
	Type gardencorev1beta1.ConditionType `json:"type"`
	// Time for which the check may fail before its condition is `False`.
	// +kubebuilder:validation:Format=duration
	Duration metav1.Duration `json:"duration"`
}
