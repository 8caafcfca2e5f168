// SPDX-License-Identifier: Apache-2.0

package rotation

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

// Kind is a kind of credentials, named like its field of status.credentials.rotation.
type Kind string

// The kinds that a Garden has.
const (
	CertificateAuthorities Kind = "certificateAuthorities"
	ServiceAccountKey      Kind = "serviceAccountKey"
	ETCDEncryptionKey      Kind = "etcdEncryptionKey"
	Observability          Kind = "observability"
	WorkloadIdentityKey    Kind = "workloadIdentityKey"
)

// Rotation is the state of one kind. Observability has no phases: new passwords are valid at once.
type Rotation struct {
	Phase gardencorev1beta1.CredentialsRotationPhase `json:"phase,omitempty"`

	gardencorev1beta1.RotationTimes `json:",inline"`

	AutoCompleteAfterPrepared *bool `json:"autoCompleteAfterPrepared,omitempty"`
}

// State is status.credentials.
type State struct {
	Rotation         map[Kind]Rotation                   `json:"rotation,omitempty"`
	EncryptionAtRest *gardencorev1beta1.EncryptionAtRest `json:"encryptionAtRest,omitempty"`
}

// ReadState decodes the state from the status of an object.
func ReadState(status map[string]any) (State, error) {
	var out State
	raw, err := json.Marshal(status["credentials"])
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	if err != nil {
		return State{}, fmt.Errorf("read status.credentials: %w", err)
	}
	return out, nil
}

func (s State) clone() State {
	out := State{Rotation: maps.Clone(s.Rotation), EncryptionAtRest: s.EncryptionAtRest}
	if out.Rotation == nil {
		out.Rotation = map[Kind]Rotation{}
	}
	return out
}

// Phase returns the phase of a kind; the result is empty if it was never rotated.
func (s State) Phase(k Kind) gardencorev1beta1.CredentialsRotationPhase { return s.Rotation[k].Phase }

// IsUnderWay reports whether reconciliations have to run a step of a rotation.
func (s State) IsUnderWay() bool {
	for _, r := range s.Rotation {
		if r.Phase == gardencorev1beta1.RotationPreparing || r.Phase == gardencorev1beta1.RotationCompleting {
			return true
		}
	}
	return false
}

// lastStart returns the start of the last rotation.
func (r Rotation) lastStart() time.Time {
	if r.LastInitiationTime == nil {
		return time.Time{}
	}
	return r.LastInitiationTime.Time
}

// startRotation begins the first step of a rotation.
func (s State) startRotation(k Kind, now metav1.Time, completesItself bool) {
	r := s.Rotation[k]
	r.LastInitiationTime, r.LastInitiationFinishedTime, r.LastCompletionTriggeredTime = &now, nil, nil
	r.AutoCompleteAfterPrepared = nil
	if completesItself {
		r.AutoCompleteAfterPrepared = new(true)
	}
	if k != Observability {
		r.Phase = gardencorev1beta1.RotationPreparing
	}
	s.Rotation[k] = r
}

// startCompletion begins the second step of a rotation.
func (s State) startCompletion(k Kind, now metav1.Time) {
	r := s.Rotation[k]
	r.Phase, r.LastCompletionTriggeredTime = gardencorev1beta1.RotationCompleting, &now
	s.Rotation[k] = r
}

// FinishSteps records that a reconciliation has completed all steps that were under way. It returns
// true if a second reconciliation has to follow at once, for rotations that complete automatically.
func (s State) FinishSteps(now metav1.Time) (State, bool) {
	out, again := s.clone(), false
	for _, k := range slices.Sorted(maps.Keys(s.Rotation)) {
		r := s.Rotation[k]
		switch {
		case k == Observability:
			if s.HasNewPasswords() {
				r.LastCompletionTime = &now
			}
		case r.Phase == gardencorev1beta1.RotationPreparing:
			r.Phase, r.LastInitiationFinishedTime = gardencorev1beta1.RotationPrepared, &now
			if r.AutoCompleteAfterPrepared != nil && *r.AutoCompleteAfterPrepared {
				r.Phase, r.LastCompletionTriggeredTime, again = gardencorev1beta1.RotationCompleting, &now, true
			}
		case r.Phase == gardencorev1beta1.RotationCompleting:
			r.Phase, r.LastCompletionTime = gardencorev1beta1.RotationCompleted, &now
			r.LastInitiationFinishedTime, r.LastCompletionTriggeredTime, r.AutoCompleteAfterPrepared = nil, nil, nil
		}
		out.Rotation[k] = r
	}
	return out, again
}
