// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func parseObject(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	o := &unstructured.Unstructured{}
	require.NoError(t, o.UnmarshalJSON(raw))
	return o
}

func TestAddressOfALoadBalancer(t *testing.T) {
	for name, c := range map[string]struct{ status, want string }{
		"none yet":          {"{}", ""},
		"empty":             {"{loadBalancer: {ingress: []}}", ""},
		"an address":        {"{loadBalancer: {ingress: [{ip: 192.0.2.1}]}}", "192.0.2.1"},
		"a name":            {"{loadBalancer: {ingress: [{hostname: lb.example.org}]}}", "lb.example.org"},
		"both":              {"{loadBalancer: {ingress: [{ip: 192.0.2.1, hostname: lb.example.org}]}}", "192.0.2.1"},
		"the last of two":   {"{loadBalancer: {ingress: [{ip: 192.0.2.1}, {ip: '2001:db8::1'}]}}", "2001:db8::1"},
		"neither, for once": {"{loadBalancer: {ingress: [{}]}}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, loadBalancerAddress(parseObject(t, "{apiVersion: v1, kind: Service, status: "+c.status+"}")))
		})
	}
}

// TestWildcardCertificate checks that a certificate is found by its label, and that two are an
// error.
func TestWildcardCertificate(t *testing.T) {
	certificate := func(name string, content string) corev1.Secret {
		return corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: name, Labels: map[string]string{"gardener.cloud/role": "garden-cert"}}, Data: map[string][]byte{"tls.crt": []byte(content)}}
	}
	other := corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "other"}}
	none, err := wildcardCertificate([]corev1.Secret{other})
	require.NoError(t, err)
	assert.Nil(t, none)
	one, err := wildcardCertificate([]corev1.Secret{other, certificate("a", "1")})
	require.NoError(t, err)
	assert.Equal(t, "a", one.Name)
	renewed, err := wildcardCertificate([]corev1.Secret{certificate("a", "2"), other})
	require.NoError(t, err)
	assert.NotEqual(t, one.Checksum, renewed.Checksum)
	_, err = wildcardCertificate([]corev1.Secret{certificate("a", "1"), certificate("b", "1")})
	require.EqualError(t, err, "two Secrets of namespace garden have the label gardener.cloud/role=garden-cert: a and b; leave it on one")
}
