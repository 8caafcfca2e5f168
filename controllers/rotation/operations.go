package rotation

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

// operation is an operation on a Garden that an annotation requests (gardener:
// pkg/apis/operator/v1alpha1/types_garden.go, constants of operations).
type operation struct {
	of        []Kind
	completes bool
}

var twoSteps = []Kind{CertificateAuthorities, ServiceAccountKey, ETCDEncryptionKey, WorkloadIdentityKey}

var operations = map[string]operation{
	"rotate-credentials-start":              {of: append(slices.Clone(twoSteps), Observability)},
	"rotate-credentials-complete":           {of: twoSteps, completes: true},
	"rotate-ca-start":                       {of: []Kind{CertificateAuthorities}},
	"rotate-ca-complete":                    {of: []Kind{CertificateAuthorities}, completes: true},
	"rotate-serviceaccount-key-start":       {of: []Kind{ServiceAccountKey}},
	"rotate-serviceaccount-key-complete":    {of: []Kind{ServiceAccountKey}, completes: true},
	"rotate-etcd-encryption-key":            {of: []Kind{ETCDEncryptionKey}},
	"rotate-etcd-encryption-key-start":      {of: []Kind{ETCDEncryptionKey}},
	"rotate-etcd-encryption-key-complete":   {of: []Kind{ETCDEncryptionKey}, completes: true},
	"rotate-observability-credentials":      {of: []Kind{Observability}},
	"rotate-workload-identity-key-start":    {of: []Kind{WorkloadIdentityKey}},
	"rotate-workload-identity-key-complete": {of: []Kind{WorkloadIdentityKey}, completes: true},
}

// oneStepSince is the minor version of Kubernetes 1 from which the encryption key is rotated in one
// step only (gardener: pkg/api/operator/v1alpha1/validation/garden.go).
const oneStepSince = 34

// Begin starts operations, separated by ';' as in the annotation. minor is the version of the API
// server, Kubernetes 1.minor. An impossible operation is an error; the others still start. An
// operation that is already under way is not started again.
func (s State) Begin(asked string, minor int, now metav1.Time) (State, error) {
	out := s.clone()
	var problems []error
	for name := range strings.SplitSeq(asked, ";") {
		name = strings.TrimSpace(name)
		op, known := operations[name]
		switch {
		case name == "" || name == "reconcile":
		case !known:
			problems = append(problems, fmt.Errorf("there is no operation %q on a Garden", name))
		default:
			problems = append(problems, s.begin(out, name, op, minor, now))
		}
	}
	return out, errors.Join(problems...)
}

// standing describes the phase of a rotation.
func standing(phase gardencorev1beta1.CredentialsRotationPhase) string {
	if phase == "" {
		return "none was started yet"
	}
	return fmt.Sprintf("it is %q", phase)
}

// begin starts all rotations of one operation, or none.
func (s State) begin(out State, name string, op operation, minor int, now metav1.Time) error {
	oneStep := minor >= oneStepSince
	whole := name == "rotate-etcd-encryption-key" || name == "rotate-credentials-start" && oneStep
	var begin []Kind
	for _, k := range op.of {
		phase := s.Phase(k)
		switch {
		case k == Observability:
			begin = append(begin, k)
		case op.completes && (phase == gardencorev1beta1.RotationCompleting || k == ETCDEncryptionKey && oneStep && len(op.of) > 1):
		case op.completes && phase != gardencorev1beta1.RotationPrepared:
			return fmt.Errorf("%s: %s has to be %s before; %s", name, k, gardencorev1beta1.RotationPrepared, standing(phase))
		case op.completes:
			begin = append(begin, k)
		case phase == gardencorev1beta1.RotationPreparing:
		case phase != "" && phase != gardencorev1beta1.RotationCompleted:
			return fmt.Errorf("%s: the rotation of %s before it has to be %s; it is %q", name, k, gardencorev1beta1.RotationCompleted, phase)
		default:
			begin = append(begin, k)
		}
	}
	for _, k := range begin {
		if op.completes {
			out.complete(k, now)
		} else {
			out.start(k, now, k == ETCDEncryptionKey && whole)
		}
	}
	return nil
}

// BeginForProvider starts a rotation of the encryption key if the declared provider differs from
// the one in etcd: each provider has its own key. The rotation completes by itself. Nothing starts
// while the state of etcd is unknown or a rotation is under way.
func (s State) BeginForProvider(declared string, now metav1.Time) State {
	phase := s.Phase(ETCDEncryptionKey)
	if s.EncryptionAtRest == nil || s.EncryptionAtRest.Provider.Type == "" || string(s.EncryptionAtRest.Provider.Type) == declared ||
		phase != "" && phase != gardencorev1beta1.RotationCompleted {
		return s
	}
	out := s.clone()
	out.start(ETCDEncryptionKey, now, true)
	return out
}
