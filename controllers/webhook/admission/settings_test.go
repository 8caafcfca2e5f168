// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestReadSettings(t *testing.T) {
	const good = `apiVersion: admissioncontroller.config.gardener.cloud/v1alpha1
kind: AdmissionControllerConfiguration
gardenClientConnection: {kubeconfig: /k, qps: 100, burst: 130, acceptContentTypes: "", contentType: ""}
logLevel: debug
server:
  healthProbes: {bindAddress: "", port: 2722}
  metrics: {bindAddress: "", port: 2723}
  resourceAdmissionConfiguration: {operationMode: block, limits: [{apiGroups: [a], apiVersions: ["*"], resources: [b], size: 100k}]}
  webhooks: {bindAddress: "", port: 2719, tls: {serverCertDir: /srv}}
`
	for name, c := range map[string]struct{ text, wrong string }{
		"upstream's":        {good, ""},
		"a field too many":  {good + "more: true\n", "config.yaml:10:1: more: unknown field; fields here are"},
		"another kind":      {"apiVersion: v1\nkind: ConfigMap\n", "config.yaml:2:7: kind: is \"ConfigMap\", and must be AdmissionControllerConfiguration"},
		"no certificates":   {"apiVersion: " + settingsKind.APIVersion + "\nkind: " + settingsKind.Kind + "\n", "serverCertDir: Required value: API servers connect over TLS"},
		"not to be decoded": {"a: [", "config.yaml:1:1: this is not YAML"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "config.yaml")
			require.NoError(t, os.WriteFile(file, []byte(c.text), 0o600))
			s, err := ReadSettings(file)
			if c.wrong != "" {
				require.ErrorContains(t, err, c.wrong)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, "/k", s.GardenClientConnection.Kubeconfig)
			assert.Equal(t, "/srv", s.Server.Webhooks.TLS.ServerCertDir)
			assert.Equal(t, []int{2719, 2722, 2723}, []int{s.Server.Webhooks.Port, s.Server.HealthProbes.Port, s.Server.Metrics.Port})
		})
	}
	_, err := ReadSettings(filepath.Join(t.TempDir(), "none"))
	require.ErrorContains(t, err, "reading the configuration: ")
}
