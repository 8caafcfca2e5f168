// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/schemas/crosscheck"
)

// referringShoot is the demonstration Shoot with an API server that refers to an object.
func referringShoot(t *testing.T, server string) Input {
	t.Helper()
	l := localLandscape(t)
	inputs, err := Owners(l)
	require.NoError(t, err)
	in := inputs[2]
	require.Equal(t, "shoot", in.Owner.Kind)
	var fields map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(server), &fields))
	in.Objects["shoot"] = runtime.DeepCopyJSON(in.Objects["shoot"])
	for field, value := range fields {
		require.NoError(t, unstructured.SetNestedField(in.Objects["shoot"], value, "spec", "kubernetes", "kubeAPIServer", field))
	}
	in.OnlyComponents = []string{"shoot/kube-apiserver"}
	return in
}

// apiServerOf renders in and returns bundle, pods, and a function for files in volumes.
func apiServerOf(t *testing.T, in Input) (Bundle, corev1.PodTemplateSpec, func(volume, key string) string) {
	t.Helper()
	result, err := Render(in, Options{Catalogue: components.FS})
	require.NoError(t, err)
	var bundle Bundle
	var template corev1.PodTemplateSpec
	texts := map[string]map[string]string{}
	for _, b := range result.Bundles {
		if b.Name != "kube-apiserver" {
			continue
		}
		bundle = b
		for _, o := range b.Objects {
			switch o.GetKind() {
			case "Deployment":
				raw, _, err := unstructured.NestedMap(o.Object, "spec", "template")
				require.NoError(t, err)
				require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &template))
			case "ConfigMap":
				texts[o.GetName()], _, err = unstructured.NestedStringMap(o.Object, "data")
				require.NoError(t, err)
			}
		}
	}
	return bundle, template, func(volume, key string) string {
		for _, v := range template.Spec.Volumes {
			if v.Name == volume && v.ConfigMap != nil {
				return texts[v.ConfigMap.Name][key]
			}
		}
		return ""
	}
}

func knownReferences(files map[string]string) map[string]ReferenceFact {
	out := map[string]ReferenceFact{}
	for name, text := range files {
		kind, rest, _ := strings.Cut(name, "/")
		object, key, _ := strings.Cut(rest, "/")
		fact := ReferenceFact{Checksum: strings.Repeat("a", 64)}
		if kind == "ConfigMap" {
			fact.Data = map[string]string{key: text}
		}
		out[ReferenceKey(kind, object)] = fact
	}
	return out
}

// TestFactsOfSecrets: facts of Secrets contain no values except certificates that act as an
// authority.
func TestFactsOfSecrets(t *testing.T) {
	pemOf := func(kind string) string { return "-----BEGIN " + kind + "-----\nYWJj\n-----END " + kind + "-----\n" }
	secret := &unstructured.Unstructured{Object: map[string]any{"kind": "Secret", "stringData": map[string]any{
		"ca.crt": "for a look\n" + pemOf("CERTIFICATE") + pemOf("RSA PRIVATE KEY") + pemOf("CERTIFICATE"), "token": "hidden",
	}}}
	const dashboard = "spec.virtualCluster.gardener.gardenerDashboard."
	for field, want := range map[string]ReferenceFact{
		dashboard + "oidcConfig.certificateAuthoritySecretRef.name": {CABundle: base64.StdEncoding.EncodeToString([]byte(pemOf("CERTIFICATE") + pemOf("CERTIFICATE")))},
		dashboard + "gitHub.secretRef.name":                         {Keys: []string{"ca.crt", "token"}},
		dashboard + "oidcConfig.secretRef.name":                     {},
	} {
		fact, err := ReferenceFactOf(crosscheck.ConfigReference{Kind: "Secret", Name: "s", Fields: []string{field}}, secret)
		require.NoError(t, err)
		assert.Len(t, fact.Checksum, 64)
		fact.Checksum = ""
		assert.Equal(t, want, fact, field)
	}
}

// TestAuditPolicyOfTheUser: a policy of the user is a file under a name that changes with it. While
// it is unknown, nothing can be applied.
func TestAuditPolicyOfTheUser(t *testing.T) {
	in := referringShoot(t, "auditConfig: {auditPolicy: {configMapRef: {name: audited}}}")
	b, _, file := apiServerOf(t, in)
	assert.Equal(t, "# configmap-audited-checksum-XXXXXXXX\n", file("audit-policy-config", "audit-policy.yaml"))
	assert.Contains(t, b.Unresolved, "ConfigMap audited")

	in.Facts.References = knownReferences(map[string]string{"ConfigMap/audited/policy": "kind: Policy\nrules: []\n"})
	b, one, file := apiServerOf(t, in)
	assert.Equal(t, "kind: Policy\nrules: []\n", file("audit-policy-config", "audit-policy.yaml"))
	assert.NotContains(t, b.Unresolved, "ConfigMap audited")
	in.Facts.References = knownReferences(map[string]string{"ConfigMap/audited/policy": "kind: Policy\nrules: [{level: None}]\n"})
	_, two, _ := apiServerOf(t, in)
	assert.NotEqual(t, one, two, "other pods")

	// Git determines the value until the cluster does.
	in.References, in.Facts.References = in.Facts.References, nil
	_, declared, _ := apiServerOf(t, in)
	assert.Equal(t, two, declared)
}

// TestAuthorizersOfTheUser: webhooks of the user follow our authorizers and use the kubeconfigs in
// the declaration. Pods depend on their Secrets.
func TestAuthorizersOfTheUser(t *testing.T) {
	in := referringShoot(t, "structuredAuthorization: {configMapName: authorizers, kubeconfigs: [{authorizerName: First, secretName: one}, {authorizerName: second, secretName: two}]}")
	_, template, file := apiServerOf(t, in)
	assert.Contains(t, file("authorization-config", "config.yaml"), "  type: RBAC\n")
	assert.Contains(t, file("authorization-config", "config.yaml"), "# configmap-authorizers-checksum-XXXXXXXX\n")
	assert.Equal(t, "secret-one-checksum-XXXXXXXX", template.Annotations["checksum/secret-one"])

	in.Facts.References = knownReferences(map[string]string{"Secret/one": "", "Secret/two": "", "ConfigMap/authorizers/config.yaml": `
apiVersion: apiserver.config.k8s.io/v1
kind: AuthorizationConfiguration
authorizers:
- type: Webhook
  name: First
  webhook:
    timeout: 3s
    failurePolicy: NoOpinion
    matchConditions:
    - expression: "!('system:masters' in request.groups)"
- type: Webhook
  name: second
  webhook: {timeout: 5s}
`})
	b, template, file := apiServerOf(t, in)
	assert.NotContains(t, b.Unresolved, "ConfigMap authorizers")
	assert.Equal(t, strings.Repeat("a", 64), template.Annotations["checksum/secret-two"])
	var config struct {
		Kind, APIVersion string
		Authorizers      []struct {
			Type, Name string
			Webhook    map[string]any
		}
	}
	require.NoError(t, yaml.UnmarshalStrict([]byte(file("authorization-config", "config.yaml")), &config))
	var names []string
	for _, a := range config.Authorizers {
		names = append(names, a.Type+" "+a.Name)
	}
	assert.Equal(t, []string{"Node node", "RBAC rbac", "Webhook node-agent-authorizer", "Webhook First", "Webhook second"}, names)
	assert.Equal(t, map[string]any{
		"timeout": "3s", "failurePolicy": "NoOpinion", "matchConditions": []any{map[string]any{"expression": "!('system:masters' in request.groups)"}},
		"connectionInfo": map[string]any{"type": "KubeConfigFile", "kubeConfigFile": "/etc/kubernetes/structured/authorization-kubeconfigs/first-kubeconfig.yaml"},
	}, config.Authorizers[3].Webhook)
	var paths []string
	for _, v := range template.Spec.Volumes {
		if v.Name == "authorization-kubeconfigs" {
			for _, s := range v.Projected.Sources[1:] {
				paths = append(paths, s.Secret.Name+" "+s.Secret.Items[0].Path)
			}
		}
	}
	assert.Equal(t, []string{"ref-one first-kubeconfig.yaml", "ref-two second-kubeconfig.yaml"}, paths)
}

// TestAuthenticationOfTheUser: the file of the user sets anonymous access, or we set it there. A
// flag sets it if the file must not.
func TestAuthenticationOfTheUser(t *testing.T) {
	const mine = "apiVersion: apiserver.config.k8s.io/v1beta1\nkind: AuthenticationConfiguration\njwt: [{issuer: {url: \"https://issuer\", audiences: [\"yes\"]}}]\n"
	for name, c := range map[string]struct {
		server, text    string
		anonymous, flag any
		asked           bool // probes may request health
	}{
		"not said":            {"", mine, map[string]any{"enabled": true, "conditions": []any{map[string]any{"path": "/livez"}, map[string]any{"path": "/readyz"}, map[string]any{"path": "/healthz"}}}, nil, true},
		"everybody":           {"enableAnonymousAuthentication: true", mine, map[string]any{"enabled": true}, nil, true},
		"by the user":         {"", mine + "anonymous: {enabled: true}\n", map[string]any{"enabled": true}, nil, true},
		"nobody":              {"", mine + "anonymous: {enabled: false}\n", map[string]any{"enabled": false}, nil, false},
		"for something else":  {"", mine + "anonymous: {enabled: true, conditions: [{path: /version}]}\n", map[string]any{"enabled": true, "conditions": []any{map[string]any{"path": "/version"}}}, nil, false},
		"for health":          {"", mine + "anonymous: {enabled: true, conditions: [{path: /livez}, {path: /readyz}]}\n", map[string]any{"enabled": true, "conditions": []any{map[string]any{"path": "/livez"}, map[string]any{"path": "/readyz"}}}, nil, true},
		"by a flag":           {"featureGates: {AnonymousAuthConfigurableEndpoints: false}", mine, nil, "--anonymous-auth=false", false},
		"not by two":          {"featureGates: {AnonymousAuthConfigurableEndpoints: false}", mine + "anonymous: {enabled: true}\n", map[string]any{"enabled": true}, nil, true},
		"a file that is JSON": {"", `{"apiVersion": "apiserver.config.k8s.io/v1beta1", "kind": "AuthenticationConfiguration", "jwt": [{"issuer": {"url": "https://issuer", "audiences": ["yes"]}}], "anonymous": {"enabled": false}}`, map[string]any{"enabled": false}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			in := referringShoot(t, "structuredAuthentication: {configMapName: authentication}\n"+c.server)
			in.Facts.References = knownReferences(map[string]string{"ConfigMap/authentication/config.yaml": c.text})
			_, template, file := apiServerOf(t, in)
			var config map[string]any
			require.NoError(t, yaml.Unmarshal([]byte(file("authentication-config", "config.yaml")), &config))
			assert.Equal(t, c.anonymous, config["anonymous"])
			assert.Equal(t, "AuthenticationConfiguration", config["kind"])
			assert.Equal(t, []any{map[string]any{"issuer": map[string]any{"url": "https://issuer", "audiences": []any{"yes"}}}}, config["jwt"])
			var flag any
			for _, arg := range template.Spec.Containers[0].Args {
				if strings.HasPrefix(arg, "--anonymous-auth=") {
					flag = arg
				}
			}
			assert.Equal(t, c.flag, flag)
			assert.Equal(t, c.asked, template.Spec.Containers[0].ReadinessProbe.HTTPGet != nil)
		})
	}
}
