// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/pergola-dev/pergola/controllers/access"
	"github.com/pergola-dev/pergola/render"
	"github.com/pergola-dev/pergola/secrets"
)

// TestAccessIsValidDuringRotation checks that an API server accepts the published access in every
// phase of a CA rotation. While a new CA is not trusted everywhere, the old access stays.
func TestAccessIsValidDuringRotation(t *testing.T) {
	s := newSite(t)
	r, o := s.run, s.run.owner
	o.Input.Owner.Kind = Shoot
	client, err := kubernetes.NewForConfig(server.config)
	require.NoError(t, err)
	requests := map[string]json.RawMessage{
		"ca":                       json.RawMessage(`{"kind": "ca", "commonName": "kubernetes", "rotation": "keepOld"}`),
		"ca-client":                json.RawMessage(`{"kind": "ca", "commonName": "kubernetes-client", "rotation": "keepOld"}`),
		"gardener-internal-client": json.RawMessage(`{"kind": "certificate", "certType": "client", "commonName": "pergola", "signingCA": "ca-client", "validity": "2160h"}`),
		access.SecretName:          json.RawMessage(`{"kind": "kubeconfig", "server": "https://api", "ca": "ca", "clientCertificate": "gardener-internal-client"}`),
	}
	result := render.Result{Components: []render.Component{{Path: "shoot/kube-apiserver", Enabled: true, Secrets: requests}}}
	configs, err := secretRequests(o, result)
	require.NoError(t, err)
	// made returns the secrets manager of a rotation that began at a time; it is zero for no
	// rotation.
	made := func(began time.Time, completing bool) *secrets.Manager {
		t.Helper()
		times := map[string]time.Time{"ca": began, "ca-client": began}
		asked := append([]secrets.Config(nil), configs...)
		for i, c := range asked {
			asked[i].IgnoreOldSecrets = completing && c.Kind == secrets.KindCA
		}
		m := secrets.New(secrets.NewStore(client), s.ns, "test", r.reconciler.Clock, secrets.WithRotationTimes(times))
		_, err := m.GenerateAll(s.ctx, asked)
		require.NoError(t, err)
		return m
	}
	published := func() string {
		t.Helper()
		found, err := client.CoreV1().Secrets(s.ns).Get(s.ctx, access.SecretName, metav1.GetOptions{})
		require.NoError(t, err)
		return string(found.Data[access.KubeconfigKey])
	}
	content := func(m *secrets.Manager) string {
		t.Helper()
		generated, there := m.Get(access.SecretName)
		require.True(t, there)
		return string(generated.Data[access.KubeconfigKey].Reveal())
	}

	first := made(time.Time{}, false)
	require.NoError(t, r.publishAccess(s.ctx, first, result))
	require.Equal(t, content(first), published())

	began := time.Unix(1_700_000_000, 0)
	preparing := made(began, false)
	require.NotEqual(t, content(first), content(preparing))
	require.NoError(t, r.publishAccess(s.ctx, preparing, result))
	assert.Equal(t, content(first), published(), "API servers do not know the new authority yet")
	assert.False(t, o.restoreAccess(s.ctx), "nothing is lost")
	assert.Equal(t, content(first), published())

	require.NoError(t, r.publishRotatedAccess(s.ctx))
	assert.Equal(t, content(preparing), published(), "all of them know both")
	require.NoError(t, r.publishAccess(s.ctx, made(began, false), result))
	assert.Equal(t, content(preparing), published(), "the next reconciliation does not go back")

	completing := made(began, true)
	require.NoError(t, r.publishAccess(s.ctx, completing, result))
	assert.Equal(t, content(completing), published(), "the certificate is of the new authority already")
	require.NoError(t, r.publishRotatedAccess(s.ctx))
	assert.Equal(t, content(completing), published())

	// Without published access there is no old access to preserve.
	again := made(began.Add(time.Hour), false)
	require.NoError(t, client.CoreV1().Secrets(s.ns).Delete(s.ctx, access.SecretName, metav1.DeleteOptions{}))
	require.NoError(t, r.publishAccess(s.ctx, again, result))
	assert.Equal(t, content(again), published())
}
