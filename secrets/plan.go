// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"fmt"
	"maps"
	"time"

	"github.com/pergola-dev/pergola/secrets/internal/upstreamhash"
)

// secretPlan is a Secret to find or create.
type secretPlan struct {
	config     Config
	objectName string
	labels     map[string]string
	bundle     bool
	derived    bool
	generate   func(now time.Time) (map[string]Value, error)
}

// validateData checks whether the data of a Secret that was not generated here has all keys of its
// kind.
func (p *secretPlan) validateData(data map[string]Value) error {
	for _, key := range requiredKeys(p.config.Kind, p.bundle) {
		if data[key].Len() == 0 {
			return fmt.Errorf("data key %s is missing", key)
		}
	}
	if p.bundle {
		return nil
	}
	switch p.config.Kind {
	case KindCA:
		_, err := loadAuthority(data)
		return err
	case KindCertificate:
		_, err := decodeCertificate(data[keyTLSCert].bytes)
		return err
	case KindRSAPrivateKey, KindSSHKeypair:
		_, err := decodeRSA(data[keyRSAPrivateKey].bytes)
		return err
	}
	return nil
}

func requiredKeys(kind Kind, bundle bool) []string {
	if bundle {
		return []string{map[Kind]string{KindCA: keyBundleCert, KindRSAPrivateKey: keyBundleKeys}[kind]}
	}
	switch kind {
	case KindCA:
		return []string{keyCACert, keyCAKey}
	case KindCertificate:
		return []string{keyTLSCert, keyTLSKey}
	case KindRSAPrivateKey:
		return []string{keyRSAPrivateKey}
	case KindSSHKeypair:
		return []string{keyRSAPrivateKey, keySSHPublicKey}
	case KindEtcdEncryptionKey:
		return []string{keyEncryptionName, keyEncryptionSecret}
	case KindStaticToken:
		return []string{keyStaticTokens}
	case KindBasicAuth:
		return []string{keyUsername, keyPassword}
	case KindKubeconfig:
		return []string{keyKubeconfig}
	}
	return nil
}

// planSecret resolves the references of a request, and returns the name and labels of its Secret
// and how to generate it.
func (m *Manager) planSecret(c Config) (*secretPlan, error) {
	p := &secretPlan{config: c}
	hashed, signerSum, err := m.prepareGeneration(c, p)
	if err != nil {
		return nil, err
	}
	if p.derived {
		return p, nil
	}
	if p.labels, err = m.labelsFor(c.Name, hashed, signerSum); err != nil {
		return nil, err
	}
	maps.Copy(p.labels, c.Labels)
	if c.Persist {
		p.labels[labelPersist] = valueTrue
	}
	static := c.Kind == KindCA && m.staticCANames && c.Name != clientCAWithHashedName
	p.objectName = objectName(c.Name, p.labels, static)
	return p, nil
}

// labelsFor returns the labels of every generated Secret, without those of its lifetime.
func (m *Manager) labelsFor(name string, hashed any, signerSum string) (map[string]string, error) {
	sum, err := upstreamhash.Checksum(hashed)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	rotation := m.rotationTexts[name]
	m.mu.Unlock()
	l := map[string]string{
		labelName: name, labelManagedBy: valueSecretsManager, labelManagerIdentity: m.identity,
		labelChecksumConfig: sum, labelRotationInitiation: rotation,
	}
	if signerSum != "" {
		l[labelChecksumSigningCA] = labelChecksum(signerSum)
	}
	return l, nil
}

// prepareGeneration returns the hashed configuration and the checksum of the signing CA.
func (m *Manager) prepareGeneration(c Config, p *secretPlan) (hashed any, signerSum string, err error) {
	switch c.Kind {
	case KindCA:
		p.generate = func(now time.Time) (map[string]Value, error) { return newCertificate(c, nil, m.certificateBits, now) }
		return certificateSecretConfig(c), "", nil
	case KindCertificate:
		return m.prepareCertificate(c, p)
	case KindRSAPrivateKey, KindSSHKeypair:
		p.generate = func(time.Time) (map[string]Value, error) { return newRSAKey(c, intOrDefault(c.Bits, m.defaultKeyBits)) }
		return &upstreamhash.RSASecretConfig{Name: c.Name, Bits: intOrDefault(c.Bits, defaultKeyBits), UsedForSSH: c.Kind == KindSSHKeypair}, "", nil
	case KindEtcdEncryptionKey:
		p.generate = func(now time.Time) (map[string]Value, error) { return newEncryptionKey(c, now) }
		return &upstreamhash.ETCDEncryptionKeySecretConfig{
			Name: c.Name, Provider: providerForHash(c.Provider), SecretLength: encryptionKeyBytes,
		}, "", nil
	case KindStaticToken:
		p.generate = func(time.Time) (map[string]Value, error) { return newStaticTokens(c) }
		tokens := map[string]upstreamhash.TokenConfig{}
		for _, u := range c.Users {
			tokens[u.Username] = upstreamhash.TokenConfig{Username: u.Username, UserID: u.UserID, Groups: u.Groups}
		}
		return &upstreamhash.StaticTokenSecretConfig{Name: c.Name, Tokens: tokens}, "", nil
	case KindBasicAuth:
		p.generate = func(time.Time) (map[string]Value, error) { return newBasicAuth(c) }
		return &upstreamhash.BasicAuthSecretConfig{
			Name: c.Name, Format: "normal", Username: textOrDefault(c.Username, defaultUsername),
			PasswordLength: intOrDefault(c.PasswordLength, defaultPasswordLength),
		}, "", nil
	case KindKubeconfig:
		return m.prepareKubeconfig(c, p)
	case KindEtcdEncryptionConfiguration:
		return nil, "", m.prepareEncryptionConfiguration(c, p)
	case KindWorkloadIdentityDocuments:
		return nil, "", m.prepareWorkloadIdentityDocuments(c, p)
	}
	return nil, "", fmt.Errorf("unknown kind %q", c.Kind)
}

func certificateSecretConfig(c Config) *upstreamhash.CertificateSecretConfig {
	h := &upstreamhash.CertificateSecretConfig{
		Name: c.Name, CommonName: c.CommonName, Organization: c.Organization, DNSNames: c.DNSNames,
		IPAddresses: parseIPs(c.IPAddresses), SkipPublishingCACertificate: c.SkipPublishingCACertificate,
		IncludeCACertificateInServerChain: c.IncludeCACertificateInServerChain,
	}
	if c.Validity != nil {
		h.Validity = &c.Validity.Duration
	}
	switch {
	case c.Kind == KindCA:
		h.CertType = "ca"
	case c.CertType == CertServerClient:
		h.CertType = "both"
	default:
		h.CertType = upstreamhash.CertType(c.CertType)
	}
	return h
}

func (m *Manager) prepareCertificate(c Config, p *secretPlan) (any, string, error) {
	e, err := m.dependency(c.SigningCA, KindCA)
	if err != nil {
		return nil, "", err
	}
	signer := e.current
	if e.old != nil && !c.UseCurrentCA && (c.CertType != CertClient || c.UseOldCA) {
		signer = e.old
	}
	p.generate = func(now time.Time) (map[string]Value, error) {
		ca, err := loadAuthority(signer.data)
		if err != nil {
			return nil, fmt.Errorf("the signing CA, Secret %s: %w", signer.name, err)
		}
		return newCertificate(c, ca, m.certificateBits, now)
	}
	h := certificateSecretConfig(c)
	h.SigningCA = &upstreamhash.Certificate{Name: c.SigningCA}
	return h, dataChecksum(signer.data), nil
}

func (m *Manager) prepareKubeconfig(c Config, p *secretPlan) (any, string, error) {
	var (
		caBundle    Value
		certificate map[string]Value
	)
	if c.CA != "" {
		e, err := m.dependency(c.CA, KindCA)
		if err != nil {
			return nil, "", err
		}
		caBundle = e.bundle.data[keyBundleCert]
	}
	if c.ClientCertificate != "" {
		e, err := m.dependency(c.ClientCertificate, KindCertificate)
		if err != nil {
			return nil, "", err
		}
		certificate = e.current.data
	}
	parts := kubeconfigSecretConfig(c, caBundle, certificate)
	p.generate = func(time.Time) (map[string]Value, error) { return newKubeconfig(parts) }
	return &parts, "", nil
}

func (m *Manager) prepareEncryptionConfiguration(c Config, p *secretPlan) error {
	e, err := m.dependency(c.Key, KindEtcdEncryptionKey)
	if err != nil {
		return err
	}
	p.derived = true
	p.generate = func(time.Time) (map[string]Value, error) {
		var old map[string]Value
		if e.old != nil {
			old = e.old.data
		}
		return newEncryptionConfiguration(c, e.current.data, old)
	}
	return nil
}

func (m *Manager) prepareWorkloadIdentityDocuments(c Config, p *secretPlan) error {
	e, err := m.dependency(c.Key, KindRSAPrivateKey)
	if err != nil {
		return err
	}
	p.derived = true
	p.generate = func(time.Time) (map[string]Value, error) {
		keys := []map[string]Value{e.current.data}
		if e.old != nil {
			keys = append(keys, e.old.data)
		}
		return newWorkloadIdentityDocuments(c, keys)
	}
	return nil
}

// dependency returns a request that must already be fulfilled.
func (m *Manager) dependency(name string, kind Kind) (*fulfilledRequest, error) {
	e, ok := m.entryOf(name)
	if !ok {
		return nil, fmt.Errorf("it refers to %q, which is not requested: add a request of kind %s with that name", name, kind)
	}
	if e.config.Kind != kind {
		return nil, fmt.Errorf("it refers to %q, which is of kind %s, expected %s", name, e.config.Kind, kind)
	}
	return e, nil
}
