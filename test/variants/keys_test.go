// SPDX-License-Identifier: Apache-2.0

package variants

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// testKeys are the certificates and signing keys of the servers that control planes call. They are
// in files, so that a converged landscape does not change.
type testKeys struct {
	folder       string
	authority    *x509.Certificate
	authorityKey *rsa.PrivateKey
	// issuer signs tokens; stranger is an unknown key.
	issuer, unknownKey *rsa.PrivateKey
}

func newKeys(folder string) (*testKeys, error) {
	k := &testKeys{folder: folder}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	for name, to := range map[string]**rsa.PrivateKey{"authority.key": &k.authorityKey, "issuer.key": &k.issuer, "stranger.key": &k.unknownKey} {
		der, err := k.readOrCreate(name, "RSA PRIVATE KEY", func() ([]byte, error) {
			key, err := rsa.GenerateKey(rand.Reader, 2048)
			if err != nil {
				return nil, err
			}
			return x509.MarshalPKCS1PrivateKey(key), nil
		})
		if err != nil {
			return nil, err
		}
		if *to, err = x509.ParsePKCS1PrivateKey(der); err != nil {
			return nil, err
		}
	}
	der, err := k.readOrCreate("authority.crt", "CERTIFICATE", func() ([]byte, error) {
		template := &x509.Certificate{
			SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "variants"}, NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(30 * 24 * time.Hour),
			IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		}
		return x509.CreateCertificate(rand.Reader, template, template, k.authorityKey.Public(), k.authorityKey)
	})
	if err != nil {
		return nil, err
	}
	k.authority, err = x509.ParseCertificate(der)
	return k, err
}

// readOrCreate returns the content of a file, which it creates if missing.
func (k *testKeys) readOrCreate(name, kind string, create func() ([]byte, error)) ([]byte, error) {
	file := filepath.Join(k.folder, name)
	text, err := os.ReadFile(file)
	if err == nil {
		if block, _ := pem.Decode(text); block != nil {
			return block.Bytes, nil
		}
		return nil, fmt.Errorf("%s is not PEM", file)
	}
	der, err := create()
	if err != nil {
		return nil, err
	}
	return der, os.WriteFile(file, []byte(encodePEM(kind, der)), 0o600)
}

// serverCertificate makes a certificate for a name or an address: the files HOST.crt and HOST.key.
// It returns their content.
func (k *testKeys) serverCertificate(host string) (certificate, key string, err error) {
	private, err := k.readOrCreate(host+".key", "RSA PRIVATE KEY", func() ([]byte, error) {
		private, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			return nil, err
		}
		return x509.MarshalPKCS1PrivateKey(private), nil
	})
	if err != nil {
		return "", "", err
	}
	parsed, err := x509.ParsePKCS1PrivateKey(private)
	if err != nil {
		return "", "", err
	}
	der, err := k.readOrCreate(host+".crt", "CERTIFICATE", func() ([]byte, error) {
		template := &x509.Certificate{
			SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: host}, NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(30 * 24 * time.Hour),
			KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		}
		if address := net.ParseIP(host); address != nil {
			template.IPAddresses = []net.IP{address}
		} else {
			template.DNSNames = []string{host}
		}
		return x509.CreateCertificate(rand.Reader, template, k.authority, parsed.Public(), k.authorityKey)
	})
	return encodePEM("CERTIFICATE", der), encodePEM("RSA PRIVATE KEY", private), err
}

func encodePEM(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// caBundle returns the certificate of the authority.
func (k *testKeys) caBundle() string { return encodePEM("CERTIFICATE", k.authority.Raw) }

// keySet returns the key set that an issuer of tokens publishes.
func (k *testKeys) keySet() ([]byte, error) {
	public := k.issuer.PublicKey
	return json.Marshal(map[string]any{"keys": []any{map[string]any{
		"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "variants", "n": base64url(public.N.Bytes()), "e": base64url(big.NewInt(int64(public.E)).Bytes()),
	}}})
}

// signToken returns a JWT signed with a key.
func signToken(key *rsa.PrivateKey, claims map[string]any) (string, error) {
	header, err := json.Marshal(map[string]any{"alg": "RS256", "typ": "JWT", "kid": "variants"})
	if err != nil {
		return "", err
	}
	body, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	text := base64url(header) + "." + base64url(body)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	return text + "." + base64url(signature), err
}

func base64url(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }
