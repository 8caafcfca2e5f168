// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

func TestParseConfigErrors(t *testing.T) {
	for name, c := range map[string]struct{ request, want string }{
		"unknown field":       {`{"kind":"ca","commonName":"x","comonName":"y"}`, `component garden/etcd: secret "x": unknown field "comonName"`},
		"case matters":        {`{"kind":"ca","CommonName":"x"}`, `unknown field "CommonName"`},
		"field of other kind": {`{"kind":"ca","commonName":"x","bits":4096}`, `component garden/etcd: secret "x": field "bits" does not apply to kind ca`},
		"wrong type":          {`{"kind":"rsaPrivateKey","bits":"many"}`, `component garden/etcd: secret "x":`},
		"wrong duration":      {`{"kind":"ca","commonName":"x","validity":"30 days"}`, `component garden/etcd: secret "x":`},
		"no object":           {`"ca"`, `a request is an object with a kind`},
		"unknown kind":        {`{"kind":"password"}`, `unknown kind "password"`},
		"no kind":             {`{}`, `unknown kind ""`},
		"other name":          {`{"kind":"ca","commonName":"x","name":"y"}`, `the request has the name "y"`},
		"no common name":      {`{"kind":"certificate","certType":"server","signingCA":"ca"}`, `commonName is required for kind certificate`},
		"no signer":           {`{"kind":"certificate","commonName":"x","certType":"server"}`, `signingCA is required`},
		"wrong use":           {`{"kind":"certificate","commonName":"x","certType":"both","signingCA":"ca"}`, `certType is "both", expected server, client or serverclient`},
		"wrong address":       {`{"kind":"certificate","commonName":"x","certType":"server","signingCA":"ca","ipAddresses":["10.0.0.256"]}`, `"10.0.0.256", which is not an IP address`},
		"both CAs":            {`{"kind":"certificate","commonName":"x","certType":"server","signingCA":"ca","useCurrentCA":true,"useOldCA":true}`, `exclude each other`},
		"wrong rotation":      {`{"kind":"ca","commonName":"x","rotation":"KeepOld"}`, `rotation is "KeepOld", expected inPlace or keepOld`},
		"negative validity":   {`{"kind":"ca","commonName":"x","validity":"-1h"}`, `validity has to be positive`},
		"percentage":          {`{"kind":"ca","commonName":"x","renewAfterValidityPercentage":101}`, `renewAfterValidityPercentage is 101`},
		"weak key":            {`{"kind":"rsaPrivateKey","bits":512}`, `bits is 512`},
		"wrong provider":      {`{"kind":"etcdEncryptionKey","provider":"rot13"}`, `provider is "rot13"`},
		"no users":            {`{"kind":"staticToken"}`, `users is required`},
		"user twice":          {`{"kind":"staticToken","users":[{"username":"a"},{"username":"a"}]}`, `users has user "a" twice`},
		"comma in a group":    {`{"kind":"staticToken","users":[{"username":"a","groups":["x,y"]}]}`, `"x,y" has a comma`},
		"no URL":              {`{"kind":"kubeconfig","server":"kube-apiserver","tokenFile":"/t"}`, `server is "kube-apiserver", expected an https URL`},
		"no user":             {`{"kind":"kubeconfig","server":"https://x"}`, `tokenFile or clientCertificate is required`},
		"two authorities":     {`{"kind":"kubeconfig","server":"https://x","tokenFile":"/t","ca":"a","caFile":"b"}`, `ca and caFile exclude each other`},
		"nothing encrypted":   {`{"kind":"etcdEncryptionConfiguration","key":"k"}`, `resources is required`},
		"wrong label":         {`{"kind":"basicAuth","labels":{"a b":"c"}}`, `label a b is not valid`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseConfig("garden/etcd", "x", []byte(c.request))
			require.ErrorContains(t, err, c.want)
			assert.True(t, strings.HasPrefix(err.Error(), "component garden/etcd"), err)
		})
	}
}

func TestParseRequestsReportsAll(t *testing.T) {
	_, err := ParseRequests("garden/x", map[string]json.RawMessage{
		"a": []byte(`{"kind":"certificate"}`), "b": []byte(`{"kind":"nothing"}`), "Not_a_name": []byte(`{"kind":"basicAuth"}`),
		strings.Repeat("n", 60): []byte(`{"kind":"basicAuth"}`),
	})
	require.Error(t, err)
	for _, want := range []string{`secret "a"`, `secret "b"`, `secret "Not_a_name": the name is not valid`, "longer than 56"} {
		assert.ErrorContains(t, err, want)
	}
}

func TestWaves(t *testing.T) {
	w := newStoreFixture(t)
	cert := func(name, ca string) Config {
		return Config{Name: name, Kind: KindCertificate, CommonName: name, CertType: CertClient, SigningCA: ca}
	}
	for name, c := range map[string]struct {
		configs []Config
		want    string
	}{
		"unknown CA": {[]Config{cert("a", "nope")}, `secret "a" refers to "nope", which is not requested`},
		"circle":     {[]Config{cert("a", "b"), cert("b", "a"), {Name: "c", Kind: KindBasicAuth}}, "secrets refer to each other in a cycle: a, b"},
		"itself":     {[]Config{cert("a", "a")}, "in a cycle: a"},
		"wrong kind": {[]Config{cert("a", "c"), {Name: "c", Kind: KindBasicAuth}}, `it refers to "c", which is of kind basicAuth, expected ca`},
		"two ways":   {[]Config{{Name: "c", Kind: KindBasicAuth}, {Name: "c", Kind: KindBasicAuth, Username: "x"}}, `secret "c" is requested twice`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := w.manager().GenerateAll(t.Context(), c.configs)
			require.ErrorContains(t, err, c.want)
		})
	}
	same := Config{Name: "c", Kind: KindBasicAuth}
	refs, err := w.manager().GenerateAll(t.Context(), []Config{same, same})
	require.NoError(t, err)
	assert.Len(t, refs, 1)
}

func TestValueNeverPrints(t *testing.T) {
	const secret = "correct horse battery staple"
	v := NewValue([]byte(secret))
	s := Secret{Name: "x", Data: map[string]Value{"k": v}}
	var log strings.Builder
	logger := slog.New(slog.NewJSONHandler(&log, nil))
	logger.Info("x", "value", v, "secret", s)
	rawJSON, err := json.Marshal(s)
	require.NoError(t, err)
	rawYAML, err := yaml.Marshal(s)
	require.NoError(t, err)
	printed := log.String() + string(rawJSON) + string(rawYAML) + v.String() + v.GoString()
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
		printed += fmt.Sprintf(format, v) + fmt.Sprintf(format, &v) + fmt.Sprintf(format, s)
	}
	assert.NotContains(t, printed, secret)
	assert.NotContains(t, printed, fmt.Sprintf("%x", secret))
	assert.NotContains(t, printed, fmt.Sprintf("%d", []byte(secret)))
	assert.Contains(t, printed, redactedText)
	assert.Equal(t, secret, string(v.Reveal()))
}

// leakyStore fails like a webhook that quotes the denied object.
type leakyStore struct {
	*memoryStore
	quotedValue string
	err         error
}

func (s *leakyStore) Create(_ context.Context, secret *corev1.Secret) (*corev1.Secret, error) {
	s.quotedValue = string(secret.Data[keyPassword])
	s.err = fmt.Errorf("denied: password %q is too weak", s.quotedValue)
	return nil, s.err
}
