// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/schemas"
)

func sopsFile(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile("testdata/sops/" + name)
	require.NoError(t, err)
	return string(data)
}

func testKey(t *testing.T) Options {
	t.Helper()
	identities, err := ParseAgeIdentities(sopsFile(t, "age.key"))
	require.NoError(t, err)
	return Options{AgeIdentities: identities}
}

func TestEncryptedSecret(t *testing.T) {
	found, violations := parse(t, "secret.yaml", sopsFile(t, "secret.yaml"), testKey(t))
	assert.Empty(t, violations)
	require.Len(t, found, 1)
	assert.Equal(t, SecretDecrypted, found[0].Secret)
	assert.Equal(t, map[string]any{"password": "correct-horse-battery", "empty": ""}, found[0].Object().Object["stringData"])
	assert.NotContains(t, found[0].Object().Object, "sops")
	assert.Equal(t, schemas.Position{File: "secret.yaml", Line: 8, Column: 13}, found[0].Position("stringData.password"))
}

func TestEncryptedSecretWithoutFittingKey(t *testing.T) {
	for name, opts := range map[string]Options{"no key": {}, "another key": demoKey(t)} {
		t.Run(name, func(t *testing.T) {
			found, violations := parse(t, "secret.yaml", sopsFile(t, "secret.yaml"), opts)
			assert.Empty(t, violations)
			require.Len(t, found, 1)
			assert.Equal(t, SecretEncrypted, found[0].Secret)
			assert.Equal(t, map[string]any{"password": "", "empty": ""}, found[0].Object().Object["stringData"])
			assert.Equal(t, map[string]any{"key": ""}, found[0].Object().Object["data"])
			assert.NotContains(t, found[0].Object().Object, "sops")
		})
	}
}

// TestKeyOfTheEnvironment: only keys from the caller are used. SOPS itself searches for keys if it
// has none.
func TestKeyOfTheEnvironment(t *testing.T) {
	t.Setenv("SOPS_AGE_KEY", sopsFile(t, "age.key"))
	found, violations := parse(t, "secret.yaml", sopsFile(t, "secret.yaml"), Options{})
	assert.Empty(t, violations)
	require.Len(t, found, 1)
	assert.Equal(t, SecretEncrypted, found[0].Secret)
}

// TestEncryptedFormIsKept: changed values are detected without a key.
func TestEncryptedFormIsKept(t *testing.T) {
	for name, opts := range map[string]Options{"no key": {}, "key": testKey(t)} {
		t.Run(name, func(t *testing.T) {
			found, _ := parse(t, "secret.yaml", sopsFile(t, "secret.yaml"), opts)
			require.Len(t, found, 1)
			assert.NotContains(t, found[0].EncryptedContent(), "sops")
			assert.Contains(t, found[0].EncryptedContent()["stringData"].(map[string]any)["password"], "ENC[AES256_GCM,")

			over, _ := parse(t, "over.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: one, labels: {a: b}}\n", Options{})
			mergeDeclaration(&found[0], &over[0])
			assert.Contains(t, found[0].EncryptedContent()["stringData"].(map[string]any)["password"], "ENC[AES256_GCM,")
			assert.Equal(t, "b", found[0].EncryptedContent()["metadata"].(map[string]any)["labels"].(map[string]any)["a"])
		})
	}
	plain, _ := parse(t, "ns.yaml", namespace("x"), Options{})
	assert.Nil(t, plain[0].EncryptedContent())
}

func TestTamperedSecret(t *testing.T) {
	text := sopsFile(t, "secret.yaml")
	tests := map[string]struct{ text, want string }{
		"another name":    {strings.Replace(text, "name: one", "name: two", 1), "secret.yaml:12:1 Invalid the signature (sops.mac) does not match: the file was changed after encryption; revert and repeat the change with `sops FILE`, or sign it with `sops --ignore-mac FILE`"},
		"moved value":     {strings.Replace(text, "password:", "other:", 1), "secret.yaml:12:1 Invalid a value cannot be decrypted: it was changed after it was encrypted, or moved to another field"},
		"broken metadata": {strings.Replace(text, "lastmodified: \"2026", "lastmodified: \"x", 1), "secret.yaml:12:1 Invalid the SOPS metadata cannot be read; encrypt the file again with `sops --encrypt`"},
		"plain value":     {strings.Replace(text, "stringData:", "stringData:\n  added: hunter2-in-the-clear", 1), "secret.yaml:8:10 Forbidden stringData.added is not encrypted, but the SOPS metadata require it: edit the file with `sops FILE`, and renew the value"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			require.NotEqual(t, text, test.text)
			found, violations := parse(t, "secret.yaml", test.text, testKey(t))
			assert.Equal(t, []string{test.want}, summaries(violations))
			require.Len(t, found, 1)
			assert.Equal(t, SecretEncrypted, found[0].Secret)
		})
	}
}

func TestOnlySecretsAreEncrypted(t *testing.T) {
	_, violations := parse(t, "c.yaml", sopsFile(t, "configmap.yaml"), testKey(t))
	require.Len(t, violations, 1)
	assert.Equal(t, "c.yaml", violations[0].File)
	assert.Contains(t, violations[0].Message, "only Secrets may be encrypted")
}

func TestPlainSecretIsAWarning(t *testing.T) {
	text := "apiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: b}\nstringData:\n  password: correct-horse-battery\n"
	found, violations := parse(t, "s.yaml", text, Options{})
	require.Len(t, violations, 1)
	assert.Equal(t, schemas.SeverityWarning, violations[0].Severity)
	assert.Equal(t, "landscape/secret-not-encrypted", violations[0].Rule)
	assert.Equal(t, 5, violations[0].Line)
	assert.Equal(t, SecretPlain, found[0].Secret)
	assert.NotContains(t, fmt.Sprint(violations), "correct-horse")
}

func TestAgeKeyErrorsShowNoKey(t *testing.T) {
	_, err := ParseAgeIdentities("# comment\n\nAGE-SECRET-KEY-1WRONG\n")
	require.Error(t, err)
	assert.Equal(t, "line 3 is not an age key; a key begins with AGE-SECRET-KEY-1", err.Error())
}

// TestPlainValuesInEncryptedFiles: plain values are found without a key, by the rules in the SOPS
// metadata.
func TestPlainValuesInEncryptedFiles(t *testing.T) {
	const encrypted = "ENC[AES256_GCM,data:eA==,iv:eA==,tag:eA==,type:str]"
	const message = "is not encrypted, but the SOPS metadata require it: edit the file with `sops FILE`, and renew the value"
	const readable = "the values are readable for everyone who can read the repository; encrypt the file with SOPS, and renew the values"
	tests := map[string]struct {
		selection string
		want      []string
	}{
		"encrypted_regex":              {"encrypted_regex: ^(data|stringData)$", []string{"s.yaml:6:10 Forbidden stringData.plain " + message, "s.yaml:7:22 Forbidden stringData.plain_unencrypted " + message}},
		"encrypted_regex of one key":   {"encrypted_regex: ^good$", nil},
		"unencrypted_regex":            {"unencrypted_regex: ^(apiVersion|kind|metadata|plain)$", []string{"s.yaml:7:22 Forbidden stringData.plain_unencrypted " + message}},
		"unencrypted_suffix":           {"unencrypted_suffix: _unencrypted", []string{"s.yaml:1:1 Forbidden " + wholeFileMessage}},
		"encrypted_suffix":             {"encrypted_suffix: ood", nil},
		"no selection":                 {"version: 3.13.3", []string{"s.yaml:1:1 Forbidden " + wholeFileMessage}},
		"comments, which are not read": {"encrypted_comment_regex: secret", nil},
		"a broken expression":          {"encrypted_regex: (", []string{"s.yaml:1:1 Invalid sops.encrypted_regex is not a regular expression"}},
	}
	_, age, _ := strings.Cut(sopsFile(t, "secret.yaml"), "\n  age:\n")
	age, _, _ = strings.Cut(age, "  encrypted_regex:")
	text := "apiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: b}\nstringData:\n  good: " + encrypted + "\n  plain: correct-horse\n  plain_unencrypted: battery\n  empty: \"\"\n" +
		"sops:\n  lastmodified: \"2026-01-01T00:00:00Z\"\n  mac: " + encrypted + "\n  age:\n" + age + "  "
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, violations := parse(t, "s.yaml", text+test.selection+"\n", Options{})
			assert.Equal(t, test.want, summaries(violations))
			assert.NotContains(t, fmt.Sprint(violations), "correct-horse")
		})
	}
	_, violations := parse(t, "s.yaml", strings.Replace(text, encrypted, "staple", 1)+"encrypted_regex: ^nothing$\n", Options{})
	assert.Equal(t, []string{"s.yaml:5:3 Forbidden " + readable}, summaries(violations), "metadata that select nothing hide nothing")
}

// TestCiphertextWithoutMetadata: otherwise the ciphertext would be applied.
func TestCiphertextWithoutMetadata(t *testing.T) {
	const message = "the value is encrypted, but the object has no SOPS metadata (sops:), so it cannot be decrypted; restore them, or encrypt the file with `sops --encrypt`"
	text, _, _ := strings.Cut(sopsFile(t, "secret.yaml"), "sops:")
	_, violations := parse(t, "secret.yaml", text, testKey(t))
	assert.Equal(t, []string{"secret.yaml:8:13 Invalid " + message, "secret.yaml:11:8 Invalid " + message}, summaries(violations))
	assert.True(t, schemas.HasErrors(violations))
	assert.Equal(t, "stringData.password", violations[0].Field)
	_, violations = parse(t, "a.cue", `s: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "a", data: a: "ENC[AES256_GCM,data:x]"}`, Options{})
	assert.Equal(t, []string{"a.cue:1:69 Invalid " + message}, summaries(violations))
}
