// SPDX-License-Identifier: Apache-2.0

package admission

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	operatorv1alpha1 "github.com/pergola-dev/pergola/api/operator/v1alpha1"
	"github.com/pergola-dev/pergola/internal/settingsfile"
)

// Settings is upstream's component configuration of gardener-admission-controller
// (pkg/apis/config/admissioncontroller/v1alpha1), so that its workloads can run this program.
type Settings struct {
	metav1.TypeMeta        `json:",inline"`
	GardenClientConnection struct {
		// Kubeconfig of the virtual garden.
		Kubeconfig         string  `json:"kubeconfig"`
		AcceptContentTypes string  `json:"acceptContentTypes"`
		ContentType        string  `json:"contentType"`
		QPS                float32 `json:"qps"`
		Burst              int32   `json:"burst"`
	} `json:"gardenClientConnection"`
	LogLevel  string `json:"logLevel"`
	LogFormat string `json:"logFormat"`
	Server    struct {
		Webhooks struct {
			SettingsServer `json:",inline"`
			TLS            struct {
				// ServerCertDir contains tls.crt and tls.key.
				ServerCertDir string `json:"serverCertDir"`
			} `json:"tls"`
		} `json:"webhooks"`
		HealthProbes *SettingsServer `json:"healthProbes,omitempty"`
		Metrics      *SettingsServer `json:"metrics,omitempty"`
		// ResourceAdmissionConfiguration limits the size of resources (path
		// /webhooks/validate-resource-size).
		ResourceAdmissionConfiguration *operatorv1alpha1.ResourceAdmissionConfiguration `json:"resourceAdmissionConfiguration,omitempty"`
		EnableDebugHandlers            *bool                                            `json:"enableDebugHandlers,omitempty"`
	} `json:"server"`
	Debugging map[string]any `json:"debugging,omitempty"`
}

// SettingsServer is an address to listen on.
type SettingsServer struct {
	BindAddress string `json:"bindAddress"`
	Port        int    `json:"port"`
}

var settingsKind = metav1.TypeMeta{APIVersion: "admissioncontroller.config.gardener.cloud/v1alpha1", Kind: "AdmissionControllerConfiguration"}

// ReadSettings reads a file. It reports unknown fields and invalid values with their positions.
func ReadSettings(path string) (*Settings, error) {
	s := &Settings{}
	if err := settingsfile.Read(path, settingsKind, s); err != nil {
		return nil, err
	}
	return s, nil
}

// Default implements settingsfile.Settings: the program has defaults for flags, not for fields.
func (s *Settings) Default() {}

// Validate implements settingsfile.Settings.
func (s *Settings) Validate() field.ErrorList {
	if s.Server.Webhooks.TLS.ServerCertDir == "" {
		return field.ErrorList{field.Required(field.NewPath("server", "webhooks", "tls", "serverCertDir"), "API servers connect over TLS")}
	}
	return nil
}
