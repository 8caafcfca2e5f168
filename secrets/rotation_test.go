// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

func TestAutoRenewal(t *testing.T) {
	const year = 365 * 24 * time.Hour
	month := 30 * 24 * time.Hour
	for name, c := range map[string]struct {
		request string
		after   time.Duration
		opts    []Option
		renewed bool
	}{
		"certificate before 80 %":         {`{"kind":"certificate","commonName":"x","certType":"client","signingCA":"ca"}`, 7 * year, nil, false},
		"certificate after 80 %":          {`{"kind":"certificate","commonName":"x","certType":"client","signingCA":"ca"}`, 8*year + 4*24*time.Hour, nil, true},
		"30 days: 10 days are left":       {`{"kind":"basicAuth","validity":"720h"}`, 20*24*time.Hour + time.Minute, nil, true},
		"30 days: 11 days are left":       {`{"kind":"basicAuth","validity":"720h"}`, 19 * 24 * time.Hour, nil, false},
		"own percentage":                  {`{"kind":"basicAuth","validity":"720h","renewAfterValidityPercentage":50}`, month/2 + time.Hour, nil, true},
		"before its own percentage":       {`{"kind":"basicAuth","validity":"720h","renewAfterValidityPercentage":50}`, month/2 - time.Hour, nil, false},
		"short-lived: not with every run": {`{"kind":"basicAuth","validity":"1h"}`, 30 * time.Minute, nil, false},
		"short-lived after 80 %":          {`{"kind":"basicAuth","validity":"1h"}`, 49 * time.Minute, nil, true},
		"unlimited":                       {`{"kind":"basicAuth"}`, 50 * year, nil, false},
		"CA without auto-rotation":        {`{"kind":"ca","commonName":"x","validity":"720h"}`, 25 * 24 * time.Hour, nil, false},
		"CA with auto-rotation":           {`{"kind":"ca","commonName":"x","validity":"720h"}`, 25 * 24 * time.Hour, []Option{WithCAAutoRotation("y", "x")}, true},
		"CA, auto-rotation of another":    {`{"kind":"ca","commonName":"x","validity":"720h"}`, 25 * 24 * time.Hour, []Option{WithCAAutoRotation("ca")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newStoreFixture(t)
			ca, x := request(t, "ca", `{"kind":"ca","commonName":"ca"}`), request(t, "x", c.request)
			before := w.generate(w.manager(c.opts...), ca, x)
			w.clock.Step(c.after)
			m := w.manager(c.opts...)
			after := w.generate(m, ca, x)
			assert.Equal(t, c.renewed, before[1].Secret != after[1].Secret, "%s → %s", before[1].Secret, after[1].Secret)
			if c.renewed {
				assert.Regexp(t, "^"+before[1].Secret+"-[0-9a-f]{5}$", after[1].Secret)
			}
			again := w.generate(w.manager(c.opts...), ca, x)
			assert.Equal(t, after, again, "a renewed secret is found again")
		})
	}
}

func TestRotationOfACA(t *testing.T) {
	w := newStoreFixture(t)
	ca := request(t, "ca", `{"kind":"ca","commonName":"kubernetes","rotation":"keepOld"}`)
	leafs := []Config{
		request(t, "server", `{"kind":"certificate","commonName":"s","certType":"server","signingCA":"ca"}`),
		request(t, "server-current", `{"kind":"certificate","commonName":"s","certType":"server","signingCA":"ca","useCurrentCA":true}`),
		request(t, "client", `{"kind":"certificate","commonName":"c","certType":"client","signingCA":"ca"}`),
		request(t, "peer", `{"kind":"certificate","commonName":"c","certType":"serverclient","signingCA":"ca"}`),
		request(t, "client-old", `{"kind":"certificate","commonName":"c","certType":"client","signingCA":"ca","useOldCA":true}`),
	}
	all := append([]Config{ca}, leafs...)
	initial := w.manager()
	before := w.generate(initial, all...)
	first := certOf(t, initial, "ca", keyCACert)

	// Preparing: a new CA next to the old one.
	w.clock.Step(time.Hour)
	times := WithRotationTimes(map[string]time.Time{"ca": w.clock.Now(), "other": {}})
	m := w.manager(times)
	preparing := w.generate(m, all...)
	second := certOf(t, m, "ca", keyCACert)
	require.False(t, first.Equal(second))
	assert.Regexp(t, "^"+before[0].Secret+"-[0-9a-f]{5}$", preparing[0].Secret)
	for name, signer := range map[string]*x509.Certificate{"server": first, "server-current": second, "client": second, "peer": first, "client-old": first} {
		assert.NoError(t, certOf(t, m, name, keyTLSCert).CheckSignatureFrom(signer), name)
	}
	assert.Equal(t, before[1], preparing[1], "a server certificate stays as it is")
	assert.NotEqual(t, before[3].Secret, preparing[3].Secret, "a client certificate is renewed")

	bundle, ok := m.GetBundle("ca")
	require.True(t, ok)
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(bundle.Data[keyBundleCert].Reveal()))
	assert.Equal(t, 2, strings.Count(string(bundle.Data[keyBundleCert].Reveal()), "BEGIN CERTIFICATE"))
	old, ok := m.GetOld("ca")
	require.True(t, ok)
	assert.Equal(t, before[0].Secret, old.Name)

	deleted, err := m.Cleanup(t.Context())
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{before[0].Bundle, before[2].Secret, before[3].Secret}, deleted)

	// Another reconciliation in the same phase changes nothing.
	writes := w.store.writes()
	assert.Equal(t, preparing, w.generate(w.manager(times), all...))
	assert.Equal(t, writes, w.store.writes())

	// Completing: the old CA is dropped, and the new one signs server certificates.
	all[0].IgnoreOldSecrets = true
	m = w.manager(times)
	completing := w.generate(m, all...)
	assert.Equal(t, preparing[0].Secret, completing[0].Secret)
	assert.NoError(t, certOf(t, m, "server", keyTLSCert).CheckSignatureFrom(second))
	_, ok = m.GetOld("ca")
	assert.False(t, ok)
	_, err = m.Cleanup(t.Context())
	require.NoError(t, err)
	assert.NotContains(t, w.store.names(), before[0].Secret)

	// Completed: without the times the rotation is read from the label.
	all[0].IgnoreOldSecrets = false
	assert.Equal(t, completing, w.generate(w.manager(), all...))
}

func TestIgnoreOldSecretsAfter(t *testing.T) {
	w := newStoreFixture(t)
	ca := request(t, "ca", `{"kind":"ca","commonName":"x","validity":"720h","rotation":"keepOld","ignoreOldSecretsAfter":"24h"}`)
	w.generate(w.manager(WithCAAutoRotation("ca")), ca)
	w.clock.Step(25 * 24 * time.Hour)
	for _, step := range []struct {
		after time.Duration
		kept  bool
	}{{0, true}, {23 * time.Hour, true}, {2 * time.Hour, false}} {
		w.clock.Step(step.after)
		m := w.manager(WithCAAutoRotation("ca"))
		w.generate(m, ca)
		_, ok := m.GetOld("ca")
		assert.Equal(t, step.kept, ok, "after %s", step.after)
	}
}

func TestExpiredCASignsNothing(t *testing.T) {
	w := newStoreFixture(t)
	ca := request(t, "ca", `{"kind":"ca","commonName":"x","validity":"720h","rotation":"keepOld"}`)
	w.generate(w.manager(), ca)
	w.clock.Step(31 * 24 * time.Hour)
	m := w.manager(WithCAAutoRotation("ca"))
	w.generate(m, ca)
	_, ok := m.GetOld("ca")
	assert.False(t, ok)
}

// TestExpiredCAIsReplaced: a CA that is rotated on request is replaced when it has expired, not
// before. Its certificates are reissued, the old CA is dropped, and an earlier rotation request
// does not restore it.
func TestExpiredCAIsReplaced(t *testing.T) {
	for name, rotated := range map[string]bool{"never rotated": false, "rotated once": true} {
		t.Run(name, func(t *testing.T) {
			w := newStoreFixture(t)
			all := []Config{
				request(t, "ca", `{"kind":"ca","commonName":"x","validity":"720h","rotation":"keepOld"}`),
				request(t, "server", `{"kind":"certificate","commonName":"s","certType":"server","signingCA":"ca"}`),
				request(t, "client", `{"kind":"certificate","commonName":"c","certType":"client","signingCA":"ca"}`),
			}
			w.generate(w.manager(), all...)
			w.clock.Step(time.Hour)
			times := map[string]time.Time{}
			if rotated {
				times["ca"] = w.clock.Now()
			}
			before := w.generate(w.manager(WithRotationTimes(times)), all...)
			w.clock.Step(29 * 24 * time.Hour)
			assert.Equal(t, before, w.generate(w.manager(WithRotationTimes(times)), all...), "it is valid yet")

			w.clock.Step(2 * 24 * time.Hour)
			m := w.manager(WithRotationTimes(times))
			after := w.generate(m, all...)
			ca := certOf(t, m, "ca", keyCACert)
			assert.True(t, ca.NotAfter.After(w.clock.Now()))
			for _, signed := range []string{"server", "client"} {
				assert.NoError(t, certOf(t, m, signed, keyTLSCert).CheckSignatureFrom(ca), signed)
			}
			bundle, ok := m.GetBundle("ca")
			require.True(t, ok)
			assert.Equal(t, 1, strings.Count(string(bundle.Data[keyBundleCert].Reveal()), "BEGIN CERTIFICATE"), "what has expired is in no bundle")
			_, err := m.Cleanup(t.Context())
			require.NoError(t, err)
			assert.NotContains(t, w.store.names(), before[0].Secret)

			w.clock.Step(time.Hour)
			writes := w.store.writes()
			assert.Equal(t, after, w.generate(w.manager(WithRotationTimes(times)), all...), "once")
			assert.Equal(t, writes, w.store.writes())

			times["ca"] = w.clock.Now()
			later := w.manager(WithRotationTimes(times))
			w.generate(later, all...)
			old, ok := later.GetOld("ca")
			require.True(t, ok, "it is rotated on request as before")
			assert.Equal(t, after[0].Secret, old.Name)
		})
	}
}

func TestEncryptionKeyRotation(t *testing.T) {
	w := newStoreFixture(t)
	key := request(t, "key", `{"kind":"etcdEncryptionKey","rotation":"keepOld"}`)
	config := request(t, "config", `{"kind":"etcdEncryptionConfiguration","key":"key","resources":["secrets"],"encryptedResources":["configmaps","secrets"],"labels":{"x":"y"}}`)
	read := func(m *Manager) (out encryptionConfiguration) {
		s, ok := m.Get("config")
		require.True(t, ok)
		require.NoError(t, yaml.UnmarshalStrict(s.Data[keyEncryptionConfig].Reveal(), &out))
		return out
	}
	m := w.manager()
	w.generate(m, key, config)
	got := read(m)
	require.Len(t, got.Resources, 2)
	assert.Equal(t, []string{"secrets"}, got.Resources[0].Resources)
	require.Len(t, got.Resources[0].Providers, 2)
	first := got.Resources[0].Providers[0].AESCBC.Keys[0]
	assert.Equal(t, fmt.Sprintf("key%d", startTime.Unix()), first.Name)
	plain, err := base64.StdEncoding.DecodeString(first.Secret)
	require.NoError(t, err)
	assert.Len(t, plain, 32)
	assert.NotNil(t, got.Resources[0].Providers[1].Identity)
	assert.Equal(t, []string{"configmaps"}, got.Resources[1].Resources)
	assert.NotNil(t, got.Resources[1].Providers[0].Identity, "what is no longer encrypted is written in plain text")

	made := w.store.secrets[m.Facts()["config"].Name]
	assert.Equal(t, map[string]string{labelRole: "config", labelGarbageCollectable: "true", "x": "y"}, made.Labels)

	w.clock.Step(time.Hour)
	rotation := WithRotationTimes(map[string]time.Time{"key": w.clock.Now()})
	key.Provider = providerSecretbox
	for _, current := range []bool{false, true} {
		config.EncryptWithCurrentKey = &current
		m = w.manager(rotation)
		w.generate(m, key, config)
		providers := read(m).Resources[0].Providers
		require.Len(t, providers, 3)
		writer := providers[0]
		assert.Equal(t, current, writer.Secretbox != nil, "writes with the new key: %t", current)
		assert.Equal(t, !current, writer.AESCBC != nil)
	}
}
