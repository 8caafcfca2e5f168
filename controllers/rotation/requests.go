package rotation

import (
	"time"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/secrets"
)

// of are the requests to the secrets manager that rotate with a kind; what they sign and derive
// follows by itself. (gardener: pkg/operator/controller/garden/garden/components.go,
// caCertConfigurations and lastSecretRotationStartTimes)
var of = map[Kind][]string{
	CertificateAuthorities: {
		"ca", "ca-client", "ca-etcd", "ca-etcd-peer", "ca-front-proxy", "ca-gardener",
		// Static tokens have no rotation of their own.
		"kube-apiserver-static-token",
	},
	ServiceAccountKey:   {"service-account-key"},
	ETCDEncryptionKey:   {"kube-apiserver-etcd-encryption-key", "gardener-apiserver-etcd-encryption-key"},
	Observability:       {"observability-ingress", "global-observability-ingress"},
	WorkloadIdentityKey: {"gardener-apiserver-workload-identity-signing-key"},
}

// Times say when the secrets were asked for anew, by the names of requests.
func (s State) Times() map[string]time.Time {
	out := map[string]time.Time{}
	for kind, names := range of {
		for _, name := range names {
			out[name] = s.Rotation[kind].initiated()
		}
	}
	return out
}

// Progress is what the API servers say of a rotation that takes several rounds of them.
type Progress struct {
	// Populated: all read what the new encryption key writes, so that it may write.
	Populated bool
	// Resigned: all servers have certificates of the new CAs, so that nobody needs the old ones any
	// more.
	Resigned bool
}

// Requests are those of the components as the rotations want them: old secrets are dropped by the
// second step, and data is written with the old key for as long as not every API server reads the
// new one. CAs are dropped in two rounds: who talks to a server that has not been started anew yet
// would not know it otherwise.
func (s State) Requests(configs []secrets.Config, p Progress) []secrets.Config {
	ignored, signing := map[string]bool{}, map[string]bool{}
	for kind, names := range of {
		completing := s.Phase(kind) == gardencorev1beta1.RotationCompleting
		for _, name := range names {
			ignored[name] = completing && (kind != CertificateAuthorities || p.Resigned)
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
			c.EncryptWithCurrentKey = &p.Populated
		}
		out[i] = c
	}
	return out
}
