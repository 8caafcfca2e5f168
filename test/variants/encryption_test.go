// SPDX-License-Identifier: Apache-2.0

package variants

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

// TestEncryption: the declared resources are encrypted in etcd with the declared provider and
// readable by the API server. All others are not encrypted.
func TestEncryption(t *testing.T) {
	skipIfNotRunning(t)
	for _, test := range []struct {
		name, provider string
		plane          func(*testing.T) *controlPlaneClient
		leases         bool
	}{
		{"aescbc, a Shoot", "aescbc", func(t *testing.T) *controlPlaneClient { return connectShoot(t, shootHighlyAvailable) }, false},
		{"aescbc, the Garden", "aescbc", connectGarden, false},
		{"aesgcm", "aesgcm", func(t *testing.T) *controlPlaneClient { return connectShoot(t, shootAESGCM) }, true},
		{"secretbox", "secretbox", func(t *testing.T) *controlPlaneClient { return connectShoot(t, shootSecretbox) }, false},
		{"by default: Secrets with aescbc", "aescbc", func(t *testing.T) *controlPlaneClient { return connectShoot(t, shootWithAdmission) }, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := test.plane(t)
			name := p.ensureNamespace(t, "encrypted")
			const value = "nobody may read this in etcd"
			meta := metav1.ObjectMeta{Name: "value-" + strings.ToLower(metav1.Now().Format("150405.000")), Namespace: name}
			_, err := p.apiClient.CoreV1().Secrets(name).Create(t.Context(), &corev1.Secret{ObjectMeta: meta, StringData: map[string]string{"value": value}}, metav1.CreateOptions{})
			require.NoError(t, err)
			_, err = p.apiClient.CoreV1().ConfigMaps(name).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"value": value}}, metav1.CreateOptions{})
			require.NoError(t, err)
			holder := value
			_, err = p.apiClient.CoordinationV1().Leases(name).Create(t.Context(), &coordinationv1.Lease{ObjectMeta: meta, Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder}}, metav1.CreateOptions{})
			require.NoError(t, err)

			main := p.etcd(t, "main")
			encrypted := map[string]bool{"secrets": true, "configmaps": test.name != "by default: Secrets with aescbc", "leases": test.leases}
			for resource, is := range encrypted {
				stored := main.get("/registry/" + resource + "/" + name + "/" + meta.Name).value
				if is {
					assert.Regexp(t, `\Ak8s:enc:`+test.provider+`:v1:key\d+:`, stored, resource)
					assert.NotContains(t, stored, value, resource)
				} else {
					assert.Contains(t, stored, value, resource)
				}
			}
			secret, err := p.apiClient.CoreV1().Secrets(name).Get(t.Context(), meta.Name, metav1.GetOptions{})
			require.NoError(t, err)
			assert.Equal(t, value, string(secret.Data["value"]))
		})
	}
}

// TestEncryptionOfTheGardenerAPI: kube-apiserver encrypts like gardener-apiserver where it serves
// the Gardener API. Secret resources are always encrypted, the others if declared.
func TestEncryptionOfTheGardenerAPI(t *testing.T) {
	p := connectGarden(t)
	client, err := dynamic.NewForConfig(p.config)
	require.NoError(t, err)
	name := p.ensureNamespace(t, "encrypted")
	const value = "nobody may read this of Gardener in etcd"
	for _, test := range []struct {
		resource  string
		object    map[string]any
		encrypted bool
	}{
		{"internalsecrets", map[string]any{"kind": "InternalSecret", "stringData": map[string]any{"value": value}}, true},
		{"shootstates", map[string]any{"kind": "ShootState", "spec": map[string]any{"gardener": []any{map[string]any{"name": "a", "type": "secret", "data": map[string]any{"value": value}}}}}, true},
		{"quotas", map[string]any{"kind": "Quota", "metadata": map[string]any{"annotations": map[string]any{"about": value}}, "spec": map[string]any{
			"scope": map[string]any{"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Project"}, "metrics": map[string]any{"cpu": "1"},
		}}, true},
		{"exposureclasses", map[string]any{"kind": "ExposureClass", "metadata": map[string]any{"annotations": map[string]any{"about": value}}, "handler": "none"}, false},
	} {
		t.Run(test.resource, func(t *testing.T) {
			o := &unstructured.Unstructured{Object: test.object}
			o.SetAPIVersion("core.gardener.cloud/v1beta1")
			o.SetName("value-" + strings.ToLower(metav1.Now().Format("150405.000")))
			key := "/registry/core.gardener.cloud/" + test.resource + "/"
			in := client.Resource(gardencorev1beta1.SchemeGroupVersion.WithResource(test.resource))
			resource := dynamic.ResourceInterface(in)
			if test.resource != "exposureclasses" {
				o.SetNamespace(name)
				key += name + "/"
				resource = in.Namespace(name)
			}
			_, err := resource.Create(t.Context(), o, metav1.CreateOptions{})
			require.NoError(t, err)
			stored := p.etcd(t, "main").get(key + o.GetName()).value
			if !test.encrypted {
				assert.Contains(t, stored, value)
				return
			}
			assert.Regexp(t, `\Ak8s:enc:aescbc:v1:key\d+:`, stored)
			assert.NotContains(t, stored, value)
		})
	}
}
