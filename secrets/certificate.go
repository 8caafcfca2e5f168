// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"
)

const (
	keyCACert     = "ca.crt"
	keyCAKey      = "ca.key"
	keyTLSCert    = "tls.crt"
	keyTLSKey     = "tls.key"
	keyBundleCert = "bundle.crt"

	defaultCertificateYears = 10
	// clockSkew is how long before now a certificate becomes valid.
	clockSkew = time.Minute
)

// authority is a CA that can sign.
type authority struct {
	certPEM     []byte
	certificate *x509.Certificate
	key         *rsa.PrivateKey
}

func loadAuthority(data map[string]Value) (*authority, error) {
	certificate, err := decodeCertificate(data[keyCACert].bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", keyCACert, err)
	}
	key, err := decodeRSA(data[keyCAKey].bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", keyCAKey, err)
	}
	if !key.PublicKey.Equal(certificate.PublicKey) {
		return nil, fmt.Errorf("%s and %s do not belong together", keyCACert, keyCAKey)
	}
	return &authority{certPEM: data[keyCACert].bytes, certificate: certificate, key: key}, nil
}

func decodeCertificate(raw []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(raw)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, errors.New("it holds no PEM certificate")
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("parsing the certificate: %w", err)
	}
	return certificate, nil
}

// newCertificate generates a CA (signer nil) or a certificate signed by signer.
func newCertificate(c Config, signer *authority, bits int, now time.Time) (map[string]Value, error) {
	key, err := generateRSA(bits)
	if err != nil {
		return nil, err
	}
	template, err := certificateTemplate(c, now)
	if err != nil {
		return nil, err
	}
	parent, parentKey := template, key
	if signer != nil {
		parent, parentKey = signer.certificate, signer.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
	if err != nil {
		return nil, fmt.Errorf("signing the certificate: %w", err)
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if signer == nil {
		return map[string]Value{keyCACert: {certPEM}, keyCAKey: {encodeRSA(key)}}, nil
	}
	if c.CertType == CertServer && c.IncludeCACertificateInServerChain {
		certPEM = append(certPEM, signer.certPEM...)
	}
	data := map[string]Value{keyTLSCert: {certPEM}, keyTLSKey: {encodeRSA(key)}}
	if !c.SkipPublishingCACertificate {
		data[keyCACert] = NewValue(signer.certPEM)
	}
	return data, nil
}

func certificateTemplate(c Config, now time.Time) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 128))
	if err != nil {
		return nil, fmt.Errorf("drawing a serial number: %w", err)
	}
	until := now.AddDate(defaultCertificateYears, 0, 0)
	if c.Validity != nil {
		until = now.Add(c.Validity.Duration)
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: c.CommonName, Organization: c.Organization},
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              until,
		BasicConstraintsValid: true,
		IsCA:                  c.Kind == KindCA,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		DNSNames:              c.DNSNames,
		IPAddresses:           parseIPs(c.IPAddresses),
	}
	if c.Kind == KindCA {
		template.KeyUsage |= x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	}
	if c.CertType == CertServer || c.CertType == CertServerClient {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	if c.CertType == CertClient || c.CertType == CertServerClient {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageClientAuth)
	}
	return template, nil
}

func parseIPs(addresses []string) []net.IP {
	var out []net.IP
	for _, a := range addresses {
		out = append(out, net.ParseIP(a))
	}
	return out
}
