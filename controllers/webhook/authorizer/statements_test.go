// SPDX-License-Identifier: Apache-2.0

package authorizer

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/api/crds"
	"github.com/pergola-dev/pergola/schemas/crosscheck"
)

// TestReferencesOfControlPlanes: a gardenlet may read all objects that a reconciliation copies to
// the namespace of a control plane.
func TestReferencesOfControlPlanes(t *testing.T) {
	for _, shoot := range parseObjects(t, landscape) {
		if shoot.GetKind() != "Shoot" {
			continue
		}
		h, s := newGardenHandler(t, landscape), relationsOf(kindOf(t, shoot), shoot)
		for _, r := range crosscheck.ControlPlaneReferences("Shoot", shoot.Object) {
			what := objectKey{kindSecret, shoot.GetNamespace(), r.Name}
			if r.Kind == "ConfigMap" {
				what.kind = kindConfigMap
			}
			assert.Contains(t, s.edges, edge{what, s.subject}, "%v", r.Fields)
			assert.NotNil(t, h.graph.vertices[what])
		}
	}
	full := parseObjects(t, landscape)[4]
	require.Equal(t, "s", full.GetName())
	assert.GreaterOrEqual(t, len(crosscheck.ControlPlaneReferences("Shoot", full.Object)), 6, "the Shoot of the test refers to one of each")
}

// TestWatchedKinds: the definitions of a garden in crd mode serve the watched kinds.
func TestWatchedKinds(t *testing.T) {
	for _, k := range watchedKinds() {
		assert.Equal(t, k.kind.String(), k.resource.GroupResource().String())
		if k.kind == kindCertificateSigningRequest {
			continue
		}
		definition := crds.Get(k.resource.Group, kindNames[k.kind])
		require.NotNil(t, definition, k.kind.String())
		assert.Equal(t, definition.Spec.Names.Plural, k.resource.Resource)
		assert.Equal(t, definition.Spec.Scope == "Cluster", k.kind.isClusterScoped(), k.kind.String())
		served := false
		for _, v := range definition.Spec.Versions {
			served = served || v.Served && v.Name == k.resource.Version
		}
		assert.True(t, served, "%s of %s", k.resource.Version, k.kind)
	}
}

func TestKinds(t *testing.T) {
	for k := kind(1); k < kindCount; k++ {
		if k != kindIssuer {
			assert.NotEmpty(t, k.String(), int(k))
			assert.Equal(t, k, kindsByResource[k.String()])
		}
	}
}

func TestCertificateRequests(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	request := func(name, group string) string {
		der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: name, Organization: []string{group}}}, key)
		require.NoError(t, err)
		return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
	}
	for name, c := range map[string]struct {
		request string
		want    []ownerKey
	}{
		"seed":        {request("gardener.cloud:system:seed:a", groupSeeds), []ownerKey{seedOwner("a")}},
		"shoot":       {request("gardener.cloud:system:shoot:n:s", groupShoots), []ownerKey{{kindShoot, "n", "s"}}},
		"person":      {request("admin", "system:masters"), nil},
		"no group":    {request("gardener.cloud:system:seed:a", "x"), nil},
		"gardenadm":   {request("gardener.cloud:gardenadm:shoot:n:s", groupShoots), nil},
		"not encoded": {"%", nil},
		"no PEM":      {base64.StdEncoding.EncodeToString([]byte("x")), nil},
		"no request":  {base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: []byte("x")})), nil},
	} {
		t.Run(name, func(t *testing.T) {
			object := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "csr"}, "spec": map[string]any{"request": c.request}}}
			s := relationsOf(watchedKind{kind: kindCertificateSigningRequest, addStatements: addSigningRequest}, object)
			var got []ownerKey
			for _, c := range s.claims {
				assert.Equal(t, s.subject, c.object)
				got = append(got, c.owner)
			}
			assert.Equal(t, c.want, got)
		})
	}
}

// TestMalformedObjects: malformed objects, such as those from before a definition, must not cause a
// panic.
func TestMalformedObjects(t *testing.T) {
	for _, k := range watchedKinds() {
		for _, content := range []map[string]any{
			{}, {"spec": nil}, {"spec": "x"}, {"spec": []any{1}}, {"metadata": map[string]any{"name": "x"}, "spec": map[string]any{"seedName": 1, "resources": "x", "provider": map[string]any{"workers": []any{nil, 1}}}},
			{"metadata": map[string]any{"name": "x"}, "spec": map[string]any{"parent": map[string]any{"kind": "NamespacedCloudProfile", "name": "x"}, "shootRef": map[string]any{"name": "x"}, "shoot": map[string]any{"name": "x"}}},
			{"metadata": map[string]any{"name": "x"}, "credentialsRef": map[string]any{"kind": "Strange", "name": "x"}, "secretRef": []any{}},
		} {
			g := newGraph()
			assert.NotPanics(t, func() {
				s := relationsOf(k, &unstructured.Unstructured{Object: content})
				g.setRelations(s)
				g.removeRelations(s.subject)
			})
			assert.Empty(t, g.vertices)
		}
	}
}

// TestDocumentedPermissions: the documentation lists exactly the needed rights.
func TestDocumentedPermissions(t *testing.T) {
	data, err := os.ReadFile("../../../docs/reference/seed-authorizer.md")
	require.NoError(t, err)
	_, after, found := strings.Cut(string(data), "Secrets and ConfigMaps are never read:\n\n```yaml\n")
	require.True(t, found)
	block, _, _ := strings.Cut(after, "```")
	var rules []rbacv1.PolicyRule
	require.NoError(t, yaml.UnmarshalStrict([]byte(block), &rules))
	var got []schema.GroupResource
	for _, rule := range rules {
		assert.Equal(t, []string{"list", "watch"}, rule.Verbs)
		require.Len(t, rule.APIGroups, 1)
		for _, resource := range rule.Resources {
			got = append(got, schema.GroupResource{Group: rule.APIGroups[0], Resource: resource})
		}
	}
	var needed []schema.GroupResource
	for _, k := range watchedKinds() {
		needed = append(needed, k.resource.GroupResource())
	}
	assert.ElementsMatch(t, needed, got)
}
