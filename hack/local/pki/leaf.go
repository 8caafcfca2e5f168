// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"os"
	"slices"
)

// Leaf describes a certificate that is not an authority.
type Leaf struct {
	// Name is the name of the files.
	Name string
	// User and Groups identify the bearer to an API server (common name, organisations).
	User   string
	Groups []string
	// Hosts are the names and IP addresses of a server. If empty, the certificate is only for
	// clients.
	Hosts []string
	// ClientAuth makes a server's certificate valid for clients as well, as etcd's peers need it.
	ClientAuth bool
}

// Issue finds or creates the certificate, signed by the authority. It replaces a certificate that
// expires soon, has another authority or differs from leaf.
func (f *Folder) Issue(by *Authority, leaf Leaf) error {
	template := leaf.template()
	template.NotAfter = f.Now.Add(leafValidity)
	existing, _, err := f.load(leaf.Name)
	if err != nil {
		return err
	}
	if existing != nil && f.isFresh(existing) && existing.CheckSignatureFrom(by.certificate) == nil && isSameSubject(existing, template) {
		return nil
	}
	_, _, err = f.issue(leaf.Name, template, by)
	return err
}

func (l Leaf) template() *x509.Certificate {
	template := &x509.Certificate{
		Subject:  pkix.Name{CommonName: l.User, Organization: l.Groups},
		KeyUsage: x509.KeyUsageDigitalSignature,
	}
	for _, host := range l.Hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	if len(l.Hosts) > 0 {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	if len(l.Hosts) == 0 || l.ClientAuth {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageClientAuth)
	}
	return template
}

// isSameSubject reports whether both certificates have the same subject and usage.
func isSameSubject(a, b *x509.Certificate) bool {
	return a.Subject.CommonName == b.Subject.CommonName &&
		slices.Equal(a.Subject.Organization, b.Subject.Organization) &&
		slices.Equal(a.DNSNames, b.DNSNames) &&
		slices.EqualFunc(a.IPAddresses, b.IPAddresses, net.IP.Equal) &&
		slices.Equal(a.ExtKeyUsage, b.ExtKeyUsage)
}

// KeyPair finds or creates a key without a certificate, for signing service account tokens.
func (f *Folder) KeyPair(name string) error {
	key, err := f.loadKey(name)
	if err != nil {
		return err
	}
	if _, errPublic := os.Stat(f.PublicKey(name)); key != nil && errPublic == nil {
		return nil
	}
	key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("generating key %s: %w", name, err)
	}
	if err := f.writeKey(name, key); err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return fmt.Errorf("encoding public key %s: %w", name, err)
	}
	if err := f.writePEM(f.PublicKey(name), "PUBLIC KEY", public); err != nil {
		return err
	}
	f.Renewed = append(f.Renewed, name)
	return nil
}
