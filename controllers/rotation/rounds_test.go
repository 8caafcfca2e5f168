// SPDX-License-Identifier: Apache-2.0

package rotation

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

// TestRounds checks the number and the total of the rounds that people see.
func TestRounds(t *testing.T) {
	known := &gardencorev1beta1.EncryptionAtRest{}
	for name, c := range map[string]struct {
		before  State
		asked   string
		minor   int
		changed bool
		want    []string
	}{
		"nothing":                      {before: State{EncryptionAtRest: known}, minor: 34},
		"what is in etcd is not known": {changed: true, minor: 34},
		"all is started": {asked: "rotate-credentials-start", minor: 34, want: []string{
			"rotation of credentials, round 1 of 3: new CAs beside the old ones, a new key of ServiceAccounts, API servers accept the new encryption key, a new key of workload identities, new monitoring passwords",
			"rotation of credentials, round 2 of 3: objects are rewritten with the new encryption key",
			"rotation of credentials, round 3 of 3: the old encryption key is removed",
		}},
		"all is started, where people end the rotation of the encryption key": {asked: "rotate-credentials-start", minor: 33, want: []string{
			"rotation of credentials, round 1 of 2: new CAs beside the old ones, a new key of ServiceAccounts, API servers accept the new encryption key, a new key of workload identities, new monitoring passwords",
			"rotation of credentials, round 2 of 2: objects are rewritten with the new encryption key",
		}},
		"all is completed": {before: allInPhase(prepared).state(), asked: "rotate-credentials-complete", minor: 33, want: []string{
			"rotation of credentials, round 1 of 2: servers get certificates of the new CAs, the old key of ServiceAccounts is removed, the old encryption key is removed, the old key of workload identities is removed",
			"rotation of credentials, round 2 of 2: the old CAs are removed",
		}},
		"CAs":       {asked: "rotate-ca-start", minor: 34, want: []string{"rotation of credentials: new CAs beside the old ones"}},
		"passwords": {asked: "rotate-observability-credentials", minor: 34, want: []string{"rotation of credentials: new monitoring passwords"}},
		"the encryption key": {asked: "rotate-etcd-encryption-key", minor: 34, want: []string{
			"rotation of credentials, round 1 of 3: API servers accept the new encryption key",
			"rotation of credentials, round 2 of 3: objects are rewritten with the new encryption key",
			"rotation of credentials, round 3 of 3: the old encryption key is removed",
		}},
		"another resource is encrypted": {before: State{EncryptionAtRest: known}, changed: true, minor: 34, want: []string{
			"rotation of credentials, round 1 of 2: objects are rewritten with the declared encryption",
			"rotation of credentials, round 2 of 2: API servers drop unused encryption settings",
		}},
		"another resource is encrypted while CAs are completed": {
			before: State{EncryptionAtRest: known, Rotation: phases{CertificateAuthorities: prepared}.state().Rotation}, asked: "rotate-ca-complete", changed: true, minor: 34, want: []string{
				"rotation of credentials, round 1 of 3: servers get certificates of the new CAs, API servers read the declared encryption",
				"rotation of credentials, round 2 of 3: the old CAs are removed, objects are rewritten with the declared encryption",
				"rotation of credentials, round 3 of 3: API servers drop unused encryption settings",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := c.before.BeginOperations(c.asked, c.minor, minuteTime(1))
			require.NoError(t, err)
			var r Round
			var p Progress
			var told []string
			percent, changed := -1, c.changed
			// Simulate the rounds of a reconciliation.
			for {
				r = r.Next(s, p, changed)
				if r.String() != "" {
					told = append(told, r.String())
					assert.LessOrEqual(t, percent, r.Percent(0), "it never goes back")
					percent = r.Percent(99)
				}
				if next := p.afterRound(s); next != p {
					p = next
					continue
				}
				again := changed && s.EncryptionAtRest != nil
				after, further := s.FinishSteps(minuteTime(2))
				s, p, changed = after, Progress{}, false
				if !again && !further {
					break
				}
			}
			assert.Equal(t, c.want, told)
			if len(told) > 0 {
				assert.GreaterOrEqual(t, percent, 99-1)
			}
		})
	}
}

// afterRound returns the progress of the API servers after a round.
func (p Progress) afterRound(s State) Progress {
	return Progress{
		AllReadNewKey: p.AllReadNewKey || s.Phase(ETCDEncryptionKey) == preparing, AllHaveNewCertificates: p.AllHaveNewCertificates || s.Phase(CertificateAuthorities) == completing,
	}
}

// TestRoundAfterAnInterruption checks that a reconciliation continues the count of an interrupted
// one.
func TestRoundAfterAnInterruption(t *testing.T) {
	s, err := State{}.BeginOperations("rotate-credentials-start", 34, minuteTime(1))
	require.NoError(t, err)
	assert.Equal(t, Round{Number: 2, Total: 3, Task: "objects are rewritten with the new encryption key"}, Round{}.Next(s, Progress{AllReadNewKey: true}, false))
	s, _ = s.FinishSteps(minuteTime(2))
	assert.Equal(t, Round{Number: 3, Total: 3, Task: "the old encryption key is removed"}, Round{}.Next(s, Progress{}, false))
	s = phases{CertificateAuthorities: completing}.state()
	assert.Equal(t, Round{Number: 2, Total: 2, Task: "the old CAs are removed"}, Round{}.Next(s, Progress{AllHaveNewCertificates: true}, false))
	assert.Equal(t, 50, Round{Number: 2, Total: 2}.Percent(0))
	assert.Equal(t, 70, Round{}.Percent(70), "there is none")
}

func TestDescribe(t *testing.T) {
	ended := metav1.NewTime(minuteTime(5).Time)
	for name, c := range map[string]struct {
		state State
		want  []string
	}{
		"nothing":   {},
		"completed": {state: allInPhase(completed).state()},
		"passwords": {state: State{Rotation: map[Kind]Rotation{Observability: {RotationTimes: gardencorev1beta1.RotationTimes{LastCompletionTime: &ended}}}}},
		"preparing": {state: phases{CertificateAuthorities: preparing, ServiceAccountKey: preparing}.state(), want: []string{
			"rotation of certificateAuthorities, serviceAccountKey: Preparing, which continues automatically"}},
		"all wait": {state: allInPhase(prepared).state(), want: []string{
			"rotation of certificateAuthorities, serviceAccountKey, etcdEncryptionKey, workloadIdentityKey: Prepared; when all clients have switched, request rotate-credentials-complete"}},
		"all but the key that completes itself": {state: phases{CertificateAuthorities: prepared, ServiceAccountKey: prepared, WorkloadIdentityKey: prepared, ETCDEncryptionKey: completed}.state(), want: []string{
			"rotation of certificateAuthorities, serviceAccountKey, workloadIdentityKey: Prepared; when all clients have switched, request rotate-credentials-complete"}},
		"some wait": {state: phases{CertificateAuthorities: prepared, ServiceAccountKey: completing}.state(), want: []string{
			"rotation of serviceAccountKey: Completing, which continues automatically",
			"rotation of certificateAuthorities: Prepared; when all clients have switched, request rotate-ca-complete"}},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, c.state.Describe()) })
	}
}
