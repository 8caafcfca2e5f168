// SPDX-License-Identifier: Apache-2.0

package rotation

import (
	"slices"
	"time"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/secrets"
)

var requestNames = map[Kind][]string{
	// Requests to the secrets manager that rotate with a kind; derived and signed secrets follow.
	// (gardener: pkg/operator/controller/garden/garden/components.go, caCertConfigurations and
	// lastSecretRotationStartTimes)
	CertificateAuthorities: {
		"ca", "ca-client", "ca-etcd", "ca-etcd-peer", "ca-front-proxy", "ca-gardener",
		// Static tokens have no separate rotation.
		"kube-apiserver-static-token",
	},
	ServiceAccountKey:   {"service-account-key"},
	ETCDEncryptionKey:   {"kube-apiserver-etcd-encryption-key", "gardener-apiserver-etcd-encryption-key"},
	Observability:       {"observability-ingress", "global-observability-ingress"},
	WorkloadIdentityKey: {"gardener-apiserver-workload-identity-signing-key"},
}

// RotationTimes returns the time of the last rotation by names of requests.
func (s State) RotationTimes() map[string]time.Time {
	out := map[string]time.Time{}
	for kind, names := range requestNames {
		for _, name := range names {
			out[name] = s.Rotation[kind].lastStart()
		}
	}
	return out
}

// Progress is the progress of API servers in a rotation with several rounds.
type Progress struct {
	// AllReadNewKey reports whether all API servers read data of the new encryption key, so that it
	// may write.
	AllReadNewKey bool
	// AllHaveNewCertificates reports whether all servers have certificates of the new CAs, so the
	// old CAs are no longer needed.
	AllHaveNewCertificates bool
}

// AdaptRequests adapts the requests of components to the rotations. The second step drops old
// secrets. The old key encrypts data until every API server reads the new one. CAs are dropped in
// two rounds: otherwise clients would reject servers that were not restarted yet.
func (s State) AdaptRequests(configs []secrets.Config, p Progress) []secrets.Config {
	ignored, signing := map[string]bool{}, map[string]bool{}
	for kind, names := range requestNames {
		completing := s.Phase(kind) == gardencorev1beta1.RotationCompleting
		for _, name := range names {
			ignored[name] = completing && (kind != CertificateAuthorities || p.AllHaveNewCertificates)
			signing[name] = completing && kind == CertificateAuthorities
		}
	}
	out := make([]secrets.Config, len(configs))
	for i, c := range configs {
		if c.Rotation == secrets.KeepOld && ignored[c.Name] {
			c.IgnoreOldSecrets = true
		}
		if c.Kind == secrets.KindCertificate && signing[c.SigningCA] {
			c.UseCurrentCA, c.UseOldCA = true, false
		}
		if c.Kind == secrets.KindEtcdEncryptionConfiguration && s.Phase(ETCDEncryptionKey) == gardencorev1beta1.RotationPreparing {
			c.EncryptWithCurrentKey = &p.AllReadNewKey
		}
		out[i] = c
	}
	return out
}

// EncryptedResources returns the resources that the API servers encrypt now or did before: all
// their objects have to be rewritten.
func EncryptedResources(configs []secrets.Config) []string {
	var out []string
	for _, c := range configs {
		if c.Kind == secrets.KindEtcdEncryptionConfiguration {
			out = append(append(out, c.Resources...), c.EncryptedResources...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
