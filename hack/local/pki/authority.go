// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"time"
)

const (
	authorityValidity = 10 * 365 * 24 * time.Hour
	leafValidity      = 365 * 24 * time.Hour
	// renewBefore is the remaining validity below which a certificate is renewed.
	renewBefore = 30 * 24 * time.Hour
)

// Folder is a folder of keys and certificates.
type Folder struct {
	// Path is the path of the folder.
	Path string
	// Now is the time for checking validity.
	Now time.Time
	// Renewed lists the names of created or renewed certificates, whose processes must restart.
	Renewed []string
}

// Authority is a certificate authority.
type Authority struct {
	name        string
	certificate *x509.Certificate
	key         crypto.Signer
}

// Cert returns the file of the certificate with that name.
func (f *Folder) Cert(name string) string { return filepath.Join(f.Path, name+".crt") }

// Key returns the file of the private key with that name.
func (f *Folder) Key(name string) string { return filepath.Join(f.Path, name+".key") }

// PublicKey returns the file of the public key with that name.
func (f *Folder) PublicKey(name string) string { return filepath.Join(f.Path, name+".pub") }

// Authority finds or creates the certificate authority with that name.
func (f *Folder) Authority(name string) (*Authority, error) {
	certificate, key, err := f.load(name)
	if err != nil {
		return nil, err
	}
	if certificate != nil && certificate.IsCA && f.isFresh(certificate) {
		return &Authority{name: name, certificate: certificate, key: key}, nil
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: name},
		NotAfter:              f.Now.Add(authorityValidity),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	certificate, key, err = f.issue(name, template, nil)
	if err != nil {
		return nil, err
	}
	return &Authority{name: name, certificate: certificate, key: key}, nil
}

// isFresh reports whether the certificate is valid now and for a while.
func (f *Folder) isFresh(certificate *x509.Certificate) bool {
	return !f.Now.Before(certificate.NotBefore) && f.Now.Add(renewBefore).Before(certificate.NotAfter)
}

// issue creates a key and a certificate, signed by the authority or self-signed, and writes both.
func (f *Folder) issue(name string, template *x509.Certificate, by *Authority) (*x509.Certificate, crypto.Signer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("generating key %s: %w", name, err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, nil, fmt.Errorf("generating serial number of %s: %w", name, err)
	}
	template.SerialNumber = serial
	// Clocks may differ; a certificate that starts in the future is useless.
	template.NotBefore = f.Now.Add(-5 * time.Minute)
	parent, signer := template, crypto.Signer(key)
	if by != nil {
		parent, signer = by.certificate, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return nil, nil, fmt.Errorf("signing certificate %s: %w", name, err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, fmt.Errorf("reading back certificate %s: %w", name, err)
	}
	if err := f.writeKey(name, key); err != nil {
		return nil, nil, err
	}
	if err := f.writePEM(f.Cert(name), "CERTIFICATE", der); err != nil {
		return nil, nil, err
	}
	f.Renewed = append(f.Renewed, name)
	return certificate, key, nil
}

func (f *Folder) writeKey(name string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fmt.Errorf("encoding key %s: %w", name, err)
	}
	return f.writePEM(f.Key(name), "PRIVATE KEY", der)
}

func (f *Folder) writePEM(path, kind string, der []byte) error {
	if err := os.MkdirAll(f.Path, 0o700); err != nil {
		return fmt.Errorf("creating folder of keys: %w", err)
	}
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// load reads a certificate and its key. It returns nil if a file is missing or broken, or the two
// do not match: then both are created again.
func (f *Folder) load(name string) (*x509.Certificate, crypto.Signer, error) {
	certificateDER, err := readPEM(f.Cert(name))
	if err != nil {
		return nil, nil, err
	}
	key, err := f.loadKey(name)
	if err != nil || key == nil || certificateDER == nil {
		return nil, nil, err
	}
	certificate, err := x509.ParseCertificate(certificateDER)
	if err != nil || !key.PublicKey.Equal(certificate.PublicKey) {
		return nil, nil, nil
	}
	return certificate, key, nil
}

func (f *Folder) loadKey(name string) (*ecdsa.PrivateKey, error) {
	der, err := readPEM(f.Key(name))
	if err != nil || der == nil {
		return nil, err
	}
	key, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, nil
	}
	ecKey, _ := key.(*ecdsa.PrivateKey)
	return ecKey, nil
}

// readPEM returns the first block of the file, or nil if there is no file or no block.
func readPEM(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, nil
	}
	return block.Bytes, nil
}
