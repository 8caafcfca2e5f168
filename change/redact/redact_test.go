// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/change"
)

func TestSecretsShowOnlyKeys(t *testing.T) {
	for name, c := range map[string]struct {
		old, new string
		want     []change.Field
	}{
		"value":         {"data: {a: eA==, b: eA==}", "data: {a: eA==, b: eQ==}", []change.Field{{Path: "data.b", Hidden: true}}},
		"keys come, go": {"data: {a: eA==}", "data: {b: eQ==}", []change.Field{{Path: "data.a", Hidden: true}, {Path: "data.b", Hidden: true}}},
		"data comes":    {"{}", "data: {a: eA==, b: eA==}", []change.Field{{Path: "data.a", Hidden: true}, {Path: "data.b", Hidden: true}}},
		"data goes":     {"data: {a: eA==}", "{}", []change.Field{{Path: "data.a", Hidden: true}}},
		"same in other": {"data: {a: eA==}", "stringData: {a: x}", nil},
		"stringData":    {"stringData: {a: x}", "stringData: {a: y}", []change.Field{{Path: "data.a", Hidden: true}}},
		"overruled":     {"data: {a: eA==}", "data: {a: eA==}\nstringData: {a: y}", []change.Field{{Path: "data.a", Hidden: true}}},
		"no map":        {"data: hunter2", "data: hunter3", []change.Field{{Path: "data", Hidden: true}}},
		"nested":        {"data: {a: {hunter2: 1}}", "data: {a: {hunter2: 2}}", []change.Field{{Path: "data.a", Hidden: true}}},
		"misplaced":     {"password: hunter2", "password: hunter3", []change.Field{{Path: "password", Hidden: true}}},
		"type":          {"type: Opaque", "type: x/y", []change.Field{{Path: "type", Old: "Opaque", New: "x/y"}}},
		"immutable":     {"{}", "immutable: true", []change.Field{{Path: "immutable", New: true}}},
		"label":         {"metadata: {labels: {a: x}}", "metadata: {labels: {a: z}}", []change.Field{{Path: "metadata.labels.a", Old: "x", New: "z"}}},
		"annotation of Gardener": {"metadata: {annotations: {resources.gardener.cloud/origin: x}}", "metadata: {annotations: {resources.gardener.cloud/origin: z}}",
			[]change.Field{{Path: "metadata.annotations[resources.gardener.cloud/origin]", Old: "x", New: "z"}}},
		"annotation of a tool": {"metadata: {annotations: {tool/copy: hunter2}}", "metadata: {annotations: {tool/copy: hunter3}}",
			[]change.Field{{Path: "metadata.annotations[tool/copy]", Hidden: true}}},
		"first annotation": {"metadata: {annotations: {}}", "metadata: {annotations: {tool/copy: hunter3, x.gardener.cloud/y: z}}",
			[]change.Field{{Path: "metadata.annotations", New: map[string]any{"tool/copy": Mask, "x.gardener.cloud/y": "z"}}}},
	} {
		for _, kind := range []string{"Secret", "secret", "InternalSecret"} {
			t.Run(name+" of "+kind, func(t *testing.T) {
				head := "apiVersion: v1\nkind: " + kind + "\n"
				assert.Equal(t, c.want, Compare(object(t, head+orEmptyObject(c.old)).Object, object(t, head+orEmptyObject(c.new)).Object))
			})
		}
	}
}

func orEmptyObject(s string) string {
	if s == "{}" {
		return ""
	}
	return s
}

// TestSecretValuesOutsideOfSecrets: every value has hunter2 in some field that a diff shows.
func TestSecretValuesOutsideOfSecrets(t *testing.T) {
	encoded := base64.StdEncoding.EncodeToString([]byte("apiVersion: v1\nkind: Config\nusers: [{user: {token: hunter2-value}}]"))
	for name, c := range map[string]struct{ value, visible string }{
		"field":                   {`{auth: {rootPassword: hunter2, user: root}}`, "root"},
		"field in capitals":       {`{API_KEY: hunter2, a: shown}`, "shown"},
		"number":                  {`{pin: 1, password: 1234567890123}`, "pin"},
		"environment":             {`{env: [{name: DB_PASSWORD, value: hunter2}, {name: DB_USER, value: root}]}`, "root"},
		"flag":                    {`{args: [--token=hunter2, --port=1]}`, "--port=1"},
		"flag and argument":       {`{args: [--password, hunter2, --port, "1"]}`, "--password"},
		"private key":             {`{a: "-----BEGIN RSA PRIVATE KEY-----\nhunter2\n-----END RSA PRIVATE KEY-----"}`, ""},
		"kubeconfig":              {`{kubeconfig: "{users: [{user: {token: hunter2}}]}"}`, "kubeconfig"},
		"kubeconfig in base64":    {`{a: ` + encoded + `}`, ""},
		"text with a password":    {`{config.yaml: "user: root\npassword: hunter2\nport: 1\n"}`, "user: root"},
		"block in a text":         {`{config.yaml: "password: |\n  hunter2\n"}`, ""},
		"JSON text":               {`{a: '{"user": "root", "token": "hunter2"}'}`, "root"},
		"JSON in JSON":            {`{a: '{"b": "{\"token\": \"hunter2\", \"c\": \"shown\"}"}'}`, "shown"},
		"URL":                     {`{url: "https://bot:hunter2@example.com/x"}`, "example.com"},
		"header":                  {`{a: "Authorization: Bearer hunter2-hunter2-hunter2"}`, "Authorization"},
		"web token":               {`{a: "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJodW50ZXIyIn0.hunter2hunter2"}`, ""},
		"manifest":                {`{a: "apiVersion: v1\nkind: Secret\nstringData:\n  a: hunter2\n"}`, ""},
		"manifest in JSON":        {`{a: '{"kind":"Secret","stringData":{"a":"hunter2"}}'}`, ""},
		"encryption keys":         {`{a: "kind: EncryptionConfiguration\nresources: [{providers: [{aescbc: {keys: [{name: k, secret: hunter2}]}}]}]\n"}`, ""},
		"Secret in a list":        {`{items: [{apiVersion: v1, kind: Secret, data: {mykey: hunter2}}]}`, "mykey"},
		"list in a Secret's data": {`{items: [{apiVersion: v1, kind: Secret, data: {mykey: [hunter2]}}]}`, "mykey"},
		"kubectl's copy":          {`{template: {metadata: {annotations: {kubectl.kubernetes.io/last-applied-configuration: hunter2}}}, a: shown}`, "shown"},
	} {
		t.Run(name, func(t *testing.T) {
			o := object(t, widgetManifest(c.value))
			o.SetLabels(map[string]string{"l": "1"})
			for _, fields := range [][]change.Field{
				Compare(nil, o.Object),
				Compare(object(t, widgetManifest("{}")).Object, o.Object),
				Compare(object(t, widgetManifest(`{password: a, rest: b}`)).Object, o.Object),
			} {
				raw, err := json.Marshal(fields)
				require.NoError(t, err)
				text := string(raw) + printFields(t, fields)
				assert.NotContains(t, text, "hunter2")
				assert.NotContains(t, text, encoded)
				assert.NotContains(t, text, "1234567890123")
				assert.Contains(t, text, c.visible)
			}
		})
	}
}

func TestNonSecretsStayReadable(t *testing.T) {
	for _, text := range []string{
		"registry.k8s.io/pause:3.10", "--kubeconfig=/var/run/secrets/kubeconfig", "--token-auth-file=/etc/tokens", "a: b",
		"https://example.com/a@b", "secretName: tls", "key: value",
		"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n", "kind: SecretBinding\ndata: x",
		"the token of the service account could not be read", "user:name", "mailto:a@example.com",
	} {
		assert.Equal(t, text, Text(text))
	}
	o := object(t, pod(`{automountServiceAccountToken: false, volumes: [{name: kubeconfig, secret: {secretName: generic-token}}],
  containers: [{name: c, env: [{name: TOKEN, valueFrom: {secretKeyRef: {name: s, key: k}}}], args: [--kubeconfig=/a/b]}]}`))
	fields := Compare(object(t, pod("{}")).Object, o.Object)
	text := printFields(t, fields)
	assert.NotContains(t, text, "(hidden")
	for _, want := range []string{"generic-token", "secretKeyRef", "/a/b"} {
		assert.Contains(t, text, want)
	}
	assert.Equal(t, []change.Field{{Path: "spec.clientConnection.kubeconfig", Old: "/a", New: "/b"}},
		Compare(object(t, widgetManifest("{clientConnection: {kubeconfig: /a}}")).Object, object(t, widgetManifest("{clientConnection: {kubeconfig: /b}}")).Object))
}

// TestHiddenChangesAreReported checks that a change in a hidden part is reported.
func TestHiddenChangesAreReported(t *testing.T) {
	old, new := object(t, widgetManifest(`{url: "https://u:one@example.com"}`)), object(t, widgetManifest(`{url: "https://u:two@example.com"}`))
	assert.Equal(t, []change.Field{{Path: "spec.url", Hidden: true}}, Compare(old.Object, new.Object))
	state := "{apiVersion: core.gardener.cloud/v1beta1, kind: ShootState, metadata: {name: s}, spec: {gardener: [{name: ca, data: {a: %s}}]}}"
	assert.Equal(t, []change.Field{{Path: "spec.gardener", Hidden: true}},
		Compare(object(t, fmt.Sprintf(state, "one")).Object, object(t, fmt.Sprintf(state, "two")).Object))
}

func TestConceal(t *testing.T) {
	secret, other := object(t, "{apiVersion: v1, kind: Secret, metadata: {name: s}}").Object, object(t, widgetManifest("{}")).Object
	for name, c := range map[string]struct {
		obj  map[string]any
		keys []string
		want bool
	}{
		"data":        {secret, []string{"data", "a"}, true},
		"whole data":  {secret, []string{"data"}, true},
		"label":       {secret, []string{"metadata", "labels", "a"}, false},
		"last apply":  {other, []string{"metadata", "annotations", lastAppliedAnnotation}, true},
		"plain":       {other, []string{"spec", "a"}, false},
		"by its name": {other, []string{"spec", "password"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			got := ConcealField(c.obj, c.keys, change.Field{Path: "p", Old: "x", New: "y", Manager: "m"})
			if c.want {
				assert.Equal(t, change.Field{Path: "p", Hidden: true, Manager: "m"}, got)
			} else {
				assert.Equal(t, change.Field{Path: "p", Old: "x", New: "y", Manager: "m"}, got)
			}
		})
	}
}
