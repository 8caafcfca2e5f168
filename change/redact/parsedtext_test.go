// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/internal/secretwords"
)

// TestSecretsInTexts: every text has hunter2 under a secret name or form, and the rest stays
// readable.
func TestSecretsInTexts(t *testing.T) {
	for name, c := range map[string]struct{ text, visible string }{
		"JSON list":                 {`{"accessToken": ["hunter2a","hunter2b"], "password": {"value":"hunter2c"}, "a":1}`, `"a":1`},
		"JSON in lines":             {"{\n  \"password\": {\n    \"x\": [\"]\", \"hunter2\"]\n  },\n  \"a\": \"shown\"\n}\n", "\n  \"a\": \"shown\"\n}"},
		"JSON in JSON":              {`{"b": "{\"token\": [\"hunter2\"], \"c\": \"shown\"}"}`, "shown"},
		"JSON in YAML":              {"a: |\n  {\"token\": [\"hunter2\"],\n   \"c\": \"shown\"}\nd: 1\n", "shown"},
		"broken JSON":               {`{"tokens": ["hunter2", "b`, "tokens"},
		"broken JSON goes on":       {`x {"tokens": ["a]", "hunter2"], "b": shown`, "shown"},
		"escaped and broken":        {`x {\"tokens\": [\"a]\", \"hunter2\"], \"b\": shown`, "shown"},
		"YAML flow":                 {"passwords: [hunter2, hunter2b]\nb: shown\n", "b: shown"},
		"YAML block":                {"passwords:\n- hunter2\n- hunter2b\nb: shown\n", "b: shown"},
		"YAML objects":              {"password:\n  value: hunter2\n  other: {x: hunter2}\nb: shown\n", "b: shown"},
		"YAML literal":              {"password: |\n  hunter2\n  hunter2\nb: shown\n", "b: shown"},
		"YAML folded, last":         {"b: shown\npassword: >-\n  hunter2\n  hunter2\n", "b: shown"},
		"YAML plain in lines":       {"password: a b\n  hunter2\nb: shown\n", "b: shown"},
		"YAML alias":                {"a: &x hunter2\npassword: *x\nb: shown\n", "b: shown"},
		"YAML documents":            {"a: 1\n---\npassword: [a,\n  hunter2]\n---\nb: shown\n", "---\nb: shown"},
		"letters of several bytes":  {"{ü: ä, password: [hunter2], b: shown}", "b: shown"},
		"template":                  {"{{- if .x }}\npasswords:\n  - hunter2\nb: shown\n{{- end }}\n", "b: shown"},
		"template, objects":         {"{{- if .x }}\npassword: {a: b, c: hunter2}\nb: shown\n{{- end }}\n", "b: shown"},
		"named value":               {"- name: DB_PASSWORD\n  value: hunter2\n- name: B\n  value: shown\n", "shown"},
		"value, named":              {"- value: hunter2\n  name: DB_PASSWORD\n- name: B\n  value: shown\n", "shown"},
		"named value in JSON":       {`[{"name":"DB_PASSWORD","value":"hunter2"},{"name":"B","value":"shown"}]`, "shown"},
		"named value in a template": {"{{ x }}\n- name: DB_PASSWORD\n  value: hunter2\n- name: B\n  value: shown\n", "shown"},
		"value, named in template":  {"{{ x }} {\"value\":\"hunter2\",\"name\":\"DB_PASSWORD\"}\nb: shown\n", "shown"},
		"arguments in YAML":         {"args:\n- --token\n- hunter2\n- --port\n- shown\n", "shown"},
		"pass":                      {"user=shown;pass=hunter2", "shown"},
		"secret":                    {"user: shown\nsecret: hunter2\n", "shown"},
		"connection":                {"Server=shown;Uid=u;Pwd=hunter2;", "shown"},
		"storage":                   {"AccountName=shown;AccountKey=hunter2==;EndpointSuffix=x", "shown"},
		"signed URL":                {"https://shown.example.com/x?sv=1&sig=hunter2%2F", "shown"},
		"XML":                       {"<a><user>shown</user><password>hunter2</password></a>", "shown"},
		"curl":                      {"curl -u shown1:hunter2 https://example.com", "curl -u"},
		"mysql":                     {"mysql -u shown -phunter2 db", "shown"},
		"sshpass":                   {"sshpass -p hunter2 ssh shown", "ssh shown"},
		"token argument":            {"run --token hunter2 --port shown", "--port shown"},
		"secret argument":           {"run --secret hunter2 --port shown", "--port shown"},
		"pass argument":             {"run --pass 'hunter2' --port shown", "--port shown"},
		"argument in JSON":          {`run ["--token", "hunter2", "--port", "shown"]`, "shown"},
		"assignment in a value":     {"run: token=hunter2", "run"},
		"comment":                   {"a: 1 # tokens: [hunter2]\n# password: {a: hunter2}\nb: shown\n", "b: shown"},
		"plain in YAML":             {"- run token=[hunter2] b\n- shown\n", "shown"},
		"heredoc":                   {"password = <<EOF\nhunter2\nEOF\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := NewMasking([]byte("key")).Text(c.text)
			assert.NotContains(t, got, "hunter2")
			assert.Contains(t, got, c.visible)
			assert.Equal(t, got, NewMasking([]byte("key")).Text(got), "what is masked stays as it is")
			before := object(t, widgetManifest("{}")).Object
			after := object(t, widgetManifest("{}")).Object
			after["spec"] = map[string]any{"config": c.text}
			raw, err := json.Marshal(Compare(before, after))
			require.NoError(t, err)
			assert.NotContains(t, string(raw), "hunter2")
		})
	}
	assert.NotContains(t, Text("id AKIAIOSFODNN7EXAMPLE used"), "AKIA")
}

// TestMaskingKeepsLines checks that the rest of a text does not change: it is compared by line.
func TestMaskingKeepsLines(t *testing.T) {
	text := "# top\na: 1   # one\npassword:\n  value: v # two\n  list:\n  - a\nb: {password: [x, y], c: 'd'}\nimage: r/p:1\n"
	assert.Equal(t, "# top\na: 1   # one\npassword:\n  (hidden)\nb: {password: (hidden), c: 'd'}\nimage: r/p:1\n", Text(text))
}

func TestSecretsBelowNames(t *testing.T) {
	for name, c := range map[string]struct{ value, visible string }{
		"list":                  {`{passwords: [hunter2, hunter2b], a: shown}`, "shown"},
		"object":                {`{password: {value: hunter2}, a: shown}`, "shown"},
		"object named name":     {`{password: {name: hunter2}, a: shown}`, "shown"},
		"values of a chart":     {`{helm: {values: {secret: hunter2, secrets: {a: hunter2}, replicas: shown}}}`, "shown"},
		"credentials":           {`{CREDS: {user: hunter2}, credentials: {x: [hunter2]}, a: shown}`, "shown"},
		"arguments of a client": {`{command: [mysql, -u, shown, -phunter2], args: ["-pS3hunter2", shown]}`, "shown"},
		"arguments of curl":     {`{args: [curl, -u, "u:hunter2", shown]}`, "shown"},
		"key and value":         {`{settings: [{key: DB_PASSWORD, value: hunter2}, {key: a, value: shown}]}`, "shown"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, before := range []string{"{}", `{password: a, passwords: [b], credentials: {x: [c]}, helm: {values: {secret: a, secrets: {a: b}}}}`} {
				raw, err := json.Marshal(Compare(object(t, widgetManifest(before)).Object, object(t, widgetManifest(c.value)).Object))
				require.NoError(t, err)
				assert.NotContains(t, string(raw), "hunter2")
				assert.Contains(t, string(raw), c.visible)
			}
		})
	}
}

func TestSecretReferencesAreNotMasked(t *testing.T) {
	for _, value := range []string{
		`{secretRef: {name: shown}}`, `{secret: {secretName: shown, items: [{key: a, path: b}], defaultMode: 420}}`, `{secrets: [{name: shown}]}`,
		`{imagePullSecrets: [shown]}`, `{password: {secretKeyRef: {name: shown, key: a}}}`, `{password: {valueFrom: {secretKeyRef: {name: shown}}}}`,
		`{privateKey: {algorithm: shown, size: 2048}}`, `{serviceAccountToken: {audience: shown, expirationSeconds: 3600, path: token}}`,
		`{properties: {password: {type: shown, description: of a thing}}}`, `{token: $(TOKEN), x: shown}`, `{args: [--token, $(TOKEN), shown]}`,
		`{autoRotation: {credentials: {sshKeypair: {rotationPeriod: shown}, etcdEncryptionKey: {rotationPeriod: 168h}}}}`,
		`{args: [-port, -p8080:80, -u, "1000:1000", -profile, shown]}`, `{secretName: shown, keySize: 3, passthrough: true, bypass: x}`,
	} {
		raw, err := json.Marshal(Compare(object(t, widgetManifest("{}")).Object, object(t, widgetManifest(value)).Object))
		require.NoError(t, err)
		assert.Contains(t, string(raw), "shown")
		assert.NotContains(t, string(raw), "hidden", value)
		spec, err := json.Marshal(object(t, widgetManifest(value)).Object["spec"])
		require.NoError(t, err)
		assert.Equal(t, string(spec), Text(string(spec)))
	}
	for _, text := range []string{"cannot read the secret: not found", "server: a\nproxy_pass http://b;\n", "docker run -p 8080:80 -u 1000:1000 x",
		"mount -o pass /x", "a key: value of the token", "PWD=/home/x"} {
		assert.Equal(t, text, Text(text))
	}
}

func TestValueEnd(t *testing.T) {
	for text, want := range map[string]string{`[1], 2`: `[1]`, `{"a": "}"} x`: `{"a": "}"}`, `"a\"b" c`: `"a\"b"`, `'a''b' c`: `'a''b'`,
		`[\"]\"] x`: `[\"]\"]`, `{"a`: `{"a`, `[[1],{2}]x`: `[[1],{2}]`} {
		assert.Equal(t, want, text[:valueLength(text)])
	}
}

// TestDurationsAreNotSecrets: a controller may be named token.
func TestDurationsAreNotSecrets(t *testing.T) {
	for _, key := range []string{"syncPeriod", "rotationPeriod", "expirationSeconds", "interval"} {
		assert.Equal(t, secretwords.NotSecret, childSecrecy(secretwords.MaybeSecret, key, "token", false), key)
	}
	assert.NotEqual(t, secretwords.NotSecret, childSecrecy(secretwords.MaybeSecret, "value", "token", false))
}
