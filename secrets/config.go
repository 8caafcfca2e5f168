// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Kind is the kind of a request.
type Kind string

// The kinds of requests, and the data keys of their Secrets.
const (
	KindCA                = Kind("ca")                // ca.crt, ca.key; its bundle has bundle.crt
	KindCertificate       = Kind("certificate")       // tls.crt, tls.key, ca.crt unless omitted
	KindRSAPrivateKey     = Kind("rsaPrivateKey")     // id_rsa; its bundle has bundle.key
	KindSSHKeypair        = Kind("sshKeypair")        // id_rsa, id_rsa.pub
	KindEtcdEncryptionKey = Kind("etcdEncryptionKey") // provider, key, secret, encoding
	KindStaticToken       = Kind("staticToken")       // static_tokens.csv
	KindBasicAuth         = Kind("basicAuth")         // username, password, auth
	KindKubeconfig        = Kind("kubeconfig")        // kubeconfig
	// KindEtcdEncryptionConfiguration derives encryption-configuration.yaml from an encryption key.
	KindEtcdEncryptionConfiguration = Kind("etcdEncryptionConfiguration")
	// KindWorkloadIdentityDocuments derives openid-configuration.json and jwks.json from an RSA
	// key.
	KindWorkloadIdentityDocuments = Kind("workloadIdentityDocuments")
)

// CertType is the permitted use of a certificate.
type CertType string

// The uses of a certificate.
const (
	CertServer       = CertType("server")
	CertClient       = CertType("client")
	CertServerClient = CertType("serverclient")
)

// Rotation decides what happens to the old secret when a new one replaces it.
type Rotation string

const (
	// InPlace drops the old secret.
	InPlace = Rotation("inPlace")
	// KeepOld retains the old secret, in bundles and for its remaining users, until the request
	// ends that.
	KeepOld = Rotation("keepOld")
)

// User is a user of a static token file.
type User struct {
	Username string   `json:"username"`
	UserID   string   `json:"userID,omitempty"`
	Groups   []string `json:"groups,omitempty"`
}

// Config is a request for a secret, as a component declares it. The kind decides which fields
// apply.
type Config struct {
	// Name is the name of the request; the Secret's name starts with it.
	Name string `json:"name,omitempty"`
	Kind Kind   `json:"kind"`

	// ca, certificate
	CommonName   string   `json:"commonName,omitempty"`
	Organization []string `json:"organization,omitempty"`
	DNSNames     []string `json:"dnsNames,omitempty"`
	IPAddresses  []string `json:"ipAddresses,omitempty"`
	CertType     CertType `json:"certType,omitempty"`
	// SigningCA is the name of a request of kind ca. While an old CA exists, it signs server
	// certificates, because clients may not know the new one yet. The current CA signs client
	// certificates.
	SigningCA string `json:"signingCA,omitempty"`
	// UseCurrentCA and UseOldCA override that choice.
	UseCurrentCA bool `json:"useCurrentCA,omitempty"`
	UseOldCA     bool `json:"useOldCA,omitempty"`
	// Validity is 10 years for certificates by default, unlimited for passwords.
	Validity *metav1.Duration `json:"validity,omitempty"`
	// SkipPublishingCACertificate omits ca.crt.
	SkipPublishingCACertificate bool `json:"skipPublishingCACertificate,omitempty"`
	// IncludeCACertificateInServerChain appends the CA to tls.crt of a server.
	IncludeCACertificateInServerChain bool `json:"includeCACertificateInServerChain,omitempty"`
	// RenewAfterValidityPercentage is the share of its validity after which a secret is renewed;
	// the default is 80.
	RenewAfterValidityPercentage int `json:"renewAfterValidityPercentage,omitempty"`

	// Bits is the length of an RSA key of kind rsaPrivateKey or sshKeypair; the default is 4096.
	// Certificates use 3072.
	Bits int `json:"bits,omitempty"`

	// Provider is the provider of an encryption key: aescbc (default), aesgcm or secretbox.
	Provider string `json:"provider,omitempty"`

	// Users are the users of a static token file.
	Users []User `json:"users,omitempty"`

	// Username (default admin) and PasswordLength (default 32) of basic authentication.
	Username       string `json:"username,omitempty"`
	PasswordLength int    `json:"passwordLength,omitempty"`

	// kubeconfig. CA is the name of a request of kind ca, whose bundle is embedded; CAFile is a
	// path instead. The user is a TokenFile, or a ClientCertificate: the name of a request that is
	// embedded.
	ContextName       string `json:"contextName,omitempty"`
	Server            string `json:"server,omitempty"`
	CA                string `json:"ca,omitempty"`
	CAFile            string `json:"caFile,omitempty"`
	TokenFile         string `json:"tokenFile,omitempty"`
	ClientCertificate string `json:"clientCertificate,omitempty"`
	Namespace         string `json:"namespace,omitempty"`

	// etcdEncryptionConfiguration. Key is the name of a request of kind etcdEncryptionKey.
	// Resources are encrypted; EncryptedResources that are not in Resources remain readable. During
	// a rotation the old key encrypts new data if EncryptWithCurrentKey (default true) is false.
	Key                   string   `json:"key,omitempty"`
	Resources             []string `json:"resources,omitempty"`
	EncryptedResources    []string `json:"encryptedResources,omitempty"`
	EncryptWithCurrentKey *bool    `json:"encryptWithCurrentKey,omitempty"`

	// workloadIdentityDocuments. Key is the name of a request of kind rsaPrivateKey. Issuer is the
	// issuer URL of the tokens that it signs.
	Issuer string `json:"issuer,omitempty"`

	// Rotation is inPlace by default.
	Rotation Rotation `json:"rotation,omitempty"`
	// IgnoreOldSecrets drops the old secret at once (the phase Completing of a rotation),
	// IgnoreOldSecretsAfter when the current one reaches that age.
	IgnoreOldSecrets      bool             `json:"ignoreOldSecrets,omitempty"`
	IgnoreOldSecretsAfter *metav1.Duration `json:"ignoreOldSecretsAfter,omitempty"`
	// Persist marks secrets that move with a shoot's control plane (ShootState).
	Persist bool `json:"persist,omitempty"`
	// Labels are added to the Secret besides those of the manager.
	Labels map[string]string `json:"labels,omitempty"`
}

// ParseRequests parses the requests of a component by name; the result is sorted by name. Fields
// that are unknown, or do not apply to the kind, are errors that name the component. It reports all
// errors.
func ParseRequests(component string, requests map[string]json.RawMessage) ([]Config, error) {
	var (
		out  []Config
		errs []error
	)
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		c, err := ParseConfig(component, name, requests[name])
		if err != nil {
			errs = append(errs, err)
			continue
		}
		out = append(out, c)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return out, nil
}

// ParseConfig parses and validates one request.
func ParseConfig(component, name string, raw []byte) (Config, error) {
	where := fmt.Sprintf("component %s: secret %q", component, name)
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return Config{}, fmt.Errorf("%s: a request is an object with a kind: %w", where, err)
	}
	var c Config
	known := fieldNames()
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(known, field) {
			return Config{}, fmt.Errorf("%s: unknown field %q", where, field)
		}
	}
	if err := json.NewDecoder(bytes.NewReader(raw)).Decode(&c); err != nil {
		return Config{}, fmt.Errorf("%s: %w", where, err)
	}
	if c.Name != "" && c.Name != name {
		return Config{}, fmt.Errorf("%s: the request has the name %q", where, c.Name)
	}
	c.Name = name
	if allowed, ok := fieldsOf(c.Kind); ok {
		for _, field := range slices.Sorted(maps.Keys(fields)) {
			if !slices.Contains(allowed, field) {
				return Config{}, fmt.Errorf("%s: field %q does not apply to kind %s", where, field, c.Kind)
			}
		}
	}
	if err := c.Validate(); err != nil {
		return Config{}, fmt.Errorf("component %s: %w", component, err)
	}
	return c, nil
}

// Dedupe merges requests with the same name. They must be equal.
func Dedupe(configs []Config) ([]Config, error) {
	seen := map[string]Config{}
	var out []Config
	for _, c := range configs {
		if other, ok := seen[c.Name]; ok {
			if !reflect.DeepEqual(other, c) {
				return nil, fmt.Errorf("secret %q is requested twice, in different ways", c.Name)
			}
			continue
		}
		seen[c.Name] = c
		out = append(out, c)
	}
	return out, nil
}

// dependencies returns the names of the requests that must be fulfilled first.
func (c Config) dependencies() []string {
	var out []string
	for _, name := range []string{c.SigningCA, c.CA, c.ClientCertificate, c.Key} {
		if name != "" {
			out = append(out, name)
		}
	}
	return out
}
