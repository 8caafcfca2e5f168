// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"encoding/base64"
	"os"
	"strings"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/hack/chartregistry"
)

var (
	operatorExtensions = schema.GroupVersionResource{Group: "operator.gardener.cloud", Version: "v1alpha1", Resource: "extensions"}
	extensionObjects   = schema.GroupVersionResource{Group: "extensions.gardener.cloud", Version: "v1alpha1", Resource: "extensions"}
	registrations      = schema.GroupVersionResource{Group: "core.gardener.cloud", Version: "v1beta1", Resource: "controllerregistrations"}
	managedResources   = schema.GroupVersionResource{Group: "resources.gardener.cloud", Version: "v1alpha1", Resource: "managedresources"}
	installationPlans  = schema.GroupVersionResource{Group: "core.gardener.cloud", Version: "v1", Resource: "controllerdeployments"}
)

// declaredExtension is in Git. It has a kind that the Garden uses, and a kind that every Garden
// gets.
const declaredExtension = `
apiVersion: operator.gardener.cloud/v1alpha1
kind: Extension
metadata: {name: watcher}
spec:
  resources:
  - {kind: Extension, type: watcher, autoEnable: [garden, shoot], clusterCompatibility: [garden, shoot]}
  - {kind: Infrastructure, type: watched}
  deployment:
    extension:
      helm: {ociRepository: {ref: "REGISTRY/charts/watcher:v1.0.0", pullSecretRef: {name: registry}, caBundleSecretRef: {name: authority}}}
      policy: Always
      runtimeClusterValues: {password: "{{ .resources.account.data.password }}"}
      values: {password: "{{ .resources.account.data.password }}", level: "{{ .resources.settings.data.level }}"}
    resources:
    - {name: account, resourceRef: {apiVersion: v1, kind: Secret, name: account}}
    - {name: settings, resourceRef: {apiVersion: v1, kind: ConfigMap, name: settings}}
---
apiVersion: v1
kind: Secret
metadata: {name: account, namespace: garden}
stringData: {password: of-the-account, other: stays}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: garden}
data: {level: debug, other: stays}
---
apiVersion: v1
kind: Secret
metadata: {name: registry, namespace: garden}
type: kubernetes.io/dockerconfigjson
stringData: {.dockerconfigjson: 'LOGIN'}
---
apiVersion: v1
kind: Secret
metadata: {name: authority, namespace: garden}
data: {bundle.crt: AUTHORITY}
`

func encodeBase64(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// manualExtension is created manually.
const manualExtension = `
apiVersion: operator.gardener.cloud/v1alpha1
kind: Extension
metadata: {name: somebodys}
spec:
  resources: [{kind: Network, type: somebodys}]
  deployment: {extension: {helm: {ociRepository: {ref: "registry.example.org/charts/somebodys:v1.0.0"}}}}
`

func testExtensions(s *deletionStage) {
	require.NoError(s, os.MkdirAll(s.path("extensions"), 0o755))
	registry := chartregistry.New(s)
	registry.Push(s, "v1.0.0", map[string]string{
		"watcher/Chart.yaml":          "apiVersion: v2\nname: watcher\nversion: 1.0.0\n",
		"watcher/templates/some.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: of-the-chart}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: of-the-chart}\ndata: {config: {{ printf \"p=%s\" .Values.password | b64enc }}}\n",
	})
	s.write("extensions/watcher.yaml", strings.NewReplacer("REGISTRY", registry.Host(), "LOGIN", string(registry.DockerConfigJSON(s, chartregistry.Password)),
		"AUTHORITY", base64.StdEncoding.EncodeToString(registry.CA())).Replace(declaredExtension))
	extensions, virtual := s.api[landscape.Runtime].Resource(operatorExtensions), s.api[landscape.Virtual]
	_, err := extensions.Create(s.context(), s.decodeObject(manualExtension), metav1.CreateOptions{})
	require.NoError(s, err)
	_, err = s.apply(0)
	require.NoError(s, err)

	for _, name := range []string{"watcher", "somebodys"} {
		assert.Equal(s, []string{"gardener.cloud/operator"}, s.get(extensions, name).GetFinalizers(), name)
		s.get(virtual.Resource(registrations), name)
		s.get(virtual.Resource(installationPlans), name)
		assert.Equal(s, "True ReconcileSuccessful", s.condition(extensions, name, "Installed"))
		assert.Equal(s, "False NoRequiredControllerInstallation", s.condition(extensions, name, "RequiredVirtual"))
	}
	assert.Equal(s, "True ExtensionRequired", s.condition(extensions, "watcher", "RequiredRuntime"), "every Garden has an object of it")
	assert.Equal(s, "False ExtensionNotRequired", s.condition(extensions, "somebodys", "RequiredRuntime"))
	asked := s.get(s.api[landscape.Runtime].Resource(extensionObjects).Namespace("garden"), "garden-watcher")
	state, _, _ := unstructured.NestedString(asked.Object, "status", "lastOperation", "state")
	assert.Equal(s, "Succeeded", state)
	chart := s.get(s.api[landscape.Runtime].Resource(managedResources).Namespace("garden"), "extension-watcher-garden")
	installed, _, err := unstructured.NestedSlice(chart.Object, "status", "resources")
	require.NoError(s, err)
	var names []string
	for _, item := range installed {
		names = append(names, item.(map[string]any)["name"].(string))
	}
	assert.Contains(s, names, "of-the-chart")
	copied := s.get(virtual.Resource(secrets).Namespace("garden"), "watcher-registry")
	original := s.get(s.api[landscape.Runtime].Resource(secrets).Namespace("garden"), "registry")
	assert.Equal(s, original.Object["data"], copied.Object["data"])
	assert.Contains(s, original.GetFinalizers(), "gardener.cloud/reference-protection")
	assert.Equal(s, map[string]any{"password": encodeBase64("of-the-account")}, s.get(virtual.Resource(secrets).Namespace("garden"), "watcher-account").Object["data"], "what values name, and nothing else")
	assert.Equal(s, map[string]any{"level": "debug"}, s.get(virtual.Resource(configMaps).Namespace("garden"), "watcher-settings").Object["data"])
	ofTheChart := s.get(s.api[landscape.Runtime].Resource(secrets).Namespace("runtime-extension-watcher"), "of-the-chart")
	assert.Equal(s, map[string]any{"config": encodeBase64("p=of-the-account")}, ofTheChart.Object["data"])

	s.Log("a Seed needs it")
	s.create(virtual.Resource(installations), `
apiVersion: core.gardener.cloud/v1beta1
kind: ControllerInstallation
metadata: {name: watcher-abcde}
spec: {registrationRef: {name: watcher}, seedRef: {name: nobodys}}
`)
	_, err = virtual.Resource(installations).UpdateStatus(s.context(), s.withStatus(s.get(virtual.Resource(installations), "watcher-abcde"), `
conditions:
- {type: Required, status: "True", reason: R, message: M, lastTransitionTime: "2026-01-01T00:00:00Z", lastUpdateTime: "2026-01-01T00:00:00Z"}
- {type: Valid, status: "False", reason: ChartCannotBeRendered, message: no such chart, lastTransitionTime: "2026-01-01T00:00:00Z", lastUpdateTime: "2026-01-01T00:00:00Z"}
`), metav1.UpdateOptions{})
	require.NoError(s, err)
	_, err = s.apply(0)
	require.NoError(s, err)
	assert.Equal(s, "True RequiredControllerInstallation", s.condition(extensions, "watcher", "RequiredVirtual"))
	assert.Equal(s, "False ChartCannotBeRendered", s.condition(extensions, "watcher", "ControllerInstallationsHealthy"))
	require.NoError(s, virtual.Resource(installations).Delete(s.context(), "watcher-abcde", metav1.DeleteOptions{}))

	s.Log("one is deleted by hand, the other one goes from Git")
	require.NoError(s, extensions.Delete(s.context(), "somebodys", metav1.DeleteOptions{}))
	require.NoError(s, os.RemoveAll(s.path("extensions")))
	for _, name := range []string{"watcher", "somebodys"} {
		s.get(extensions, name) // it waits for its installed objects
	}
	report, err := s.apply(0)
	require.NoError(s, err)
	s.requireNotFound(extensions, "somebodys")
	require.Len(s, report.Held, 1, "namespaces go when somebody approves it")
	assert.Equal(s, "runtime-extension-watcher", report.Held[0].Objects[0].Ref.Name)
	assert.Equal(s, "True DeletionWaits", s.condition(extensions, "watcher", "Installed"))
	s.requireNotFound(virtual.Resource(registrations), "watcher")
	_, err = s.apply(0, report.Held[0].Approval)
	require.NoError(s, err)
	for _, name := range []string{"watcher", "somebodys"} {
		s.requireNotFound(extensions, name)
		s.requireNotFound(virtual.Resource(registrations), name)
		s.requireNotFound(virtual.Resource(installationPlans), name)
	}
	s.requireNotFound(s.api[landscape.Runtime].Resource(extensionObjects).Namespace("garden"), "garden-watcher")
	s.requireNotFound(virtual.Resource(secrets).Namespace("garden"), "watcher-registry")
	s.requireNotFound(s.api[landscape.Runtime].Resource(managedResources).Namespace("garden"), "extension-watcher-garden")
}

var installations = schema.GroupVersionResource{Group: "core.gardener.cloud", Version: "v1beta1", Resource: "controllerinstallations"}

// condition returns status and reason of a condition.
func (s *deletionStage) condition(r dynamic.ResourceInterface, name, kind string) string {
	s.Helper()
	list, _, err := unstructured.NestedSlice(s.get(r, name).Object, "status", "conditions")
	require.NoError(s, err)
	for _, item := range list {
		if c := item.(map[string]any); c["type"] == kind {
			return strings.TrimSpace(c["status"].(string) + " " + c["reason"].(string))
		}
	}
	return ""
}

func (s *deletionStage) create(r dynamic.ResourceInterface, text string) {
	s.Helper()
	_, err := r.Create(s.context(), s.decodeObject(text), metav1.CreateOptions{})
	require.NoError(s, err)
}

func (s *deletionStage) withStatus(o *unstructured.Unstructured, text string) *unstructured.Unstructured {
	s.Helper()
	o.Object["status"] = s.decodeObject(text).Object
	return o
}

func (s *deletionStage) requireNotFound(r dynamic.ResourceInterface, name string) {
	s.Helper()
	_, err := r.Get(s.context(), name, metav1.GetOptions{})
	assert.True(s, apierrors.IsNotFound(err), "%s: %v", name, err)
}
