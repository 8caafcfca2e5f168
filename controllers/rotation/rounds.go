package rotation

import (
	"fmt"
	"strings"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

// Round is one pass of the flow among those that the current rotation steps need. The zero value
// means that none is under way.
type Round struct {
	Number, Of int
	// Doing describes the work of this round.
	Doing string
}

// String describes the round for people; empty for none.
func (r Round) String() string {
	switch {
	case r.Of == 0:
		return ""
	case r.Of == 1:
		return "rotation of credentials: " + r.Doing
	}
	return fmt.Sprintf("rotation of credentials, round %d of %d: %s", r.Number, r.Of, r.Doing)
}

// Percent converts the percentage of this round to that of all rounds.
func (r Round) Percent(ofThis int) int {
	if r.Of == 0 {
		return ofThis
	}
	return ((r.Number-1)*100 + ofThis) / r.Of
}

// left returns the number of remaining rounds, including this one.
func (r Round) left() int { return r.Of - r.Number + 1 }

// Next returns the round after another one of the same reconciliation, or the first for none. It
// continues the count of an interrupted reconciliation. changed means that the declared encryption
// in etcd differs from the actual one.
func (r Round) Next(s State, p Progress, changed bool) Round {
	now := s.round(p, changed)
	switch {
	case r.Of == 0:
		return now
	case now.Of == 0: // the configuration no longer has the resources that were rewritten
		now = Round{Number: 1, Of: 1, Doing: "API servers forget what is needed no more"}
	}
	return Round{Number: r.Number + 1, Of: r.Number + now.left(), Doing: now.Doing}
}

func (s State) round(p Progress, changed bool) Round {
	var out Round
	var rounds []Round
	for _, k := range []Kind{CertificateAuthorities, ServiceAccountKey, ETCDEncryptionKey, WorkloadIdentityKey, Observability} {
		rounds = append(rounds, s.roundOf(k, p))
	}
	if changed && s.EncryptionAtRest != nil {
		rounds = append(rounds, s.roundOfChange(p))
	}
	for _, r := range rounds {
		if r.Of > 0 && (out.Of == 0 || r.left() > out.left() || r.left() == out.left() && r.Of > out.Of) {
			out = r
		}
	}
	var doing []string
	for _, r := range rounds {
		// one-round work was done in the first round
		if r.Of > 0 && (out.Number == 1 || r.Number > 1) {
			doing = append(doing, r.Doing)
		}
	}
	out.Doing = strings.Join(doing, ", ")
	return out
}

// roundOfChange returns the round of a changed encryption declaration. Its rewrite needs a round in
// which no other rotation has to come first.
func (s State) roundOfChange(p Progress) Round {
	if s.Phase(ETCDEncryptionKey) == gardencorev1beta1.RotationPreparing && !p.Populated ||
		s.Phase(CertificateAuthorities) == gardencorev1beta1.RotationCompleting && !p.Resigned {
		return Round{Number: 1, Of: 3, Doing: "API servers learn what is to be encrypted"}
	}
	return Round{Number: 1, Of: 2, Doing: "objects are written anew with the encryption that is declared"}
}

// roundOf returns the round of one kind.
func (s State) roundOf(k Kind, p Progress) Round {
	one := func(doing string) Round { return Round{Number: 1, Of: 1, Doing: doing} }
	r := s.Rotation[k]
	preparing, completing := r.Phase == gardencorev1beta1.RotationPreparing, r.Phase == gardencorev1beta1.RotationCompleting
	switch {
	case k == Observability:
		if r.LastInitiationTime != nil && (r.LastCompletionTime == nil || r.LastCompletionTime.Before(r.LastInitiationTime)) {
			return one("new passwords of monitoring")
		}
	case k == ETCDEncryptionKey && (preparing || completing):
		return r.roundOfEncryption(preparing, p.Populated)
	case k == CertificateAuthorities && completing && !p.Resigned:
		return Round{Number: 1, Of: 2, Doing: "servers get certificates of the new CAs"}
	case k == CertificateAuthorities && completing:
		return Round{Number: 2, Of: 2, Doing: "the old CAs go"}
	case preparing:
		return one(introduced[k])
	case completing:
		return one(dropped[k])
	}
	return Round{}
}

var (
	introduced = map[Kind]string{
		CertificateAuthorities: "new CAs beside the old ones",
		ServiceAccountKey:      "a new key of ServiceAccounts",
		WorkloadIdentityKey:    "a new key of workload identities",
	}
	dropped = map[Kind]string{
		ServiceAccountKey:   "the old key of ServiceAccounts goes",
		WorkloadIdentityKey: "the old key of workload identities goes",
	}
)

func (r Rotation) roundOfEncryption(preparing, populated bool) Round {
	itself := r.AutoCompleteAfterPrepared != nil && *r.AutoCompleteAfterPrepared
	of := 2
	if itself {
		of = 3
	}
	switch {
	case preparing && !populated:
		return Round{Number: 1, Of: of, Doing: "API servers learn the new encryption key"}
	case preparing:
		return Round{Number: 2, Of: of, Doing: "objects are written anew with the new encryption key"}
	case itself:
		return Round{Number: 3, Of: 3, Doing: "the old encryption key goes"}
	}
	return Round{Number: 1, Of: 1, Doing: "the old encryption key goes"}
}

// Told describes unfinished rotations for people, and the operations that they wait for.
func (s State) Told() []string {
	byPhase, waits := map[gardencorev1beta1.CredentialsRotationPhase][]string{}, []string{}
	for _, k := range twoSteps {
		phase := s.Phase(k)
		byPhase[phase] = append(byPhase[phase], string(k))
		if phase == gardencorev1beta1.RotationPrepared {
			waits = append(waits, completedBy[k])
		}
	}
	var out []string
	for _, phase := range []gardencorev1beta1.CredentialsRotationPhase{gardencorev1beta1.RotationPreparing, gardencorev1beta1.RotationCompleting} {
		if of := byPhase[phase]; len(of) > 0 {
			out = append(out, fmt.Sprintf("rotation of %s: %s, which goes on by itself", strings.Join(of, ", "), phase))
		}
	}
	if of := byPhase[gardencorev1beta1.RotationPrepared]; len(of) > 0 {
		next := strings.Join(waits, ", ")
		if s.allWait() {
			next = "rotate-credentials-complete"
		}
		out = append(out, fmt.Sprintf("rotation of %s: %s; when all clients have changed over, ask for %s", strings.Join(of, ", "), gardencorev1beta1.RotationPrepared, next))
	}
	return out
}

// allWait reports whether all second steps can be requested at once. The encryption key may have
// completed by itself.
func (s State) allWait() bool {
	for _, k := range twoSteps {
		done := k == ETCDEncryptionKey && s.Phase(k) == gardencorev1beta1.RotationCompleted
		if s.Phase(k) != gardencorev1beta1.RotationPrepared && !done {
			return false
		}
	}
	return true
}

// completedBy maps each kind to the operation that starts its second step.
var completedBy = map[Kind]string{
	CertificateAuthorities: "rotate-ca-complete", ServiceAccountKey: "rotate-serviceaccount-key-complete",
	ETCDEncryptionKey: "rotate-etcd-encryption-key-complete", WorkloadIdentityKey: "rotate-workload-identity-key-complete",
}
