// SPDX-License-Identifier: Apache-2.0

package rotation

import (
	"encoding/json"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/secrets"
)

const (
	preparing  = gardencorev1beta1.RotationPreparing
	prepared   = gardencorev1beta1.RotationPrepared
	completing = gardencorev1beta1.RotationCompleting
	completed  = gardencorev1beta1.RotationCompleted
)

func minuteTime(minute int) metav1.Time {
	return metav1.NewTime(time.Date(2026, 3, 1, 12, minute, 0, 0, time.UTC))
}

type phases map[Kind]gardencorev1beta1.CredentialsRotationPhase

func (p phases) state() State {
	out := State{Rotation: map[Kind]Rotation{}}
	for k, phase := range p {
		initiated := minuteTime(0)
		out.Rotation[k] = Rotation{Phase: phase, RotationTimes: gardencorev1beta1.RotationTimes{LastInitiationTime: &initiated}}
	}
	return out
}

func phasesOf(s State) phases {
	out := phases{}
	for k, r := range s.Rotation {
		if r.Phase != "" {
			out[k] = r.Phase
		}
	}
	return out
}

func allInPhase(phase gardencorev1beta1.CredentialsRotationPhase) phases {
	out := phases{}
	for _, k := range twoStepKinds {
		out[k] = phase
	}
	return out
}

func TestBegin(t *testing.T) {
	for name, c := range map[string]struct {
		before  phases
		asked   string
		minor   int
		want    phases
		refused string
	}{
		"nothing":                 {phases{}, "", 34, phases{}, ""},
		"reconcile":               {phases{}, "reconcile", 34, phases{}, ""},
		"all":                     {phases{}, "rotate-credentials-start", 33, allInPhase(preparing), ""},
		"all, again":              {allInPhase(completed), "rotate-credentials-start", 34, allInPhase(preparing), ""},
		"all are completed":       {allInPhase(prepared), "rotate-credentials-complete", 33, allInPhase(completing), ""},
		"one of them":             {phases{}, "rotate-ca-start", 34, phases{CertificateAuthorities: preparing}, ""},
		"two, with spaces":        {phases{}, "rotate-ca-start; rotate-serviceaccount-key-start", 34, phases{CertificateAuthorities: preparing, ServiceAccountKey: preparing}, ""},
		"the key, in one step":    {phases{}, "rotate-etcd-encryption-key", 34, phases{ETCDEncryptionKey: preparing}, ""},
		"workload identity":       {phases{WorkloadIdentityKey: prepared}, "rotate-workload-identity-key-complete", 34, phases{WorkloadIdentityKey: completing}, ""},
		"passwords have no phase": {phases{}, "rotate-observability-credentials", 34, phases{}, ""},
		"taken up already":        {phases{CertificateAuthorities: preparing}, "rotate-ca-start", 34, phases{CertificateAuthorities: preparing}, ""},
		"completed already":       {phases{CertificateAuthorities: completing}, "rotate-ca-complete", 34, phases{CertificateAuthorities: completing}, ""},
		"the key completes by itself": {phases{CertificateAuthorities: prepared, ServiceAccountKey: prepared, ETCDEncryptionKey: completed, WorkloadIdentityKey: prepared},
			"rotate-credentials-complete", 34, phases{CertificateAuthorities: completing, ServiceAccountKey: completing, ETCDEncryptionKey: completed, WorkloadIdentityKey: completing}, ""},
		"too early": {phases{CertificateAuthorities: preparing}, "rotate-ca-complete", 34, phases{CertificateAuthorities: preparing},
			`rotate-ca-complete: certificateAuthorities must be Prepared first; it is "Preparing"`},
		"never begun": {phases{}, "rotate-ca-complete", 34, phases{}, `rotate-ca-complete: certificateAuthorities must be Prepared first; none was started yet`},
		"a second time": {phases{CertificateAuthorities: prepared}, "rotate-ca-start", 34, phases{CertificateAuthorities: prepared},
			`rotate-ca-start: the previous rotation of certificateAuthorities must be Completed first; it is "Prepared"`},
		"all or nothing": {phases{ServiceAccountKey: prepared}, "rotate-credentials-start", 34, phases{ServiceAccountKey: prepared},
			`rotate-credentials-start: the previous rotation of serviceAccountKey must be Completed first; it is "Prepared"`},
		"what can be done is done": {phases{}, "rotate-everything;rotate-ca-start", 34, phases{CertificateAuthorities: preparing}, `a Garden has no operation "rotate-everything"`},
	} {
		t.Run(name, func(t *testing.T) {
			before := c.before.state()
			got, err := before.BeginOperations(c.asked, c.minor, minuteTime(1))
			if c.refused == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, c.refused)
			}
			assert.Equal(t, c.want, phasesOf(got))
			assert.Equal(t, c.before, phasesOf(before), "the state of before is as it was")
		})
	}
}

// TestWholeRotation rotates all kinds and checks their phases.
func TestWholeRotation(t *testing.T) {
	s, err := State{}.BeginOperations("rotate-credentials-start", 34, minuteTime(1))
	require.NoError(t, err)
	assert.True(t, s.IsUnderWay())
	assert.Equal(t, minuteTime(1).Time, s.RotationTimes()["ca-etcd"])
	assert.Equal(t, minuteTime(1).Time, s.RotationTimes()["observability-ingress"])

	s, again := s.FinishSteps(minuteTime(2))
	assert.True(t, again, "the encryption key goes on by itself")
	assert.Equal(t, phases{CertificateAuthorities: prepared, ServiceAccountKey: prepared, WorkloadIdentityKey: prepared, ETCDEncryptionKey: completing}, phasesOf(s))
	assert.Equal(t, minuteTime(2), *s.Rotation[Observability].LastCompletionTime)
	s, again = s.FinishSteps(minuteTime(3))
	assert.False(t, again)
	assert.Equal(t, phases{CertificateAuthorities: prepared, ServiceAccountKey: prepared, WorkloadIdentityKey: prepared, ETCDEncryptionKey: completed}, phasesOf(s))
	assert.False(t, s.IsUnderWay())
	assert.Equal(t, minuteTime(2), *s.Rotation[CertificateAuthorities].LastInitiationFinishedTime)

	s, err = s.BeginOperations("rotate-credentials-complete", 34, minuteTime(4))
	require.NoError(t, err)
	assert.Equal(t, minuteTime(4), *s.Rotation[CertificateAuthorities].LastCompletionTriggeredTime)
	s, again = s.FinishSteps(minuteTime(5))
	assert.False(t, again)
	assert.Equal(t, allInPhase(completed), phasesOf(s))
	assert.Equal(t, minuteTime(1).Time, s.RotationTimes()["ca"], "the secrets stay as they are")
	first := s.Rotation[CertificateAuthorities]
	initiated, done := minuteTime(1), minuteTime(5)
	assert.Equal(t, Rotation{Phase: completed, RotationTimes: gardencorev1beta1.RotationTimes{LastInitiationTime: &initiated, LastCompletionTime: &done}}, first)
	same, again := s.FinishSteps(minuteTime(6))
	assert.Equal(t, s, same)
	assert.False(t, again)
}

func TestBeginForProvider(t *testing.T) {
	atRest := func(provider string, p phases) State {
		s := p.state()
		s.EncryptionAtRest = &gardencorev1beta1.EncryptionAtRest{Provider: gardencorev1beta1.EncryptionProviderStatus{Type: gardencorev1beta1.EncryptionProviderType(provider)}}
		return s
	}
	for name, c := range map[string]struct {
		state    State
		declared string
		begins   bool
	}{
		"nothing is known":         {phases{}.state(), "aesgcm", false},
		"the same":                 {atRest("aescbc", phases{}), "aescbc", false},
		"another":                  {atRest("aescbc", phases{}), "aesgcm", true},
		"another, rotated before":  {atRest("aescbc", phases{ETCDEncryptionKey: completed}), "aesgcm", true},
		"a rotation is under way":  {atRest("aescbc", phases{ETCDEncryptionKey: preparing}), "aesgcm", false},
		"a rotation is half done":  {atRest("aescbc", phases{ETCDEncryptionKey: prepared}), "aesgcm", false},
		"an unknown one is silent": {atRest("", phases{}), "aesgcm", false},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.state.BeginForProvider(c.declared, minuteTime(7))
			r := got.Rotation[ETCDEncryptionKey]
			assert.Equal(t, c.begins, r.LastInitiationTime != nil && r.LastInitiationTime.Equal(new(minuteTime(7))))
			assert.Equal(t, c.begins, r.AutoCompleteAfterPrepared != nil && *r.AutoCompleteAfterPrepared)
		})
	}
}

func TestAdaptRequests(t *testing.T) {
	configs := []secrets.Config{
		{Name: "ca", Kind: secrets.KindCA, Rotation: secrets.KeepOld}, {Name: "ca-garden-runtime", Kind: secrets.KindCA, Rotation: secrets.KeepOld},
		{Name: "service-account-key", Kind: secrets.KindRSAPrivateKey, Rotation: secrets.KeepOld},
		{Name: "kube-apiserver-static-token", Kind: secrets.KindStaticToken},
		{Name: "configuration", Kind: secrets.KindEtcdEncryptionConfiguration, Resources: []string{"secrets"}, EncryptedResources: []string{"configmaps", "secrets"}},
	}
	find := func(s State, populated bool, name string) secrets.Config {
		for _, c := range s.AdaptRequests(configs, Progress{AllReadNewKey: populated}) {
			if c.Name == name {
				return c
			}
		}
		return secrets.Config{}
	}
	configs = append(configs, secrets.Config{Name: "server", Kind: secrets.KindCertificate, SigningCA: "ca"}, secrets.Config{Name: "webhook", Kind: secrets.KindCertificate, SigningCA: "ca-garden-runtime"})
	quiet := allInPhase(completed).state()
	assert.Equal(t, configs, quiet.AdaptRequests(configs, Progress{}), "nothing is asked for in another way between rotations")
	ending := phases{CertificateAuthorities: completing, ServiceAccountKey: prepared}.state()
	assert.False(t, find(ending, false, "ca").IgnoreOldSecrets, "servers show certificates of the old one until all are started anew")
	assert.True(t, find(ending, false, "server").UseCurrentCA)
	assert.False(t, find(ending, false, "webhook").UseCurrentCA)
	resigned := ending.AdaptRequests(configs, Progress{AllHaveNewCertificates: true})
	assert.True(t, resigned[0].IgnoreOldSecrets)
	assert.False(t, resigned[1].IgnoreOldSecrets, "it rotates by itself")
	ended := phases{ServiceAccountKey: completing}.state().AdaptRequests(configs, Progress{})
	assert.True(t, ended[2].IgnoreOldSecrets, "a key goes at once")
	assert.False(t, find(ending, false, "ca-garden-runtime").IgnoreOldSecrets, "it rotates by itself")
	assert.False(t, find(ending, false, "service-account-key").IgnoreOldSecrets)
	assert.False(t, find(ending, false, "kube-apiserver-static-token").IgnoreOldSecrets, "it has no old one")
	beginning := phases{ETCDEncryptionKey: preparing}.state()
	assert.Equal(t, new(false), find(beginning, false, "configuration").EncryptWithCurrentKey)
	assert.Equal(t, new(true), find(beginning, true, "configuration").EncryptWithCurrentKey)
	assert.Nil(t, find(phases{ETCDEncryptionKey: prepared}.state(), true, "configuration").EncryptWithCurrentKey)
	assert.Equal(t, []string{"configmaps", "secrets"}, EncryptedResources(configs))
}

// TestPatch checks that a patch, applied as by an API server, turns one state into another and
// leaves foreign fields.
func TestPatch(t *testing.T) {
	first, err := State{}.BeginOperations("rotate-credentials-start", 34, minuteTime(1))
	require.NoError(t, err)
	second, _ := first.FinishSteps(minuteTime(2))
	third, _ := second.FinishSteps(minuteTime(3))
	third.EncryptionAtRest = &gardencorev1beta1.EncryptionAtRest{Resources: []string{"configmaps"}, Provider: gardencorev1beta1.EncryptionProviderStatus{Type: "aescbc"}}
	assert.Nil(t, Patch(third, third))
	status := map[string]any{"credentials": map[string]any{"rotation": map[string]any{"sshKeypair": map[string]any{"a": "b"}}}}
	before := State{}
	for _, after := range []State{first, second, third} {
		status = mergePatched(t, status, Patch(before, after))
		read, err := ReadState(status)
		require.NoError(t, err)
		delete(read.Rotation, "sshKeypair")
		want, _ := json.Marshal(after)
		got, _ := json.Marshal(read)
		assert.JSONEq(t, string(want), string(got))
		before = after
	}
	rotations := status["credentials"].(map[string]any)["rotation"].(map[string]any)
	assert.Equal(t, map[string]any{"a": "b"}, rotations["sshKeypair"])
	_, err = ReadState(map[string]any{"credentials": "x"})
	assert.ErrorContains(t, err, "read status.credentials")
}

// mergePatched applies a merge patch (RFC 7386) to nested maps.
func mergePatched(t *testing.T, into, patch map[string]any) map[string]any {
	t.Helper()
	raw, err := json.Marshal(patch)
	require.NoError(t, err)
	var plain map[string]any
	require.NoError(t, json.Unmarshal(raw, &plain))
	var merge func(into, patch map[string]any) map[string]any
	merge = func(into, patch map[string]any) map[string]any {
		out := maps.Clone(into)
		for key, value := range patch {
			below, isMap := value.(map[string]any)
			was, wasMap := into[key].(map[string]any)
			switch {
			case value == nil:
				delete(out, key)
			case isMap && wasMap:
				out[key] = merge(was, below)
			default:
				out[key] = value
			}
		}
		return out
	}
	return merge(into, plain)
}
