// SPDX-License-Identifier: Apache-2.0

package rotation

import (
	"fmt"
	"strings"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

// Round is one pass of the flow among those that the current rotation steps need. The zero value
// means that none is under way.
type Round struct {
	Number, Total int
	// Task describes the work of this round.
	Task string
}

// String describes the round for people; the result is empty for none.
func (r Round) String() string {
	switch {
	case r.Total == 0:
		return ""
	case r.Total == 1:
		return "rotation of credentials: " + r.Task
	}
	return fmt.Sprintf("rotation of credentials, round %d of %d: %s", r.Number, r.Total, r.Task)
}

// Percent converts the percentage of this round to that of all rounds.
func (r Round) Percent(ofThis int) int {
	if r.Total == 0 {
		return ofThis
	}
	return ((r.Number-1)*100 + ofThis) / r.Total
}

// remaining returns the number of remaining rounds, including this one.
func (r Round) remaining() int { return r.Total - r.Number + 1 }

// Next returns the round after another one of the same reconciliation, or the first for none. It
// continues the count of an interrupted reconciliation. changed means that the declared encryption
// in etcd differs from the actual one.
func (r Round) Next(s State, p Progress, changed bool) Round {
	now := s.currentRound(p, changed)
	switch {
	case r.Total == 0:
		return now
	case now.Total == 0: // the configuration no longer has the resources that were rewritten
		now = Round{Number: 1, Total: 1, Task: "API servers drop unused encryption settings"}
	}
	return Round{Number: r.Number + 1, Total: r.Number + now.remaining(), Task: now.Task}
}

func (s State) currentRound(p Progress, changed bool) Round {
	var out Round
	var rounds []Round
	for _, k := range []Kind{CertificateAuthorities, ServiceAccountKey, ETCDEncryptionKey, WorkloadIdentityKey, Observability} {
		rounds = append(rounds, s.kindRound(k, p))
	}
	if changed && s.EncryptionAtRest != nil {
		rounds = append(rounds, s.encryptionChangeRound(p))
	}
	for _, r := range rounds {
		if r.Total > 0 && (out.Total == 0 || r.remaining() > out.remaining() || r.remaining() == out.remaining() && r.Total > out.Total) {
			out = r
		}
	}
	var doing []string
	for _, r := range rounds {
		// one-round work was done in the first round
		if r.Total > 0 && (out.Number == 1 || r.Number > 1) {
			doing = append(doing, r.Task)
		}
	}
	out.Task = strings.Join(doing, ", ")
	return out
}

// encryptionChangeRound returns the round of a changed encryption declaration. Its rewrite needs a
// round in which no other rotation has to come first.
func (s State) encryptionChangeRound(p Progress) Round {
	if s.Phase(ETCDEncryptionKey) == gardencorev1beta1.RotationPreparing && !p.AllReadNewKey ||
		s.Phase(CertificateAuthorities) == gardencorev1beta1.RotationCompleting && !p.AllHaveNewCertificates {
		return Round{Number: 1, Total: 3, Task: "API servers read the declared encryption"}
	}
	return Round{Number: 1, Total: 2, Task: "objects are rewritten with the declared encryption"}
}

// kindRound returns the round of one kind.
func (s State) kindRound(k Kind, p Progress) Round {
	one := func(doing string) Round { return Round{Number: 1, Total: 1, Task: doing} }
	r := s.Rotation[k]
	preparing, completing := r.Phase == gardencorev1beta1.RotationPreparing, r.Phase == gardencorev1beta1.RotationCompleting
	switch {
	case k == Observability:
		if r.LastInitiationTime != nil && (r.LastCompletionTime == nil || r.LastCompletionTime.Before(r.LastInitiationTime)) {
			return one("new monitoring passwords")
		}
	case k == ETCDEncryptionKey && (preparing || completing):
		return r.encryptionRound(preparing, p.AllReadNewKey)
	case k == CertificateAuthorities && completing && !p.AllHaveNewCertificates:
		return Round{Number: 1, Total: 2, Task: "servers get certificates of the new CAs"}
	case k == CertificateAuthorities && completing:
		return Round{Number: 2, Total: 2, Task: "the old CAs are removed"}
	case preparing:
		return one(firstStepTasks[k])
	case completing:
		return one(secondStepTasks[k])
	}
	return Round{}
}

var (
	firstStepTasks = map[Kind]string{
		CertificateAuthorities: "new CAs beside the old ones",
		ServiceAccountKey:      "a new key of ServiceAccounts",
		WorkloadIdentityKey:    "a new key of workload identities",
	}
	secondStepTasks = map[Kind]string{
		ServiceAccountKey:   "the old key of ServiceAccounts is removed",
		WorkloadIdentityKey: "the old key of workload identities is removed",
	}
)

func (r Rotation) encryptionRound(preparing, populated bool) Round {
	itself := r.AutoCompleteAfterPrepared != nil && *r.AutoCompleteAfterPrepared
	of := 2
	if itself {
		of = 3
	}
	switch {
	case preparing && !populated:
		return Round{Number: 1, Total: of, Task: "API servers accept the new encryption key"}
	case preparing:
		return Round{Number: 2, Total: of, Task: "objects are rewritten with the new encryption key"}
	case itself:
		return Round{Number: 3, Total: 3, Task: "the old encryption key is removed"}
	}
	return Round{Number: 1, Total: 1, Task: "the old encryption key is removed"}
}

// Describe describes unfinished rotations for people, and the operations that they wait for.
func (s State) Describe() []string {
	byPhase, waits := map[gardencorev1beta1.CredentialsRotationPhase][]string{}, []string{}
	for _, k := range twoStepKinds {
		phase := s.Phase(k)
		byPhase[phase] = append(byPhase[phase], string(k))
		if phase == gardencorev1beta1.RotationPrepared {
			waits = append(waits, completeOperations[k])
		}
	}
	var out []string
	for _, phase := range []gardencorev1beta1.CredentialsRotationPhase{gardencorev1beta1.RotationPreparing, gardencorev1beta1.RotationCompleting} {
		if of := byPhase[phase]; len(of) > 0 {
			out = append(out, fmt.Sprintf("rotation of %s: %s, which continues automatically", strings.Join(of, ", "), phase))
		}
	}
	if of := byPhase[gardencorev1beta1.RotationPrepared]; len(of) > 0 {
		next := strings.Join(waits, ", ")
		if s.isAllPrepared() {
			next = "rotate-credentials-complete"
		}
		out = append(out, fmt.Sprintf("rotation of %s: %s; when all clients have switched, request %s", strings.Join(of, ", "), gardencorev1beta1.RotationPrepared, next))
	}
	return out
}

// isAllPrepared reports whether all second steps can be requested at once. The rotation of the
// encryption key may have completed automatically.
func (s State) isAllPrepared() bool {
	for _, k := range twoStepKinds {
		done := k == ETCDEncryptionKey && s.Phase(k) == gardencorev1beta1.RotationCompleted
		if s.Phase(k) != gardencorev1beta1.RotationPrepared && !done {
			return false
		}
	}
	return true
}

// completeOperations maps each kind to the operation that starts its second step.
var completeOperations = map[Kind]string{
	CertificateAuthorities: "rotate-ca-complete", ServiceAccountKey: "rotate-serviceaccount-key-complete",
	ETCDEncryptionKey: "rotate-etcd-encryption-key-complete", WorkloadIdentityKey: "rotate-workload-identity-key-complete",
}
