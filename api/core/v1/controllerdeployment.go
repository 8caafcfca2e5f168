// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"encoding/json"
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ControllerDeploymentTypeHelm is the type, in version v1beta1, of a ControllerDeployment that
// installs a Helm chart.
const ControllerDeploymentTypeHelm = "helm"

// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,path=controllerdeployments,singular=controllerdeployment,shortName=ctrldeploy,categories=gardener
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since creation."

// ControllerDeployment defines how an extension is installed.
type ControllerDeployment struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Helm chart to install.
	// +optional
	Helm *HelmControllerDeployment `json:"helm,omitempty"`
	// Whether workloads of the extension get a kubeconfig for the garden.
	// +optional
	InjectGardenKubeconfig *bool `json:"injectGardenKubeconfig,omitempty"`
	// Secrets and ConfigMaps of namespace `garden` that templates in the values may use, as
	// `{{ .resources.NAME.data.KEY }}`.
	// +optional
	// +listType=map
	// +listMapKey=name
	Resources []NamedResourceReference `json:"resources,omitempty"`
	// Field of version v1beta1, set only in objects written in that version. Served as written,
	// because both versions are stored alike.
	// +optional
	Type string `json:"type,omitempty" pergola:"otherVersion"`
	// Field of version v1beta1, like `type`.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty" pergola:"otherVersion"`
}

// +kubebuilder:object:root=true

// ControllerDeploymentList is a list of ControllerDeployments.
type ControllerDeploymentList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []ControllerDeployment `json:"items"`
}

// HelmControllerDeployment is a Helm chart with values. Exactly one of `rawChart` and
// `ociRepository` is set.
type HelmControllerDeployment struct {
	// Chart as a gzipped tar archive.
	// +optional
	RawChart []byte `json:"rawChart,omitempty"`
	// Values of the chart.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Values *apiextensionsv1.JSON `json:"values,omitempty"`
	// OCI repository of the chart.
	// +optional
	OCIRepository *OCIRepository `json:"ociRepository,omitempty"`
}

// OCIRepository is an artifact in a registry: either `ref`, or `repository` with `tag` or `digest`.
type OCIRepository struct {
	// Reference with registry, repository and tag or digest, for example
	// `registry.example.org/charts/dns:v1.0.0`. Excludes the other reference fields.
	// +optional
	Ref *string `json:"ref,omitempty"`
	// Registry and repository.
	// +optional
	Repository *string `json:"repository,omitempty"`
	// Tag.
	// +optional
	Tag *string `json:"tag,omitempty"`
	// Digest, with the prefix `sha256:`. Overrides the tag.
	// +optional
	Digest *string `json:"digest,omitempty"`
	// Secret of type `kubernetes.io/dockerconfigjson` in namespace `garden` with the credentials.
	// For gardenlets, it needs the label `gardener.cloud/role=helm-pull-secret`.
	// +optional
	PullSecretRef *corev1.LocalObjectReference `json:"pullSecretRef,omitempty"`
	// Secret in namespace `garden` with the CA certificates of the registry, in PEM form under the
	// key `bundle.crt`. For gardenlets, it needs the label `gardener.cloud/role=oci-ca-bundle`.
	// Unset: the CA certificates of the system.
	// +optional
	CABundleSecretRef *corev1.LocalObjectReference `json:"caBundleSecretRef,omitempty"`
}

// NamedResourceReference gives an object a name under which templates refer to it.
type NamedResourceReference struct {
	// Name used in templates: letters and digits; unique within the list.
	Name string `json:"name"`
	// Secret or ConfigMap that the name refers to.
	ResourceRef autoscalingv1.CrossVersionObjectReference `json:"resourceRef"`
}

// HelmDeployment returns the chart to install, from an object written in either version, or nil if
// the object does not install a chart. It fails if a v1beta1 configuration does not describe a
// chart.
func (d *ControllerDeployment) HelmDeployment() (*HelmControllerDeployment, error) {
	if d.Helm != nil || d.Type != ControllerDeploymentTypeHelm {
		return d.Helm, nil
	}
	var legacy struct {
		Chart         []byte                `json:"chart,omitempty"`
		Values        *apiextensionsv1.JSON `json:"values,omitempty"`
		OCIRepository *OCIRepository        `json:"ociRepository,omitempty"`
	}
	if d.ProviderConfig != nil && len(d.ProviderConfig.Raw) > 0 {
		if err := json.Unmarshal(d.ProviderConfig.Raw, &legacy); err != nil {
			return nil, fmt.Errorf("reading providerConfig of the ControllerDeployment %s: %w", d.Name, err)
		}
	}
	return &HelmControllerDeployment{RawChart: legacy.Chart, Values: legacy.Values, OCIRepository: legacy.OCIRepository}, nil
}
