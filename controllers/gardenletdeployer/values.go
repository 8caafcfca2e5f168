package gardenletdeployer

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	seedmanagementv1alpha1 "github.com/pergola-dev/pergola/api/seedmanagement/v1alpha1"
)

// secretName is a Secret of the target cluster.
type secretName struct{ namespace, name string }

// Names of Secrets unless the configuration says otherwise (upstream's).
const (
	nameBootstrap = "gardenlet-kubeconfig-bootstrap"
	nameFinal     = "gardenlet-kubeconfig"
)

// values of the chart: how the gardenlet runs, and its configuration, in which the Seed has the
// name of the Gardenlet.
type values struct {
	all, config, connection map[string]any
}

func valuesOf(g *seedmanagementv1alpha1.Gardenlet) (*values, error) {
	config := map[string]any{}
	if len(g.Spec.Config.Raw) > 0 {
		if err := json.Unmarshal(g.Spec.Config.Raw, &config); err != nil {
			return nil, fail(reasonConfig, fmt.Errorf("spec.config is no GardenletConfiguration: %w", err))
		}
	}
	if _, is := config["seedConfig"].(map[string]any); !is {
		return nil, fail(reasonConfig, fmt.Errorf("spec.config.seedConfig is needed: it says which Seed is registered"))
	}
	all, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&g.Spec.Deployment)
	if err != nil {
		return nil, fmt.Errorf("spec.deployment: %w", err)
	}
	delete(all, "helm")
	if own, is := all["componentImageVectorOverwrite"]; is { // the chart has another name for it
		delete(all, "componentImageVectorOverwrite")
		all["componentImageVectorOverwrites"] = own
	}
	v := &values{all: all, config: config}
	all["config"] = config
	in(in(config, "seedConfig"), "metadata")["name"] = g.Name
	v.connection = in(config, "gardenClientConnection")
	return v, nil
}

// in gives a map of a map, which is made where it is not there.
func in(m map[string]any, key string) map[string]any {
	inner, is := m[key].(map[string]any)
	if !is {
		inner = map[string]any{}
		m[key] = inner
	}
	return inner
}

// final is the Secret in which the gardenlet keeps its access.
func (v *values) final() secretName { return v.secret("kubeconfigSecret", nameFinal) }

func (v *values) secret(field, otherwise string) secretName {
	ref := in(v.connection, field)
	for key, value := range map[string]string{"name": otherwise, "namespace": Namespace} {
		if text, is := ref[key].(string); !is || text == "" {
			ref[key] = value
		}
	}
	return secretName{ref["namespace"].(string), ref["name"].(string)}
}

// address is the one of the virtual garden that is declared, and the authorities of it; empty where
// none are.
func (v *values) address() (server, authorities string) {
	server, _ = v.connection["gardenClusterAddress"].(string)
	authorities, _ = v.connection["gardenClusterCACert"].(string)
	return server, authorities
}

// bootstrapBy has the chart make the Secret with which the gardenlet asks for its certificate.
func (v *values) bootstrapBy(kubeconfig []byte) {
	v.secret("bootstrapKubeconfig", nameBootstrap)
	in(v.connection, "bootstrapKubeconfig")["kubeconfig"] = string(kubeconfig)
}

// bootstrapped takes away what the gardenlet does not need any more.
func (v *values) bootstrapped() { delete(v.connection, "bootstrapKubeconfig") }
