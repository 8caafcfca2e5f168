package rotation

import (
	"time"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/secrets"
)

// of are the requests to the secrets manager that rotate with a kind; what they sign and derive follows by itself.
// (gardener: pkg/operator/controller/garden/garden/components.go, caCertConfigurations and lastSecretRotationStartTimes)
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

// Requests are those of the components as the rotations want them: old secrets are dropped by the second step, and data is written with the old
// key for as long as not every API server reads the new one (populated).
func (s State) Requests(configs []secrets.Config, populated bool) []secrets.Config {
	ignored := map[string]bool{}
	for kind, names := range of {
		for _, name := range names {
			ignored[name] = s.Phase(kind) == gardencorev1beta1.RotationCompleting
		}
	}
	out := make([]secrets.Config, len(configs))
	for i, c := range configs {
		if c.Rotation == secrets.KeepOld && ignored[c.Name] {
			c.IgnoreOldSecrets = true
		}
		if c.Kind == secrets.KindEtcdEncryptionConfiguration && s.Phase(ETCDEncryptionKey) == gardencorev1beta1.RotationPreparing {
			c.EncryptWithCurrentKey = &populated
		}
		out[i] = c
	}
	return out
}
