// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"

	"golang.org/x/crypto/ssh"
)

const (
	keyRSAPrivateKey = "id_rsa"
	keySSHPublicKey  = "id_rsa.pub"
	keyBundleKeys    = "bundle.key"

	// certificateBits and defaultKeyBits are the sizes of upstream's RSA keys.
	certificateBits = 3072
	defaultKeyBits  = 4096
)

func generateRSA(bits int) (*rsa.PrivateKey, error) {
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		return nil, fmt.Errorf("generating an RSA key of %d bits: %w", bits, err)
	}
	return key, nil
}

func encodeRSA(key *rsa.PrivateKey) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
}

// decodeRSA parses PKCS#1, as generated here, and PKCS#8, as in some adopted secrets.
func decodeRSA(raw []byte) (*rsa.PrivateKey, error) {
	block, _ := pem.Decode(raw)
	if block == nil {
		return nil, errors.New("the private key is not PEM")
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("the private key is neither PKCS#1 nor PKCS#8")
	}
	key, ok := parsed.(*rsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("the private key is a %T, expected RSA", parsed)
	}
	return key, nil
}

func newRSAKey(c Config, bits int) (map[string]Value, error) {
	key, err := generateRSA(bits)
	if err != nil {
		return nil, err
	}
	data := map[string]Value{keyRSAPrivateKey: {encodeRSA(key)}}
	if c.Kind == KindSSHKeypair {
		public, err := ssh.NewPublicKey(&key.PublicKey)
		if err != nil {
			return nil, fmt.Errorf("encoding the SSH public key: %w", err)
		}
		data[keySSHPublicKey] = Value{bytes.TrimRight(ssh.MarshalAuthorizedKey(public), "\n")}
	}
	return data, nil
}
