// SPDX-License-Identifier: Apache-2.0

package gardenletdeployer

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	seedmanagementv1alpha1 "github.com/pergola-dev/pergola/api/seedmanagement/v1alpha1"
)

// secretName is the name of a Secret in the target cluster.
type secretName struct{ namespace, name string }

// Default names of Secrets (upstream's).
const (
	nameBootstrapSecret = "gardenlet-kubeconfig-bootstrap"
	nameAccessSecret    = "gardenlet-kubeconfig"
)

// chartValues are the chart's values: the deployment, and the configuration with the Seed, named
// after the Gardenlet.
type chartValues struct {
	all, config, connection map[string]any
}

func chartValuesOf(g *seedmanagementv1alpha1.Gardenlet) (*chartValues, error) {
	config := map[string]any{}
	if len(g.Spec.Config.Raw) > 0 {
		if err := json.Unmarshal(g.Spec.Config.Raw, &config); err != nil {
			return nil, withReason(reasonConfig, fmt.Errorf("spec.config is not a GardenletConfiguration: %w", err))
		}
	}
	if _, is := config["seedConfig"].(map[string]any); !is {
		return nil, withReason(reasonConfig, fmt.Errorf("spec.config.seedConfig is required: it is the Seed to register"))
	}
	all, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&g.Spec.Deployment)
	if err != nil {
		return nil, fmt.Errorf("spec.deployment: %w", err)
	}
	delete(all, "helm")
	if own, is := all["componentImageVectorOverwrite"]; is { // the chart uses another name
		delete(all, "componentImageVectorOverwrite")
		all["componentImageVectorOverwrites"] = own
	}
	v := &chartValues{all: all, config: config}
	all["config"] = config
	nestedMap(nestedMap(config, "seedConfig"), "metadata")["name"] = g.Name
	v.connection = nestedMap(config, "gardenClientConnection")
	return v, nil
}

// nestedMap returns a map inside a map, and creates it if it is missing.
func nestedMap(m map[string]any, key string) map[string]any {
	inner, is := m[key].(map[string]any)
	if !is {
		inner = map[string]any{}
		m[key] = inner
	}
	return inner
}

// accessSecret names the Secret in which the gardenlet stores its access.
func (v *chartValues) accessSecret() secretName {
	return v.secretNameAt("kubeconfigSecret", nameAccessSecret)
}

func (v *chartValues) secretNameAt(field, otherwise string) secretName {
	ref := nestedMap(v.connection, field)
	for key, value := range map[string]string{"name": otherwise, "namespace": Namespace} {
		if text, is := ref[key].(string); !is || text == "" {
			ref[key] = value
		}
	}
	return secretName{ref["namespace"].(string), ref["name"].(string)}
}

// gardenAddress returns the configured address and certificate authorities of the virtual garden;
// the result is empty if there are none.
func (v *chartValues) gardenAddress() (server, authorities string) {
	server, _ = v.connection["gardenClusterAddress"].(string)
	authorities, _ = v.connection["gardenClusterCACert"].(string)
	return server, authorities
}

// setBootstrapKubeconfig makes the chart create the Secret with the bootstrap kubeconfig.
func (v *chartValues) setBootstrapKubeconfig(kubeconfig []byte) {
	v.secretNameAt("bootstrapKubeconfig", nameBootstrapSecret)
	nestedMap(v.connection, "bootstrapKubeconfig")["kubeconfig"] = string(kubeconfig)
}

// removeBootstrapKubeconfig removes the bootstrap kubeconfig, which the gardenlet no longer needs.
func (v *chartValues) removeBootstrapKubeconfig() { delete(v.connection, "bootstrapKubeconfig") }
