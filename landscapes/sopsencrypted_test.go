// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/getsops/sops/v3"
	"github.com/getsops/sops/v3/aes"
	sopsage "github.com/getsops/sops/v3/age"
	"github.com/getsops/sops/v3/config"
	sopsyaml "github.com/getsops/sops/v3/stores/yaml"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/schemas"
)

// encryptFile encrypts a file like `sops --encrypt`, for the key of testKey.
func encryptFile(t *testing.T, text string, change func(*sops.Metadata)) string {
	t.Helper()
	identity, ok := testKey(t).AgeIdentities[0].(*age.X25519Identity)
	require.True(t, ok)
	store := sopsyaml.NewStore(&config.YAMLStoreConfig{})
	branches, err := store.LoadPlainFile([]byte(text))
	require.NoError(t, err)
	master, err := sopsage.MasterKeyFromRecipient(identity.Recipient().String())
	require.NoError(t, err)
	tree := sops.Tree{Branches: branches, Metadata: sops.Metadata{
		EncryptedRegex: "^(data|stringData)$", Version: "3.13.3", KeyGroups: []sops.KeyGroup{{master}},
		LastModified: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
	}}
	if change != nil {
		change(&tree.Metadata)
	}
	key, failed := tree.GenerateDataKey()
	require.Empty(t, failed)
	cipher := aes.NewCipher()
	mac, err := tree.Encrypt(key, cipher)
	require.NoError(t, err)
	tree.Metadata.MessageAuthenticationCode, err = cipher.Encrypt(mac, key, tree.Metadata.LastModified.Format(time.RFC3339))
	require.NoError(t, err)
	out, err := store.EmitEncryptedFile(tree)
	require.NoError(t, err)
	return string(out)
}

func secret(name, values string) string {
	return "apiVersion: v1\nkind: Secret\nmetadata:\n  name: " + name + "\n  namespace: garden\nstringData:\n" + values
}

func listOf(items ...string) string {
	text := "apiVersion: v1\nkind: List\nitems:\n"
	for _, item := range items {
		text += "- " + strings.ReplaceAll(strings.TrimSuffix(item, "\n"), "\n", "\n  ") + "\n"
	}
	return text
}

// withoutLine removes the line that begins with a text.
func withoutLine(text, start string) string {
	before, rest, _ := strings.Cut(text, start)
	_, after, _ := strings.Cut(rest, "\n")
	return before + after
}

// TestSameVerdictWithAndWithoutKey: a CI job without a key gets the same findings as the operator.
func TestSameVerdictWithAndWithoutKey(t *testing.T) {
	good := encryptFile(t, secret("a", "  one: first-hunter2\n  two: other-hunter2\n"), nil)
	var values []string // the encrypted ones
	for line := range strings.Lines(good) {
		if _, value, ok := strings.Cut(strings.TrimSpace(line), ": "); ok && isEncrypted(value) && !strings.HasPrefix(line, "    mac") {
			values = append(values, value)
		}
	}
	require.GreaterOrEqual(t, len(values), 2)
	replaced := func(text, old, new string) string {
		require.Contains(t, text, old)
		return strings.Replace(text, old, new, 1)
	}
	regex := func(expression string) func(*sops.Metadata) {
		return func(m *sops.Metadata) { m.EncryptedRegex = expression }
	}
	plain := "---\napiVersion: v1\nkind: Secret\nmetadata:\n  name: b\n  namespace: garden\n"
	tests := map[string]struct{ text, want string }{
		"sound":                              {good, ""},
		"two documents":                      {encryptFile(t, secret("a", "  x: hunter2\n")+"---\n"+secret("b", "  x: hunter2\n"), nil), ""},
		"a List":                             {encryptFile(t, listOf(secret("a", "  x: hunter2\n"), secret("b", "  x: hunter2\n")), nil), ""},
		"text that looks like a number":      {encryptFile(t, secret("a", "  x: \"1\"\n"), nil), ""},
		"selected by a comment":              {encryptFile(t, secret("a", "  # hide\n  x: hunter2\n"), func(m *sops.Metadata) { m.EncryptedRegex, m.EncryptedCommentRegex = "", "hide" }), ""},
		"encrypted apart":                    {good + "---\n" + encryptFile(t, secret("b", "  x: hunter2\n"), nil), "the documents have different SOPS metadata"},
		"a document without metadata":        {good + plain, "this document has no SOPS metadata"},
		"the first document without":         {strings.TrimPrefix(plain, "---\n") + "---\n" + good, "this document has no SOPS metadata"},
		"a whole number":                     {encryptFile(t, secret("a", "  x: 1\n"), nil), "stringData.x must be text, but is encrypted as a whole number"},
		"a number":                           {encryptFile(t, secret("a", "  x: 1.5\n"), nil), "stringData.x must be text, but is encrypted as a number"},
		"true":                               {encryptFile(t, secret("a", "  x: true\n"), nil), "stringData.x must be text, but is encrypted as true or false"},
		"a date":                             {encryptFile(t, secret("a", "  x: 2026-01-01\n"), nil), "stringData.x must be text, but is encrypted as a date"},
		"a number in a List":                 {encryptFile(t, listOf(secret("a", "  x: 7\n")), nil), "items.stringData.x must be text, but is encrypted as a whole number"},
		"encrypted as a whole":               {encryptFile(t, secret("a", "  x: hunter2\n"), regex("")), "the file is encrypted as a whole"},
		"as a whole, by the default of sops": {encryptFile(t, secret("a", "  x: hunter2\n"), func(m *sops.Metadata) { m.EncryptedRegex, m.UnencryptedSuffix = "", "_unencrypted" }), "the file is encrypted as a whole"},
		"the items of a List as a whole":     {encryptFile(t, listOf(secret("a", "  x: hunter2\n")), regex("^items$")), "the file is encrypted as a whole"},
		"the name":                           {encryptFile(t, secret("a", "  x: hunter2\n"), regex("^(metadata|stringData)$")), "the file is encrypted as a whole"},
		"the type":                           {encryptFile(t, secret("a", "  x: hunter2\n")+"type: Opaque\n", regex("^(type|stringData)$")), "type is encrypted, but only data and stringData of a Secret may be"},
		"keys of KMS only":                   {sopsFile(t, "kms.yaml"), "the file is encrypted only for keys of kms; Pergola opens age keys"},
		"ciphertext that is cut":             {replaced(good, ",type:str]", ""), "is damaged: it does not have the form"},
		"ciphertext that is no base64":       {replaced(good, "GCM,data:", "GCM,data:!"), "is damaged: it does not have the form"},
		"text after the ciphertext":          {replaced(good, ",type:str]", ",type:str]x"), "is damaged: it does not have the form"},
		"a kind that there is not":           {replaced(good, ",type:str]", ",type:uint]"), "is damaged: it does not have the form"},
		"a value of another field":           {replaced(good, values[1], values[0]), "is the encrypted value of stringData.one, which cannot be decrypted in another field"},
		"a field that is not selected":       {replaced(good, "stringData:", "strData:"), "is encrypted, but the SOPS metadata do not select it"},
		"no signature":                       {withoutLine(good, "    mac:"), "the signature (sops.mac) is damaged or missing"},
		"cut after the recipients":           {good[:strings.Index(good, "    lastmodified:")], "the signature (sops.mac) is damaged or missing"},
		"no age key":                         {regexp.MustCompile(`(?s)\n    age:\n.*?\n(    [a-z])`).ReplaceAllString(good, "\n    age: []\n$1"), "the SOPS metadata cannot be read"},
		"what the key opens is cut":          {replaced(good, "-----END AGE", "-----EN"), "the data key for an age key (sops.age[].enc) is damaged"},
		"several groups":                     {replaced(good, "    lastmodified:", "    shamir_threshold: 2\n    lastmodified:"), "the file needs keys of several groups"},
		"metadata at an item":                {listOf(good), "SOPS metadata (sops:) belong to the file, not to a List item"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			without, said := parse(t, "s.yaml", test.text, Options{})
			with, saidWith := parse(t, "s.yaml", test.text, testKey(t))
			assert.Equal(t, summaries(said), summaries(saidWith), "with the key")
			_, saidWrong := parse(t, "s.yaml", test.text, demoKey(t))
			assert.Equal(t, summaries(said), summaries(saidWrong), "with another key")
			assert.NotContains(t, strings.Join(summaries(saidWith), "\n"), "hunter2")
			assert.Len(t, with, len(without))
			if test.want == "" {
				assert.Empty(t, summaries(said))
				for i := range with {
					assert.Equal(t, SecretDecrypted, with[i].Secret)
					assert.Equal(t, SecretEncrypted, without[i].Secret)
				}
				return
			}
			require.NotEmpty(t, said)
			assert.True(t, schemas.HasErrors(said))
			assert.Contains(t, strings.Join(summaries(said), "\n"), test.want)
		})
	}
}

// TestItemsOfAnEncryptedList: items are Secrets like separate documents.
func TestItemsOfAnEncryptedList(t *testing.T) {
	before := encryptFile(t, listOf(secret("a", "  x: hunter1\n"), listOf(secret("b", "  y: hunter1\n"))), nil)
	after := encryptFile(t, listOf(secret("a", "  x: hunter2\n"), listOf(secret("b", "  y: hunter2\n"))), nil)
	for name, opts := range map[string]Options{"no key": {}, "key": testKey(t), "another key": demoKey(t)} {
		t.Run(name, func(t *testing.T) {
			was, said := parse(t, "s.yaml", before, opts)
			assert.Empty(t, said)
			is, _ := parse(t, "s.yaml", after, opts)
			require.Len(t, was, 2)
			require.Len(t, is, 2)
			for i := range was {
				assert.False(t, was[i].HasSameContent(&is[i]), "a ciphertext that changed is a change")
				assert.True(t, is[i].HasSameContent(&is[i]))
				assert.True(t, hasCiphertext(is[i].EncryptedContent()))
				assert.NotEqual(t, was[i].EncryptedContent(), is[i].EncryptedContent())
				assert.Equal(t, []string{"age1lcrwv2agztvtgl862m0g75eajqv40rhdxuvlcm75vwc3jrrd9dlqzl5945"}, is[i].Recipients())
				assert.Equal(t, "Secret", is[i].EncryptedContent()["kind"])
			}
			assert.Equal(t, 10, was[0].Position("stringData.x").Line)
		})
	}
	_, said := parse(t, "s.yaml", strings.Replace(before, "        stringData:\n", "        stringData:\n            z: hunter3\n", 1), Options{})
	require.Len(t, said, 1)
	assert.Contains(t, said[0].Message, "items.stringData.z is not encrypted")
}
