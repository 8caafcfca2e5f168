// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func parseRequests(t *testing.T, text string) map[string]json.RawMessage {
	t.Helper()
	var out map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(text), &out))
	return out
}

func TestRegeneratedSecrets(t *testing.T) {
	const before = `{"ca": {"kind": "ca", "commonName": "a"}, "server": {"kind": "certificate", "signingCA": "ca", "dnsNames": ["a"]},
		"client": {"kind": "kubeconfig", "ca": "ca", "clientCertificate": "server"}, "other": {"kind": "rsaPrivateKey", "rotation": "inPlace"}, "gone": {"kind": "ca"}}`
	for name, test := range map[string]struct {
		after string
		want  []string
	}{
		"the same":                      {before, nil},
		"how it is kept":                {`{"other": {"kind": "rsaPrivateKey", "rotation": "keepOld", "persist": true, "labels": {"a": "b"}}}`, nil},
		"one, and what is made from it": {`{"ca": {"kind": "ca", "commonName": "b"}, "server": {"kind": "certificate", "signingCA": "ca", "dnsNames": ["a"]}, "client": {"kind": "kubeconfig", "ca": "ca", "clientCertificate": "server"}}`, []string{"ca", "client", "server"}},
		"what nothing is made from":     {`{"other": {"kind": "rsaPrivateKey", "bits": 4096}, "ca": {"kind": "ca", "commonName": "a"}}`, []string{"other"}},
		"new ones are not renewed":      {`{"more": {"kind": "ca"}}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			assert.ElementsMatch(t, test.want, regeneratedSecrets(parseRequests(t, before), parseRequests(t, test.after)))
		})
	}
}

func TestMarkRegenerated(t *testing.T) {
	touched := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"list": []any{"server-XXXXXXXX", "more-server-XXXXXXXX", int64(1)}, "sum": "is server-checksum-XXXXXXXX"}}}
	other := &unstructured.Unstructured{Object: map[string]any{"spec": "more-server-XXXXXXXX"}}
	bundles := []Bundle{
		{Objects: []Object{{Unstructured: touched}, {Unstructured: other}}, Digest: Digest{Symbolic: "a"}},
		{Objects: []Object{{Unstructured: other}}, Digest: Digest{Symbolic: "b"}},
	}
	markRegenerated(bundles, Facts{}, []string{"server"})
	assert.Equal(t, map[string]any{"list": []any{"server-YYYYYYYY", "more-server-XXXXXXXX", int64(1)}, "sum": "is server-checksum-YYYYYYYY"}, bundles[0].Objects[0].Object["spec"])
	assert.Empty(t, bundles[0].Digest, "it is not what was rendered")
	assert.Same(t, other, bundles[0].Objects[1].Unstructured)
	assert.Equal(t, "b", bundles[1].Digest.Symbolic)
	assert.Equal(t, "server-XXXXXXXX", touched.Object["spec"].(map[string]any)["list"].([]any)[0], "renders are shared")

	recorded := []Bundle{{Objects: []Object{{Unstructured: &unstructured.Unstructured{Object: map[string]any{"spec": "server-0123"}}}}}}
	markRegenerated(recorded, Facts{Secrets: map[string]SecretFact{"server": {Name: "server-0123"}}}, []string{"server"})
	assert.Equal(t, "server-YYYYYYYY", recorded[0].Objects[0].Object["spec"])
}
