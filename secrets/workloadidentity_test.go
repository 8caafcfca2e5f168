// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestWorkloadIdentityDocuments: both public keys of a rotation are published until the old one is
// dropped, and nothing private is.
func TestWorkloadIdentityDocuments(t *testing.T) {
	w := newStoreFixture(t)
	key := request(t, "key", `{"kind":"rsaPrivateKey","rotation":"keepOld"}`)
	documents := request(t, "documents", `{"kind":"workloadIdentityDocuments","key":"key","issuer":"https://discovery.example.org/garden/workload-identity/issuer"}`)
	type published struct {
		Keys []map[string]string `json:"keys"`
	}
	read := func(m *Manager) (out published) {
		s, ok := m.Get("documents")
		require.True(t, ok)
		require.Len(t, s.Data, 2)
		assert.JSONEq(t, `{"issuer":"https://discovery.example.org/garden/workload-identity/issuer","jwks_uri":"https://discovery.example.org/garden/workload-identity/issuer/jwks",
			"response_types_supported":["id_token"],"subject_types_supported":["public"],"id_token_signing_alg_values_supported":["RS256"]}`, string(s.Data["openid-configuration.json"].Reveal()))
		require.NoError(t, json.Unmarshal(s.Data["jwks.json"].Reveal(), &out))
		return out
	}
	m := w.manager()
	w.generate(m, key, documents)
	first := read(m)
	require.Len(t, first.Keys, 1)
	assert.ElementsMatch(t, []string{"use", "kty", "kid", "alg", "n", "e"}, keysOf(first.Keys[0]), "no private part")
	signer, _ := m.Get("key")
	private, err := decodeRSA(signer.Data[keyRSAPrivateKey].bytes)
	require.NoError(t, err)
	assert.True(t, private.PublicKey.Equal(publicKeyOf(t, first.Keys[0])))
	assert.Empty(t, m.Facts()["key"].Predecessor)

	w.clock.Step(time.Hour)
	rotation := WithRotationTimes(map[string]time.Time{"key": w.clock.Now()})
	m = w.manager(rotation)
	w.generate(m, key, documents)
	both := read(m)
	require.Len(t, both.Keys, 2)
	assert.Equal(t, first.Keys[0], both.Keys[1])
	assert.NotEqual(t, first.Keys[0]["kid"], both.Keys[0]["kid"])
	assert.Equal(t, signer.Name, m.Facts()["key"].Predecessor)

	key.IgnoreOldSecrets = true
	m = w.manager(rotation)
	w.generate(m, key, documents)
	assert.Equal(t, both.Keys[:1], read(m).Keys)
}

func keysOf(m map[string]string) (out []string) {
	for key := range m {
		out = append(out, key)
	}
	return out
}

func publicKeyOf(t *testing.T, key map[string]string) *rsa.PublicKey {
	t.Helper()
	number := func(field string) *big.Int {
		raw, err := base64.RawURLEncoding.DecodeString(key[field])
		require.NoError(t, err)
		return new(big.Int).SetBytes(raw)
	}
	return &rsa.PublicKey{N: number("n"), E: int(number("e").Int64())}
}

func TestWorkloadIdentityDocumentsNeedAnIssuer(t *testing.T) {
	_, err := ParseConfig("c", "documents", []byte(`{"kind":"workloadIdentityDocuments","key":"key","issuer":"http://a"}`))
	require.ErrorContains(t, err, `issuer is "http://a", expected an https URL`)
	_, err = ParseConfig("c", "documents", []byte(`{"kind":"workloadIdentityDocuments","issuer":"https://a"}`))
	require.ErrorContains(t, err, "key is required")
}
