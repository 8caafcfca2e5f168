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

// Landscape is a folder of declarations and how it becomes clusters: which catalogue it is written for, what it
// builds on, how its clusters are reached, what is switched off, and what must not be deleted unseen. In the
// runtime cluster it is also the order to sync that folder from Git.
type Landscape struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// The landscape as declared.
	// +optional
	Spec LandscapeSpec `json:"spec,omitempty"`
	// What was applied, and how it fares. Only in the cluster.
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

// LandscapeSpec declares a landscape.
type LandscapeSpec struct {
	// Catalogue of components the landscape is written for. Unset: the one built into the program, with a warning.
	// +optional
	Catalogue *Catalogue `json:"catalogue,omitempty"`
	// Base folders that the landscape builds on, as paths relative to `landscape.yaml` that stay within the
	// repository. Later layers win over earlier ones, the landscape's own files over all layers.
	// +optional
	// +listType=atomic
	Layers []string `json:"layers,omitempty"`
	// Who serves `core.gardener.cloud` in the virtual garden: `crd` (Pergola's CRDs and webhooks) or `aggregated`
	// (upstream's gardener-apiserver). The two exclude each other. Default: `crd`.
	// +optional
	// +kubebuilder:default=crd
	GardenAPI GardenAPI `json:"gardenAPI,omitempty"`
	// Feature gates of gardener-operator's configuration that have a choice left: they decide what is deployed, and what health is judged by.
	// Gates of components are fields of the Garden.
	// +optional
	FeatureGates *FeatureGates `json:"featureGates,omitempty"`
	// How the clusters of the landscape are reached.
	// +optional
	Clusters *Clusters `json:"clusters,omitempty"`
	// Settings of components, by owner kind (`garden`, `seed`, `shoot`) and name of the component. A component that is
	// not listed is enabled by its own condition.
	// +optional
	Components map[Owner]map[string]ComponentSettings `json:"components,omitempty"`
	// Images that replace those of the catalogue's image vector. Later entries win over earlier ones.
	// +optional
	// +listType=atomic
	Images []ImageOverride `json:"images,omitempty"`
	// What may be deleted without a second look.
	// +optional
	DeletionGate *DeletionGate `json:"deletionGate,omitempty"`
	// How long a check may fail before its condition turns from `Progressing` to `False`, by condition type. A type that
	// is not listed turns at once.
	// +optional
	// +listType=map
	// +listMapKey=type
	ConditionThresholds []ConditionThreshold `json:"conditionThresholds,omitempty"`
	// How long a ManagedResource may be progressing before the conditions of its Garden, Seed or Shoot count that as a failure. Unset: a
	// ManagedResource that is progressing fails the check at once; `conditionThresholds` hold in both cases.
	// +optional
	// +kubebuilder:validation:Format=duration
	ManagedResourceProgressingThreshold *metav1.Duration `json:"managedResourceProgressingThreshold,omitempty"`
	// How objects are judged.
	// +optional
	Health *Health `json:"health,omitempty"`
	// True takes fields of declared and rendered objects over from whoever else owns them. Default: false, they are reported as
	// conflicts; a single object asks for it with the annotation `landscape.pergola.dev/force-conflicts: "true"`.
	// +optional
	ForceConflicts bool `json:"forceConflicts,omitempty"`
	// Path, relative to `landscape.yaml`, of a file with recorded facts (names of Secrets, discovered addresses …) to
	// render with before there is a cluster. Unset: facts stay symbolic.
	// +optional
	Facts string `json:"facts,omitempty"`
	// Objects that exist outside of the landscape: made by hand, by another tool or through the API. Declarations may refer to
	// them; a reference to any other object that is not declared is an error.
	// +optional
	// +listType=atomic
	External []ExternalObject `json:"external,omitempty"`

	SyncSpec `json:",inline"`
}

// ExternalObject names an object that exists outside of the landscape, or several.
type ExternalObject struct {
	// Kind, for example `Secret`.
	// +kubebuilder:validation:MinLength=1
	Kind string `json:"kind"`
	// Namespace; `*` in it stands for any text. Unset: the object is cluster-scoped.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Name; `*` in it stands for any text.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
}

// GardenAPI says who serves `core.gardener.cloud` in the virtual garden.
// +kubebuilder:validation:Enum=aggregated;crd
type GardenAPI string

const (
	// GardenAPIAggregated is upstream's gardener-apiserver, registered by APIServices.
	GardenAPIAggregated GardenAPI = "aggregated"
	// GardenAPICRD is Pergola's CRDs and admission webhooks.
	GardenAPICRD GardenAPI = "crd"
)

// FeaturePrometheusHealthChecks is the gate that Go code looks at: it decides what care asks.
const FeaturePrometheusHealthChecks = "PrometheusHealthChecks"

// FeatureGates are feature gates of gardener-operator, by their names.
type FeatureGates struct {
	// The ingress gateway ends the TLS connections of clients of API servers, and spreads their requests. Otherwise it passes
	// connections through. Default: true.
	// +optional
	IstioTLSTermination *bool `json:"IstioTLSTermination,omitempty"`
	// Logs are stored by VictoriaLogs, too. Default: false.
	// +optional
	VictoriaLogsBackend *bool `json:"VictoriaLogsBackend,omitempty"`
	// Vali, which stores logs otherwise, is not deployed. Default: false.
	// +optional
	RemoveVali *bool `json:"RemoveVali,omitempty"`
	// There is no ingress controller (nginx) in the runtime cluster, for Ingresses of class `nginx-ingress-gardener`; one that is there
	// is removed. Nothing of the Garden needs it. Default: true.
	// +optional
	DisableNginxIngressInGarden *bool `json:"DisableNginxIngressInGarden,omitempty"`
	// The provider's extension makes the credentials that the etcd of the virtual garden is backed up with, for its place in the bucket
	// alone, from a BackupEntry. Otherwise etcd takes those of the bucket. Default: true.
	// +optional
	BackupEntryForGarden *bool `json:"BackupEntryForGarden,omitempty"`
	// Logs of the runtime cluster go through an OpenTelemetry collector to where they are stored. Otherwise Fluent Bit sends them to Vali
	// by itself, and VictoriaLogs gets none. Default: true.
	// +optional
	OpenTelemetryCollector *bool `json:"OpenTelemetryCollector,omitempty"`
	// The condition ObservabilityComponentsHealthy of the Garden also asks each Prometheus of the garden whether it sees what it should.
	// Default: false.
	// +optional
	PrometheusHealthChecks *bool `json:"PrometheusHealthChecks,omitempty"`
	// Pods in namespaces of Gardener in the runtime cluster get the seccomp profile of the container runtime when they are made, unless
	// they say one themselves: gardener-resource-manager is asked about them. Default: false; upstream's chart of gardener-operator turns
	// it on.
	// +optional
	DefaultSeccompProfile *bool `json:"DefaultSeccompProfile,omitempty"`
}

// On gives all gates by their names, with their defaults.
func (g *FeatureGates) On() map[string]bool {
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

// Catalogue is the set of components a landscape is written for.
type Catalogue struct {
	// Version of the catalogue, a semantic version. Rendering with another version is refused, so that an upgrade is
	// a commit whose diff shows its effect.
	// +kubebuilder:validation:Pattern=`^v?(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`
	Version string `json:"version"`
}

// Owner is the kind of declaration a component belongs to.
type Owner string

const (
	// OwnerGarden stands for components of a Garden.
	OwnerGarden Owner = "garden"
	// OwnerSeed stands for components of a Seed.
	OwnerSeed Owner = "seed"
	// OwnerShoot stands for components of a Shoot.
	OwnerShoot Owner = "shoot"
)

// ComponentSettings are settings of one component.
type ComponentSettings struct {
	// False switches the component off, true on. Unset: the component's own condition decides.
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
	// Range of Kubernetes versions for which the override holds, for example `>= 1.33`. Unset: all.
	// +optional
	Version string `json:"version,omitempty"`
}

// DeletionGate says what may be deleted without a second look. An apply that would delete or recreate more is held
// until it is approved. The gate counts per cluster, over all bundles of one apply.
type DeletionGate struct {
	// Greatest number of objects that one apply may delete or recreate on a cluster. 0 holds every deletion.
	// Default: 100.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxDeletions *int32 `json:"maxDeletions,omitempty"`
	// Greatest share of the objects managed on a cluster that one apply may delete or recreate, for example `10%`.
	// A share says nothing about up to ten deletions, which it does not hold unless it is `0%`. Default: `50%`.
	// +optional
	// +kubebuilder:validation:Pattern=`^(100|[1-9]?[0-9])%$`
	MaxShare *string `json:"maxShare,omitempty"`
	// Kinds of which no object is deleted without approval, as `Kind` or `Kind.group`. Default: PersistentVolumeClaim,
	// PersistentVolume, Namespace, CustomResourceDefinition, Etcd, Garden, Seed, Shoot. An empty list protects none.
	// +optional
	// +listType=set
	ProtectedKinds []string `json:"protectedKinds,omitempty"`
}

// ConditionThreshold says how long a check may fail.
type ConditionThreshold struct {
	// Type of the condition, for example `APIServerAvailable`.
	Type gardencorev1beta1.ConditionType `json:"type"`
	// How long the check may fail before its condition is `False`.
	// +kubebuilder:validation:Format=duration
	Duration metav1.Duration `json:"duration"`
}
