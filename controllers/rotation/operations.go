// SPDX-License-Identifier: Apache-2.0

package rotation

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

// rotationOperation is an operation on a Garden that an annotation requests (gardener:
// pkg/apis/operator/v1alpha1/types_garden.go, constants of operations).
type rotationOperation struct {
	kinds        []Kind
	isSecondStep bool
}

var twoStepKinds = []Kind{CertificateAuthorities, ServiceAccountKey, ETCDEncryptionKey, WorkloadIdentityKey}

var operations = map[string]rotationOperation{
	"rotate-credentials-start":              {kinds: append(slices.Clone(twoStepKinds), Observability)},
	"rotate-credentials-complete":           {kinds: twoStepKinds, isSecondStep: true},
	"rotate-ca-start":                       {kinds: []Kind{CertificateAuthorities}},
	"rotate-ca-complete":                    {kinds: []Kind{CertificateAuthorities}, isSecondStep: true},
	"rotate-serviceaccount-key-start":       {kinds: []Kind{ServiceAccountKey}},
	"rotate-serviceaccount-key-complete":    {kinds: []Kind{ServiceAccountKey}, isSecondStep: true},
	"rotate-etcd-encryption-key":            {kinds: []Kind{ETCDEncryptionKey}},
	"rotate-etcd-encryption-key-start":      {kinds: []Kind{ETCDEncryptionKey}},
	"rotate-etcd-encryption-key-complete":   {kinds: []Kind{ETCDEncryptionKey}, isSecondStep: true},
	"rotate-observability-credentials":      {kinds: []Kind{Observability}},
	"rotate-workload-identity-key-start":    {kinds: []Kind{WorkloadIdentityKey}},
	"rotate-workload-identity-key-complete": {kinds: []Kind{WorkloadIdentityKey}, isSecondStep: true},
}

// oneStepSince is the minor version of Kubernetes 1 from which the encryption key is rotated in one
// step only (gardener: pkg/api/operator/v1alpha1/validation/garden.go).
const oneStepSince = 34

// BeginOperations starts operations, separated by ';' as in the annotation. minor is the version of
// the API server, Kubernetes 1.minor. An impossible operation is an error; the others still start.
// An operation that is already under way is not started again.
func (s State) BeginOperations(asked string, minor int, now metav1.Time) (State, error) {
	out := s.clone()
	var problems []error
	for name := range strings.SplitSeq(asked, ";") {
		name = strings.TrimSpace(name)
		op, known := operations[name]
		switch {
		case name == "" || name == "reconcile":
		case !known:
			problems = append(problems, fmt.Errorf("a Garden has no operation %q", name))
		default:
			problems = append(problems, s.beginOperation(out, name, op, minor, now))
		}
	}
	return out, errors.Join(problems...)
}

// describePhase describes the phase of a rotation.
func describePhase(phase gardencorev1beta1.CredentialsRotationPhase) string {
	if phase == "" {
		return "none was started yet"
	}
	return fmt.Sprintf("it is %q", phase)
}

// beginOperation starts all rotations of one operation, or none.
func (s State) beginOperation(out State, name string, op rotationOperation, minor int, now metav1.Time) error {
	oneStep := minor >= oneStepSince
	whole := name == "rotate-etcd-encryption-key" || name == "rotate-credentials-start" && oneStep
	var begin []Kind
	for _, k := range op.kinds {
		phase := s.Phase(k)
		switch {
		case k == Observability:
			begin = append(begin, k)
		case op.isSecondStep && (phase == gardencorev1beta1.RotationCompleting || k == ETCDEncryptionKey && oneStep && len(op.kinds) > 1):
		case op.isSecondStep && phase != gardencorev1beta1.RotationPrepared:
			return fmt.Errorf("%s: %s must be %s first; %s", name, k, gardencorev1beta1.RotationPrepared, describePhase(phase))
		case op.isSecondStep:
			begin = append(begin, k)
		case phase == gardencorev1beta1.RotationPreparing:
		case phase != "" && phase != gardencorev1beta1.RotationCompleted:
			return fmt.Errorf("%s: the previous rotation of %s must be %s first; it is %q", name, k, gardencorev1beta1.RotationCompleted, phase)
		default:
			begin = append(begin, k)
		}
	}
	for _, k := range begin {
		if op.isSecondStep {
			out.startCompletion(k, now)
		} else {
			out.startRotation(k, now, k == ETCDEncryptionKey && whole)
		}
	}
	return nil
}

// BeginForProvider starts a rotation of the encryption key if the declared provider differs from
// the one in etcd: each provider has its own key. The rotation completes automatically. Nothing
// starts while the state of etcd is unknown or a rotation is under way.
func (s State) BeginForProvider(declared string, now metav1.Time) State {
	phase := s.Phase(ETCDEncryptionKey)
	if s.EncryptionAtRest == nil || s.EncryptionAtRest.Provider.Type == "" || string(s.EncryptionAtRest.Provider.Type) == declared ||
		phase != "" && phase != gardencorev1beta1.RotationCompleted {
		return s
	}
	out := s.clone()
	out.startRotation(ETCDEncryptionKey, now, true)
	return out
}
