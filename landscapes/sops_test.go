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
	found, violations := Parse("secret.yaml", []byte(sopsFile(t, "secret.yaml")), testKey(t))
	assert.Empty(t, violations)
	require.Len(t, found, 1)
	assert.Equal(t, SecretDecrypted, found[0].Secret)
	assert.Equal(t, map[string]any{"password": "correct-horse-battery", "empty": ""}, found[0].Object.Object["stringData"])
	assert.NotContains(t, found[0].Object.Object, "sops")
	assert.Equal(t, schemas.Position{File: "secret.yaml", Line: 8, Column: 13}, found[0].Position("stringData.password"))
}

func TestEncryptedSecretWithoutFittingKey(t *testing.T) {
	for name, opts := range map[string]Options{"no key": {}, "another key": demoKey(t)} {
		t.Run(name, func(t *testing.T) {
			found, violations := Parse("secret.yaml", []byte(sopsFile(t, "secret.yaml")), opts)
			assert.Empty(t, violations)
			require.Len(t, found, 1)
			assert.Equal(t, SecretEncrypted, found[0].Secret)
			assert.Equal(t, map[string]any{"password": "", "empty": ""}, found[0].Object.Object["stringData"])
			assert.Equal(t, map[string]any{"key": ""}, found[0].Object.Object["data"])
			assert.NotContains(t, found[0].Object.Object, "sops")
		})
	}
}

// TestEncryptedFormIsKept: whether a value changed can be told without a key.
func TestEncryptedFormIsKept(t *testing.T) {
	for name, opts := range map[string]Options{"no key": {}, "key": testKey(t)} {
		t.Run(name, func(t *testing.T) {
			found, _ := Parse("secret.yaml", []byte(sopsFile(t, "secret.yaml")), opts)
			require.Len(t, found, 1)
			assert.NotContains(t, found[0].Sealed, "sops")
			assert.Contains(t, found[0].Sealed["stringData"].(map[string]any)["password"], "ENC[AES256_GCM,")

			over, _ := Parse("over.yaml", []byte("apiVersion: v1\nkind: Secret\nmetadata: {name: one, labels: {a: b}}\n"), Options{})
			layOver(&found[0], &over[0])
			assert.Contains(t, found[0].Sealed["stringData"].(map[string]any)["password"], "ENC[AES256_GCM,")
			assert.Equal(t, "b", found[0].Sealed["metadata"].(map[string]any)["labels"].(map[string]any)["a"])
		})
	}
	plain, _ := Parse("ns.yaml", []byte(namespace("x")), Options{})
	assert.Nil(t, plain[0].Sealed)
}

func TestTamperedSecret(t *testing.T) {
	text := sopsFile(t, "secret.yaml")
	tests := map[string]struct{ text, want string }{
		"another name":    {strings.Replace(text, "name: one", "name: two", 1), "secret.yaml:12:1 Invalid the signature (sops.mac) does not fit the content: the file was changed after it was encrypted; edit it with `sops FILE`"},
		"moved value":     {strings.Replace(text, "password:", "other:", 1), "secret.yaml:12:1 Invalid a value cannot be decrypted: it was changed after it was encrypted, or moved to another field"},
		"broken metadata": {strings.Replace(text, "lastmodified: \"2026", "lastmodified: \"x", 1), "secret.yaml:12:1 Invalid the SOPS metadata cannot be read; encrypt the file again with `sops --encrypt`"},
		"plain value":     {strings.Replace(text, "stringData:", "stringData:\n  added: hunter2-in-the-clear", 1), "secret.yaml:13:1 Invalid a value cannot be decrypted: it was changed after it was encrypted, or moved to another field"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			require.NotEqual(t, text, test.text)
			found, violations := Parse("secret.yaml", []byte(test.text), testKey(t))
			assert.Equal(t, []string{test.want}, summaries(violations))
			require.Len(t, found, 1)
			assert.Equal(t, SecretEncrypted, found[0].Secret)
		})
	}
}

func TestOnlySecretsAreEncrypted(t *testing.T) {
	_, violations := Parse("c.yaml", []byte(sopsFile(t, "configmap.yaml")), testKey(t))
	require.Len(t, violations, 1)
	assert.Equal(t, "c.yaml", violations[0].File)
	assert.Contains(t, violations[0].Message, "only Secrets may be encrypted")
}

func TestPlainSecretIsAWarning(t *testing.T) {
	text := "apiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: b}\nstringData:\n  password: correct-horse-battery\n"
	found, violations := Parse("s.yaml", []byte(text), Options{})
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
	assert.Equal(t, "line 3 is no age key; a key begins with AGE-SECRET-KEY-1", err.Error())
}
