// Package upstreamhash computes the checksum that Gardener puts on a generated Secret for its
// configuration. It decides the Secret's name, so reproducing it is what finds the secrets of an
// existing landscape again.
//
// The checksum (hashstructure, format 2, zero values ignored) covers the names of the Go types and
// fields, hence these types are named and shaped as upstream's in pkg/utils/secrets. Do not rename
// or extend them.
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

// Certificate stands for the signing CA. Upstream's holds keys and parsed certificates here and
// hashes them, which ties names to the Go release; the name is enough, because the CA's content has
// a checksum of its own. So certificates of an existing landscape are issued anew once, under CAs
// that are kept.
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

// Of is the checksum of one of the configurations above, as the label has it.
func Of(config any) (string, error) {
	sum, err := hashstructure.Hash(config, &hashstructure.HashOptions{IgnoreZeroValue: true})
	if err != nil {
		return "", fmt.Errorf("computing the checksum of a %T: %w", config, err)
	}
	return strconv.FormatUint(sum, 10), nil
}
