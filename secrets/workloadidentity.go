// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
)

// Verifiers of workload identity tokens use these documents. They are public, and derived from the
// keys that sign such tokens: during a rotation, from both.
const (
	keyOpenIDConfiguration = "openid-configuration.json"
	keyJWKS                = "jwks.json"
)

// openIDConfiguration has the OpenID Connect Discovery fields that token verifiers need.
type openIDConfiguration struct {
	Issuer                string   `json:"issuer"`
	JWKSURI               string   `json:"jwks_uri"`
	ResponseTypes         []string `json:"response_types_supported"`
	SubjectTypes          []string `json:"subject_types_supported"`
	SigningAlgorithmNames []string `json:"id_token_signing_alg_values_supported"`
}

// webKey is a public key as RFC 7517 writes it.
type webKey struct {
	Use       string `json:"use"`
	Type      string `json:"kty"`
	ID        string `json:"kid"`
	Algorithm string `json:"alg"`
	Modulus   string `json:"n"`
	Exponent  string `json:"e"`
}

// newWorkloadIdentityDocuments publishes the current key and, during a rotation, the old one.
func newWorkloadIdentityDocuments(c Config, keys []map[string]Value) (map[string]Value, error) {
	set := struct {
		Keys []webKey `json:"keys"`
	}{}
	for _, data := range keys {
		private, err := decodeRSA(data[keyRSAPrivateKey].bytes)
		if err != nil {
			return nil, fmt.Errorf("the key that signs: %w", err)
		}
		key, err := webKeyOf(&private.PublicKey)
		if err != nil {
			return nil, err
		}
		set.Keys = append(set.Keys, key)
	}
	configuration, err := json.Marshal(openIDConfiguration{
		Issuer: c.Issuer, JWKSURI: c.Issuer + "/jwks",
		ResponseTypes: []string{"id_token"}, SubjectTypes: []string{"public"}, SigningAlgorithmNames: []string{"RS256"},
	})
	if err != nil {
		return nil, fmt.Errorf("encoding the OpenID configuration: %w", err)
	}
	jwks, err := json.Marshal(set)
	if err != nil {
		return nil, fmt.Errorf("encoding the public keys: %w", err)
	}
	return map[string]Value{keyOpenIDConfiguration: {configuration}, keyJWKS: {jwks}}, nil
}

// webKeyOf names a key by its hash, as gardener-apiserver does in the tokens that it signs
// (gardener: pkg/utils/workloadidentity).
func webKeyOf(key *rsa.PublicKey) (webKey, error) {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return webKey{}, fmt.Errorf("encoding a public key: %w", err)
	}
	id := sha256.Sum256(der)
	encode := base64.RawURLEncoding.EncodeToString
	return webKey{
		Use: "sig", Type: "RSA", ID: encode(id[:]), Algorithm: "RS256",
		Modulus: encode(key.N.Bytes()), Exponent: encode(big.NewInt(int64(key.E)).Bytes()),
	}, nil
}
