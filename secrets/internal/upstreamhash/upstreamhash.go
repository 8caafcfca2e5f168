// SPDX-License-Identifier: Apache-2.0

// Package upstreamhash computes the checksum of a Secret's configuration, in the format of
// Gardener's label. The checksum determines the Secret's name, so it finds the secrets of an
// existing landscape.
//
// The checksum (hashstructure, format 2, zero values ignored) covers the names of Go types and
// fields. Hence these types have the names and fields of upstream's pkg/utils/secrets. Do not
// rename or extend them.
package upstreamhash

import (
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/gohugoio/hashstructure"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
)

// CertType is ca, server, client or both.
type CertType string

// Certificate is the signing CA. Upstream's type also has keys and parsed certificates and hashes
// them, which ties names to the Go release. The name suffices, because the CA's content has its own
// checksum. So certificates of an existing landscape are reissued once, under the same CAs.
type Certificate struct{ Name string }

// CertificateSecretConfig is the configuration of CAs and certificates.
type CertificateSecretConfig struct {
	Name                              string
	CommonName                        string
	Organization                      []string
	DNSNames                          []string
	IPAddresses                       []net.IP
	CertType                          CertType
	SigningCA                         *Certificate
	PKCS                              int
	Validity                          *time.Duration
	SkipPublishingCACertificate       bool
	IncludeCACertificateInServerChain bool
}

// CertificateBundleSecretConfig is the configuration of a bundle of CA certificates.
type CertificateBundleSecretConfig struct {
	Name            string
	CertificatePEMs [][]byte
}

// RSAPrivateKeyBundleSecretConfig is the configuration of a bundle of private keys.
type RSAPrivateKeyBundleSecretConfig struct {
	Name           string
	PrivateKeyPEMs [][]byte
}

// RSASecretConfig is the configuration of RSA keys and SSH key pairs.
type RSASecretConfig struct {
	Name       string
	Bits       int
	UsedForSSH bool
}

// ETCDEncryptionKeySecretConfig is the configuration of encryption keys. Provider is empty for
// aescbc.
type ETCDEncryptionKeySecretConfig struct {
	Provider     string
	Name         string
	SecretLength int
}

// TokenConfig is one user of a static token file.
type TokenConfig struct {
	Username string
	UserID   string
	Groups   []string
}

// StaticTokenSecretConfig is the configuration of a static token file. Tokens are keyed by the
// user's name.
type StaticTokenSecretConfig struct {
	Name   string
	Tokens map[string]TokenConfig
}

// BasicAuthSecretConfig is the configuration of a user with a password. Format is always "normal".
type BasicAuthSecretConfig struct {
	Name           string
	Format         string
	Username       string
	PasswordLength int
}

// KubeconfigSecretConfig is the configuration of a kubeconfig.
type KubeconfigSecretConfig struct {
	Name        string
	ContextName string
	Cluster     clientcmdv1.Cluster
	AuthInfo    clientcmdv1.AuthInfo
	Namespace   string
}

func Checksum(config any) (string, error) {
	sum, err := hashstructure.Hash(config, &hashstructure.HashOptions{IgnoreZeroValue: true})
	if err != nil {
		return "", fmt.Errorf("computing the checksum of a %T: %w", config, err)
	}
	return strconv.FormatUint(sum, 10), nil
}
