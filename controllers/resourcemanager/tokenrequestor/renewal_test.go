// SPDX-License-Identifier: Apache-2.0

package tokenrequestor

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

func TestParseTokenOrder(t *testing.T) {
	name, namespace := annotationName, annotationNamespace
	account := types.NamespacedName{Namespace: "kube-system", Name: "scheduler"}
	for title, test := range map[string]struct {
		annotations     map[string]string
		targetNamespace string
		want            tokenRequest
		problem         string
	}{
		"defaults":         {annotations: map[string]string{name: "scheduler", namespace: "kube-system"}, want: tokenRequest{account: account, expiration: 12 * time.Hour}},
		"no name":          {annotations: map[string]string{namespace: "kube-system"}, problem: "annotation " + name + " is missing"},
		"no namespace":     {annotations: map[string]string{name: "scheduler"}, problem: "annotation " + namespace + " is missing"},
		"target namespace": {annotations: map[string]string{name: "scheduler", namespace: "other"}, targetNamespace: "seed-a", want: tokenRequest{account: types.NamespacedName{Namespace: "seed-a", Name: "scheduler"}, expiration: 12 * time.Hour}},
		"everything": {annotations: map[string]string{name: "scheduler", namespace: "kube-system", annotationLabels: `{"a":"b"}`, annotationExpiration: "90m", annotationInjectCA: "true", annotationTargetName: "t", annotationTargetNS: "ns"},
			want: tokenRequest{account: account, labels: map[string]string{"a": "b"}, expiration: 90 * time.Minute, injectCA: true, target: types.NamespacedName{Namespace: "ns", Name: "t"}}},
		"labels are no JSON":  {annotations: map[string]string{name: "scheduler", namespace: "kube-system", annotationLabels: "a=b"}, problem: annotationLabels},
		"no duration":         {annotations: map[string]string{name: "scheduler", namespace: "kube-system", annotationExpiration: "12"}, problem: annotationExpiration},
		"negative":            {annotations: map[string]string{name: "scheduler", namespace: "kube-system", annotationExpiration: "-1h"}, problem: annotationExpiration},
		"half a target":       {annotations: map[string]string{name: "scheduler", namespace: "kube-system", annotationTargetName: "t"}, want: tokenRequest{account: account, expiration: 12 * time.Hour}},
		"no boolean is false": {annotations: map[string]string{name: "scheduler", namespace: "kube-system", annotationInjectCA: "yes"}, want: tokenRequest{account: account, expiration: 12 * time.Hour}},
	} {
		t.Run(title, func(t *testing.T) {
			have, err := parseTokenRequest(test.annotations, test.targetNamespace)
			if test.problem != "" {
				require.ErrorContains(t, err, test.problem)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, test.want, have)
		})
	}
}

// jwt returns a token like an API server's, but without a valid signature.
func jwt(issued time.Time, life time.Duration, uid string) string {
	body := fmt.Sprintf(`{"iat":%d,"exp":%d,"kubernetes.io":{"serviceaccount":{"uid":%q}}}`, issued.Unix(), issued.Add(life).Unix(), uid)
	return "x." + base64.RawURLEncoding.EncodeToString([]byte(body)) + ".x"
}

func TestClaims(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	c, ok := parseClaims(jwt(now, time.Hour, "uid"))
	require.True(t, ok)
	assert.Equal(t, tokenClaims{issued: now, expires: now.Add(time.Hour), account: "uid"}, c)
	for _, token := range []string{"", "abc", "a.b.c", "a." + base64.RawURLEncoding.EncodeToString([]byte("{}")) + ".c", jwt(now, -time.Hour, "uid")} {
		_, ok := parseClaims(token)
		assert.False(t, ok, token)
	}
	// Our clock is three hours slow: that does not extend the lifetime of a token.
	assert.Equal(t, time.Hour, tokenLifetime(jwt(now, time.Hour, ""), now.Add(time.Hour), now.Add(-3*time.Hour)))
	assert.Equal(t, time.Hour, tokenLifetime("opaque", now.Add(time.Hour), now))
}

func TestRenewAfter(t *testing.T) {
	most := func(d time.Duration, share float64) time.Duration { return d + time.Duration(float64(d)*share) }
	least := func(d time.Duration, _ float64) time.Duration { return d }
	for life, want := range map[time.Duration][2]time.Duration{
		10 * time.Minute: {8 * time.Minute, 8*time.Minute + 24*time.Second},
		12 * time.Hour:   {9*time.Hour + 36*time.Minute, 10*time.Hour + 4*time.Minute + 48*time.Second},
		24 * time.Hour:   {19*time.Hour + 12*time.Minute, 20*time.Hour + 9*time.Minute + 36*time.Second},
		// at least once a day
		90 * 24 * time.Hour: {19*time.Hour + 12*time.Minute, 20*time.Hour + 9*time.Minute + 36*time.Second},
	} {
		assert.Equal(t, want[0], renewalDelay(life, least), life)
		assert.Equal(t, want[1], renewalDelay(life, most), life)
	}
}

func TestRenewalReason(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	at := func(d time.Duration) string { return now.Add(d).UTC().Format(time.RFC3339) }
	for name, test := range map[string]struct {
		held       tokenState
		annotation string
		renewed    time.Time
		why        string
		wait       time.Duration
	}{
		"there is time":             {held: tokenState{token: "x"}, annotation: at(time.Hour), wait: time.Hour},
		"no token":                  {annotation: at(time.Hour), why: "the Secret has no token"},
		"another bundle":            {held: tokenState{token: "x", bundleDiffers: true}, annotation: at(time.Hour), why: "the CA bundle changed"},
		"asked for":                 {held: tokenState{token: "x"}, why: "a renewal is requested"},
		"not a time":                {held: tokenState{token: "x"}, annotation: "soon", why: "the renewal time is invalid"},
		"time":                      {held: tokenState{token: "x"}, annotation: at(0), why: "the renewal is due"},
		"long ago":                  {held: tokenState{token: "x"}, annotation: at(-time.Hour), why: "the renewal is due"},
		"written by a wrong clock":  {held: tokenState{token: "x"}, annotation: at(25 * time.Hour), why: "the renewal time is more than a day ahead"},
		"expires before":            {held: tokenState{token: jwt(now.Add(-4*time.Hour), 12*time.Hour, "")}, annotation: at(20 * time.Hour), wait: 6*time.Hour + 48*time.Minute},
		"expired":                   {held: tokenState{token: jwt(now.Add(-13*time.Hour), 12*time.Hour, "")}, annotation: at(5 * time.Hour), why: "the token is about to expire"},
		"expired, says a bad clock": {held: tokenState{token: jwt(now.Add(-13*time.Hour), 12*time.Hour, "")}, annotation: at(5 * time.Hour), renewed: now.Add(-time.Minute), wait: 5 * time.Hour},
		"expired since":             {held: tokenState{token: jwt(now.Add(-13*time.Hour), 12*time.Hour, "")}, annotation: at(5 * time.Hour), renewed: now.Add(-2 * time.Hour), why: "the token is about to expire"},
	} {
		t.Run(name, func(t *testing.T) {
			why, wait := renewalReason(test.held, test.annotation, now, test.renewed)
			assert.Equal(t, test.why, why)
			assert.Equal(t, test.wait, wait)
		})
	}
}

// kubeconfigText is a kubeconfig with a second user and a second cluster, which must not change.
const kubeconfigText = `apiVersion: v1
kind: Config
current-context: main
contexts:
- {name: other, context: {cluster: other, user: other}}
- {name: main, context: {cluster: main, user: main, namespace: ns}}
clusters:
- {name: other, cluster: {server: "https://other"}}
- {name: main, cluster: {server: "https://main", certificate-authority-data: b2xk}}
users:
- {name: other, user: {token: other-token}}
- {name: main, user: {token: TOKEN}}
`

func TestDataWithToken(t *testing.T) {
	k := func(token string) []byte {
		return []byte(strings.ReplaceAll(kubeconfigText, "TOKEN", fmt.Sprintf("%q", token)))
	}
	for name, test := range map[string]struct {
		data   map[string][]byte
		bundle []byte
		before tokenState
		want   map[string][]byte
	}{
		"nothing":           {want: map[string][]byte{keyToken: []byte("new"), keyBundle: nil}},
		"token":             {data: map[string][]byte{keyToken: []byte("old")}, before: tokenState{token: "old"}, want: map[string][]byte{keyToken: []byte("new"), keyBundle: nil}},
		"bundle":            {data: map[string][]byte{keyToken: []byte("old")}, bundle: []byte("ca"), before: tokenState{token: "old", bundleDiffers: true}, want: map[string][]byte{keyToken: []byte("new"), keyBundle: []byte("ca")}},
		"bundle is there":   {data: map[string][]byte{keyToken: []byte("old"), keyBundle: []byte("ca")}, bundle: []byte("ca"), before: tokenState{token: "old"}, want: map[string][]byte{keyToken: []byte("new"), keyBundle: []byte("ca")}},
		"kubeconfig":        {data: map[string][]byte{keyKubeconfig: k("old")}, before: tokenState{token: "old"}, want: map[string][]byte{keyKubeconfig: k("new")}},
		"kubeconfig, empty": {data: map[string][]byte{keyKubeconfig: k("")}, want: map[string][]byte{keyKubeconfig: k("new")}},
		"kubeconfig, token": {data: map[string][]byte{keyKubeconfig: k(""), keyToken: []byte("ignored")}, want: map[string][]byte{keyKubeconfig: k("new")}},
		"kubeconfig, bundle": {data: map[string][]byte{keyKubeconfig: k("old")}, bundle: []byte("new"), before: tokenState{token: "old", bundleDiffers: true},
			want: map[string][]byte{keyKubeconfig: []byte(strings.ReplaceAll(string(k("new")), "b2xk", "bmV3"))}},
		"kubeconfig, bundle is there": {data: map[string][]byte{keyKubeconfig: k("old")}, bundle: []byte("old"), before: tokenState{token: "old"}, want: map[string][]byte{keyKubeconfig: k("new")}},
	} {
		t.Run(name, func(t *testing.T) {
			before, err := readTokenState(test.data, test.bundle)
			require.NoError(t, err)
			assert.Equal(t, test.before, before)
			have, err := dataWithToken(test.data, "new", test.bundle)
			require.NoError(t, err)
			require.Len(t, have, len(test.want))
			for key, value := range test.want {
				if key == keyKubeconfig {
					assert.YAMLEq(t, string(normalizeKubeconfig(t, value)), string(have[key]))
				} else {
					assert.Equal(t, value, have[key], key)
				}
			}
		})
	}
}

// normalizeKubeconfig formats a kubeconfig like the code under test: mandatory lists that are
// empty.
func normalizeKubeconfig(t *testing.T, raw []byte) []byte {
	var o map[string]any
	require.NoError(t, yaml.Unmarshal(raw, &o))
	out, err := yaml.Marshal(o)
	require.NoError(t, err)
	return out
}

func TestBadKubeconfigs(t *testing.T) {
	for name, test := range map[string]struct{ text, problem string }{
		"not YAML":   {"{secret: 'hunter2", "is not a kubeconfig"},
		"wrong type": {"users: hunter2", "is not a kubeconfig"},
		"empty":      {"", "no context"},
		"no context": {strings.ReplaceAll(kubeconfigText, "current-context: main", "current-context: none"), "no context"},
		"no user":    {strings.ReplaceAll(kubeconfigText, "name: main, user:", "name: hunter2, user:"), "no user"},
		"no cluster": {strings.ReplaceAll(kubeconfigText, "name: main, cluster:", "name: hunter2, cluster:"), "no cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			data := map[string][]byte{keyKubeconfig: []byte(test.text)}
			_, err := readTokenState(data, []byte("ca"))
			require.ErrorContains(t, err, test.problem)
			assert.NotContains(t, err.Error(), "hunter2")
			_, err = dataWithToken(data, "new", []byte("ca"))
			require.ErrorContains(t, err, test.problem)
			assert.NotContains(t, err.Error(), "hunter2")
		})
	}
}

// TestExpirations checks that there is one series per class, however many Secrets it has, and none
// for a class without Secrets.
func TestExpirations(t *testing.T) {
	registry, now := prometheus.NewRegistry(), time.Unix(1_000_000, 0)
	shoot, err := newMetrics(registry, ClassShoot)
	require.NoError(t, err)
	garden, err := newMetrics(registry, ClassGarden)
	require.NoError(t, err)
	for i := range 100 {
		shoot.setExpiration(types.NamespacedName{Namespace: "a", Name: fmt.Sprint(i)}, now.Add(time.Duration(i)*time.Second))
	}
	garden.setExpiration(types.NamespacedName{Namespace: "a", Name: "0"}, now.Add(time.Hour))
	n, err := testutil.GatherAndCount(registry)
	require.NoError(t, err)
	assert.Equal(t, 4, n)
	assert.EqualValues(t, now.Unix(), earliestExpiration(t, registry, ClassShoot))
	assert.EqualValues(t, now.Add(time.Hour).Unix(), earliestExpiration(t, registry, ClassGarden))
	// renewed
	shoot.setExpiration(types.NamespacedName{Namespace: "a", Name: "0"}, now.Add(time.Hour))
	shoot.forget(types.NamespacedName{Namespace: "a", Name: "1"})
	assert.EqualValues(t, now.Add(2*time.Second).Unix(), earliestExpiration(t, registry, ClassShoot))
	garden.forget(types.NamespacedName{Namespace: "a", Name: "0"})
	garden.forget(types.NamespacedName{Namespace: "a", Name: "never"})
	assert.EqualValues(t, -1, earliestExpiration(t, registry, ClassGarden))
}
