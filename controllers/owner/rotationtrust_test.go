// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/pergola-dev/pergola/controllers/rotation"
	"github.com/pergola-dev/pergola/render"
	"github.com/pergola-dev/pergola/secrets"
)

// TestServersAreTrustedInEveryRound checks that clients trust the old and the new server in each
// round of a CA rotation, in any order of restarts. So the API server can always call
// gardener-admission-controller for authorization.
func TestServersAreTrustedInEveryRound(t *testing.T) {
	s := newSite(t)
	client, err := kubernetes.NewForConfig(server.config)
	require.NoError(t, err)
	configs, err := secretRequests(s.run.owner, render.Result{Components: []render.Component{{Path: "garden/gardener-admission-controller", Enabled: true, Secrets: map[string]json.RawMessage{
		"ca-gardener":                        json.RawMessage(`{"kind": "ca", "commonName": "gardener", "rotation": "keepOld"}`),
		"gardener-admission-controller-cert": json.RawMessage(`{"kind": "certificate", "certType": "server", "commonName": "gardener-admission-controller", "dnsNames": ["gardener-admission-controller"], "signingCA": "ca-gardener", "skipPublishingCACertificate": true}`),
	}}}})
	require.NoError(t, err)

	type round struct {
		name   string
		known  *x509.CertPool
		shown  *x509.Certificate
		bundle string
	}
	run := func(name string, state rotation.State, progress rotation.Progress) round {
		t.Helper()
		m := secrets.New(secrets.NewStore(client), s.ns, "test", s.run.reconciler.Clock, secrets.WithRotationTimes(state.RotationTimes()))
		_, err := m.GenerateAll(s.ctx, state.AdaptRequests(configs, progress))
		require.NoError(t, err)
		_, err = m.Cleanup(s.ctx) // as at the end of each round
		require.NoError(t, err)
		bundle, there := m.GetBundle("ca-gardener")
		require.True(t, there)
		made, there := m.Get("gardener-admission-controller-cert")
		require.True(t, there)
		block, _ := pem.Decode(made.Data["tls.crt"].Reveal())
		require.NotNil(t, block)
		shown, err := x509.ParseCertificate(block.Bytes)
		require.NoError(t, err)
		out := round{name: name, known: x509.NewCertPool(), shown: shown, bundle: string(bundle.Data["bundle.crt"].Reveal())}
		require.True(t, out.known.AppendCertsFromPEM([]byte(out.bundle)))
		return out
	}
	at := func(minute int) metav1.Time {
		return metav1.NewTime(time.Unix(1_700_000_000, 0).Add(time.Duration(minute) * time.Minute))
	}
	begin := func(state rotation.State, operation string, minute int) rotation.State {
		t.Helper()
		out, err := state.BeginOperations(operation, 34, at(minute))
		require.NoError(t, err)
		return out
	}

	var state rotation.State
	rounds := []round{run("before", state, rotation.Progress{})}
	for turn := range 2 { // twice, because a second rotation starts with the results of the first
		state = begin(state, "rotate-ca-start", 10*turn+1)
		rounds = append(rounds, run("Preparing", state, rotation.Progress{}))
		state, _ = state.FinishSteps(at(10*turn + 2))
		rounds = append(rounds, run("Prepared", state, rotation.Progress{}))
		state = begin(state, "rotate-ca-complete", 10*turn+3)
		rounds = append(rounds, run("Completing", state, rotation.Progress{}), run("Completing, when servers have certificates of the new CAs", state, rotation.Progress{AllHaveNewCertificates: true}))
		state, _ = state.FinishSteps(at(10*turn + 4))
		rounds = append(rounds, run("Completed", state, rotation.Progress{}))
	}
	for i, now := range rounds {
		for _, other := range rounds[max(i-1, 0):min(i+2, len(rounds))] {
			_, err := now.shown.Verify(x509.VerifyOptions{Roots: other.known, DNSName: "gardener-admission-controller"})
			assert.NoError(t, err, "who knows the CAs of %q meets the server of %q", other.name, now.name)
		}
	}
	assert.NotEqual(t, rounds[0].bundle, rounds[5].bundle, "the CA was rotated")
	_, err = rounds[5].shown.Verify(x509.VerifyOptions{Roots: rounds[0].known})
	assert.Error(t, err, "the former CA has not signed it")
}
