// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"testing"
	"testing/fstest"
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

// encryptForKey encrypts a file for one key like `sops encrypt --encrypted-regex '^stringData$'`.
func encryptForKey(t *testing.T, text string, key *age.X25519Identity) []byte {
	t.Helper()
	files := sopsyaml.NewStore(&config.YAMLStoreConfig{})
	branches, err := files.LoadPlainFile([]byte(text))
	require.NoError(t, err)
	masters, err := sopsage.MasterKeysFromRecipients(key.Recipient().String())
	require.NoError(t, err)
	tree := sops.Tree{Branches: branches, Metadata: sops.Metadata{KeyGroups: []sops.KeyGroup{{masters[0]}}, EncryptedRegex: "^stringData$", Version: "3.13.3", LastModified: time.Unix(1, 0).UTC()}}
	secret, problems := tree.GenerateDataKey()
	require.Empty(t, problems)
	mac, err := tree.Encrypt(secret, aes.NewCipher())
	require.NoError(t, err)
	tree.Metadata.MessageAuthenticationCode, err = aes.NewCipher().Encrypt(mac, secret, tree.Metadata.LastModified.Format(time.RFC3339))
	require.NoError(t, err)
	out, err := files.EmitEncryptedFile(tree)
	require.NoError(t, err)
	return out
}

// TestExchangedKeys: a Secret does not count as changed if only one side has a key for it.
// With keys for both sides it does.
func TestExchangedKeys(t *testing.T) {
	one, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	two, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	load := func(value string, key *age.X25519Identity, opened ...age.Identity) *Landscape {
		files := readMemoryFS(t, "local")
		files["secret.yaml"] = &fstest.MapFile{Data: encryptForKey(t, "apiVersion: v1\nkind: Secret\nmetadata:\n  name: s\n  namespace: garden\n  annotations:\n    landscape.pergola.dev/cluster: runtime\nimmutable: true\nstringData:\n  k: "+value+"\n", key)}
		l, violations, err := LoadFS(t.Context(), files, ".", Options{AgeIdentities: opened})
		require.NoError(t, err)
		require.Empty(t, violations)
		return l
	}
	for name, c := range map[string]struct {
		before, after *Landscape
		changes       bool
	}{
		"the same":                    {load("v", one, one), load("v", two, two), false},
		"another value":               {load("v", one, one), load("w", two, two), true},
		"of the former one no key":    {load("v", one, two), load("v", two, two), false},
		"of the new one no key":       {load("v", one, one), load("v", two, one), false},
		"of neither a key (in CI)":    {load("v", one), load("w", two), false},
		"both, with more keys than 1": {load("v", one, one, two), load("w", two, one, two), true},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := c.after.ValidateAt(t.Context(), validationTime, c.before, schemas.Options{})
			require.NoError(t, err)
			var texts []string
			for _, v := range found {
				if v.Kind == "Secret" && v.Severity == schemas.SeverityError {
					texts = append(texts, v.Message)
				}
			}
			if c.changes {
				require.Len(t, texts, 1)
				assert.Contains(t, texts[0], "must not change: the object is immutable")
			} else {
				assert.Empty(t, texts)
			}
		})
	}
}
