package admission

import (
	"errors"
	"fmt"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	sigsyaml "sigs.k8s.io/yaml"

	operatorv1alpha1 "github.com/pergola-dev/pergola/api/operator/v1alpha1"
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

const (
	settingsVersion = "admissioncontroller.config.gardener.cloud/v1alpha1"
	settingsKind    = "AdmissionControllerConfiguration"
)

// ReadSettings reads a file. Unknown fields are errors.
func ReadSettings(path string) (*Settings, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	s := &Settings{}
	if err := sigsyaml.UnmarshalStrict(raw, s); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if s.APIVersion != settingsVersion || s.Kind != settingsKind {
		return nil, fmt.Errorf("%s: is %s of %s, and must be %s of %s", path, s.Kind, s.APIVersion, settingsKind, settingsVersion)
	}
	if s.Server.Webhooks.TLS.ServerCertDir == "" {
		return nil, errors.New(path + ": server.webhooks.tls.serverCertDir: is missing: API servers connect over TLS")
	}
	return s, nil
}
