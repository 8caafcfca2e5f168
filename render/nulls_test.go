// SPDX-License-Identifier: Apache-2.0

package render

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	operatorv1alpha1 "github.com/pergola-dev/pergola/api/operator/v1alpha1"
)

// TestNullInFreeForm: a null in a free-form part is preserved for its reader.
func TestNullInFreeForm(t *testing.T) {
	config := func() map[string]any {
		return map[string]any{"apiVersion": "local.provider.extensions.gardener.cloud/v1alpha1", "kind": "Config", "none": nil, "in": map[string]any{"none": nil, "list": []any{nil, int64(1)}}}
	}
	result := variant{
		gardenAPI: landscapev1alpha1.GardenAPIAggregated,
		files: map[string]string{"extensions.yaml": variantExtensions + `---
apiVersion: operator.gardener.cloud/v1alpha1
kind: Extension
metadata: {name: some}
spec:
  deployment: {extension: {helm: {ociRepository: {ref: "registry.example.org/charts/all:v1"}}, values: {none: null}, runtimeClusterValues: {none: null}}}
  resources: [{kind: Extension, type: some, clusterCompatibility: [garden], autoEnable: null}]
`},
		changes: []change{
			{"Garden", "spec.extensions", []any{map[string]any{"type": "some", "providerConfig": config()}}},
			{"Garden", "spec.virtualCluster.etcd.main.backup.providerConfig", config()},
			{"Garden", "spec.dns.providers", []any{map[string]any{"name": "primary", "type": "local", "secretRef": map[string]any{"name": "garden-dns-local"}, "providerConfig": config()}}},
			{"Garden", "spec.virtualCluster.kubernetes.kubeAPIServer.admissionPlugins", []any{
				map[string]any{"name": "PodSecurity", "config": map[string]any{"apiVersion": "pod-security.admission.config.k8s.io/v1", "kind": "PodSecurityConfiguration", "defaults": nil, "exemptions": map[string]any{"namespaces": nil}}},
				map[string]any{"name": "PodTolerationRestriction", "config": map[string]any{"apiVersion": "podtolerationrestriction.admission.k8s.io/v1alpha1", "kind": "Configuration", "default": nil}},
			}},
			{"Garden", "spec.virtualCluster.gardener.gardenerAPIServer.admissionPlugins", []any{map[string]any{"name": "ShootDNS", "config": config()}}},
			{"Shoot", "spec.provider.infrastructureConfig", config()},
			{"Shoot", "spec.provider.controlPlaneConfig", config()},
			{"Shoot", "spec.networking.providerConfig", config()},
			{"Shoot", "spec.provider.workers.providerConfig", config()},
		},
	}.render(t)
	want := map[string]int{"BackupBucket": 1, "DNSRecord": 3, "Extension": 1, "Infrastructure": 1, "ControlPlane": 1, "Network": 1, "Worker": 1}
	plugins := map[string]string{}
	for _, b := range result.bundles() {
		for _, o := range b.Objects {
			if o.GetKind() == "ConfigMap" {
				data, _, err := unstructured.NestedStringMap(o.Object, "data")
				require.NoError(t, err)
				for _, file := range []string{"podsecurity.yaml", "podtolerationrestriction.yaml", "shootdns.yaml"} {
					if text, has := data[file]; has {
						plugins[file] = text
					}
				}
			}
			spec, _, err := unstructured.NestedMap(o.Object, "spec")
			require.NoError(t, err)
			if pools, is := spec["pools"].([]any); is && o.GetKind() == "Worker" {
				spec = pools[0].(map[string]any)
			}
			if got, has := spec["providerConfig"]; has && want[o.GetKind()] > 0 {
				want[o.GetKind()]--
				assert.Equal(t, config(), got, describeObject(b, o))
			}
		}
	}
	assert.Equal(t, map[string]int{"BackupBucket": 0, "DNSRecord": 0, "Extension": 0, "Infrastructure": 0, "ControlPlane": 0, "Network": 0, "Worker": 0}, want, "objects whose providerConfig was not found")
	for file, text := range map[string]string{
		"podsecurity.yaml":              "{apiVersion: pod-security.admission.config.k8s.io/v1, kind: PodSecurityConfiguration, defaults: null, exemptions: {namespaces: [kube-system]}}",
		"podtolerationrestriction.yaml": "{apiVersion: podtolerationrestriction.admission.k8s.io/v1alpha1, kind: Configuration, default: null}",
		"shootdns.yaml":                 "{apiVersion: local.provider.extensions.gardener.cloud/v1alpha1, kind: Config, none: null, in: {none: null, list: [null, 1]}}",
	} {
		assert.YAMLEq(t, text, plugins[file], file)
	}
}

// TestRemoveNulls: nulls in API fields are removed, in free-form parts they stay.
func TestRemoveNulls(t *testing.T) {
	object := map[string]any{
		"metadata": map[string]any{"name": "a", "labels": map[string]any{"b": nil, "c": "d"}, "annotations": nil},
		"spec": map[string]any{
			"virtualCluster": map[string]any{
				"dns": map[string]any{"domains": []any{map[string]any{"name": "a.b", "provider": nil}}},
				"kubernetes": map[string]any{"kubeAPIServer": map[string]any{
					"eventTTL": nil, "requests": map[string]any{"maxMutatingInflight": nil},
					"admissionPlugins": []any{map[string]any{"name": "a", "disabled": nil, "config": map[string]any{"b": nil}}},
				}},
			},
			"unknown": nil,
		},
	}
	assert.Equal(t, map[string]any{
		"metadata": map[string]any{"name": "a", "labels": map[string]any{"c": "d"}},
		"spec": map[string]any{
			"virtualCluster": map[string]any{
				"dns": map[string]any{"domains": []any{map[string]any{"name": "a.b"}}},
				"kubernetes": map[string]any{"kubeAPIServer": map[string]any{
					"requests": map[string]any{}, "admissionPlugins": []any{map[string]any{"name": "a", "config": map[string]any{"b": nil}}},
				}},
			},
			"unknown": nil,
		},
	}, removeNulls(reflect.TypeFor[*operatorv1alpha1.Garden](), object))
}
