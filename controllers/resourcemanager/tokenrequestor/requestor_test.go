// SPDX-License-Identifier: Apache-2.0

package tokenrequestor

import (
	"encoding/base64"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// timeToRenewal returns the time until a Secret's token is renewed.
func (s *testEnv) timeToRenewal(secret *corev1.Secret) time.Duration {
	s.Helper()
	at, err := time.Parse(time.RFC3339, secret.Annotations[AnnotationRenew])
	require.NoError(s, err)
	return at.Sub(s.clock.Now())
}

// Annotations that Secrets may have besides those of their account.
const (
	injectCAAnnotation      = ", serviceaccount.resources.gardener.cloud/inject-ca-bundle: 'true'"
	targetSecretAnnotations = ", token-requestor.resources.gardener.cloud/target-secret-name: there, token-requestor.resources.gardener.cloud/target-secret-namespace: TARGET"
)

// TestRequestsTokens checks that every way of requesting a token returns a valid one.
func TestRequestsTokens(t *testing.T) {
	kubeconfig := "kubeconfig: |\n    " + strings.ReplaceAll(strings.ReplaceAll(kubeconfigText, "TOKEN", `""`), "\n", "\n    ")
	for name, test := range map[string]struct {
		more, data string
		life       time.Duration
		check      func(s *testEnv, secret *corev1.Secret)
	}{
		"plain": {life: 12 * time.Hour, check: func(s *testEnv, secret *corev1.Secret) {
			assert.Len(s, secret.Data, 1)
			assert.Contains(s, secret.Data, keyToken)
		}},
		"six hours": {more: ", serviceaccount.resources.gardener.cloud/token-expiration-duration: 6h", life: 6 * time.Hour},
		"90 days":   {more: ", serviceaccount.resources.gardener.cloud/token-expiration-duration: 2160h", life: 24 * time.Hour},
		"labels": {more: `, serviceaccount.resources.gardener.cloud/labels: '{"some":"label"}'`, life: 12 * time.Hour, check: func(s *testEnv, _ *corev1.Secret) {
			account, err := s.api.CoreV1().ServiceAccounts(s.target).Get(s.ctx, "account", metav1.GetOptions{})
			require.NoError(s, err)
			assert.Equal(s, map[string]string{"some": "label"}, account.Labels)
		}},
		"bundle": {more: injectCAAnnotation, life: 12 * time.Hour, check: func(s *testEnv, secret *corev1.Secret) {
			assert.Len(s, secret.Data, 2)
			assert.Equal(s, s.options.Target.CAData, secret.Data[keyBundle])
		}},
		"bundle not wanted": {data: "bundle.crt: old", life: 12 * time.Hour, check: func(s *testEnv, secret *corev1.Secret) {
			assert.NotContains(s, secret.Data, keyBundle)
		}},
		"kubeconfig": {data: kubeconfig, life: 12 * time.Hour, check: func(s *testEnv, secret *corev1.Secret) {
			assert.Len(s, secret.Data, 1)
			k, err := readKubeconfig(secret.Data[keyKubeconfig])
			require.NoError(s, err)
			assert.Equal(s, []byte("old"), k.cluster.CertificateAuthorityData)
			assert.Equal(s, "other-token", k.config.AuthInfos[0].AuthInfo.Token)
		}},
		"kubeconfig and bundle": {data: kubeconfig, more: injectCAAnnotation, life: 12 * time.Hour, check: func(s *testEnv, secret *corev1.Secret) {
			k, err := readKubeconfig(secret.Data[keyKubeconfig])
			require.NoError(s, err)
			assert.Equal(s, s.options.Target.CAData, k.cluster.CertificateAuthorityData)
		}},
		"there": {more: targetSecretAnnotations + injectCAAnnotation, data: "{token: old, bundle.crt: old, other: stays}", life: 12 * time.Hour, check: func(s *testEnv, secret *corev1.Secret) {
			assert.Equal(s, map[string][]byte{"other": []byte("stays")}, secret.Data)
			assert.Len(s, s.get(s.target, "there").Data, 2)
			assert.Equal(s, corev1.SecretTypeOpaque, s.get(s.target, "there").Type)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTestEnv(t)
			s.start()
			text := "metadata: {name: one, " + accountAnnotations(test.more) + "}\n"
			switch {
			case strings.HasPrefix(test.data, "{"):
				text += "stringData: " + test.data
			case test.data != "":
				text += "stringData:\n  " + test.data
			}
			s.create(text)
			secret := &corev1.Secret{}
			s.eventually("it is renewed later", func() bool {
				secret = s.get(s.source, "one")
				return secret.Annotations[AnnotationRenew] != ""
			})
			held := secret
			if strings.Contains(test.more, "target-secret-name") {
				held = s.get(s.target, "there")
			}
			have, err := readTokenState(held.Data, nil)
			require.NoError(t, err)
			assert.Equal(t, "system:serviceaccount:"+s.target+":account", s.tokenUser(have.token))
			wait := s.timeToRenewal(secret)
			assert.GreaterOrEqual(t, wait, test.life*80/100-2*time.Second)
			assert.LessOrEqual(t, wait, test.life*84/100+2*time.Second)
			account, err := s.api.CoreV1().ServiceAccounts(s.target).Get(s.ctx, "account", metav1.GetOptions{})
			require.NoError(t, err)
			require.NotNil(t, account.AutomountServiceAccountToken)
			assert.False(t, *account.AutomountServiceAccountToken)
			if test.check != nil {
				test.check(s, secret)
			}
		})
	}
}

// TestRenewal checks that a token is renewed when it is due, on request, after its removal and for
// another bundle, but not before.
func TestRenewal(t *testing.T) {
	s := newTestEnv(t)
	stop := s.start()
	s.create("metadata: {name: one, " + accountAnnotations("") + "}")
	first := s.waitForToken("one")
	s.clock.Step(9 * time.Hour)
	s.waitUntilIdle()
	assert.True(t, first == s.waitForToken("one"))
	s.clock.Step(2 * time.Hour)
	second := s.waitForToken("one", first)

	s.patch("one", "metadata: {annotations: {"+AnnotationRenew+": null}}")
	third := s.waitForToken("one", first, second)
	s.patch("one", "data: null")
	fourth := s.waitForToken("one", first, second, third)
	s.patch("one", "metadata: {annotations: {serviceaccount.resources.gardener.cloud/inject-ca-bundle: 'true'}}")
	fifth := s.waitForToken("one", first, second, third, fourth)
	s.patch("one", "data: {bundle.crt: b2xk}")
	sixth := s.waitForToken("one", first, second, third, fourth, fifth)
	assert.NotEmpty(t, s.tokenUser(sixth))
	assert.Equal(t, s.options.Target.CAData, s.get(s.source, "one").Data[keyBundle])

	// A restart does not renew it. The clock is right again: it was eleven hours ahead of the API
	// server's.
	s.waitUntilIdle()
	stop()
	s.clock.SetTime(time.Now())
	stop = s.start()
	s.waitUntilIdle()
	assert.True(t, sixth == s.waitForToken("one"))
	assert.Greater(t, s.timeToRenewal(s.get(s.source, "one")), 12*time.Hour, "written by the wrong clock")
	s.clock.Step(10*time.Hour + 50*time.Minute)
	seventh := s.waitForToken("one", first, second, third, fourth, fifth, sixth)

	// A restart with a clock that is far ahead renews it only once.
	s.waitUntilIdle()
	stop()
	s.clock.Step(4 * 24 * time.Hour)
	s.start()
	eighth := s.waitForToken("one", first, second, third, fourth, fifth, sixth, seventh)
	s.waitUntilIdle()
	s.waitUntilIdle()
	assert.True(t, eighth == s.waitForToken("one"))
}

// TestNoRequestsWithoutChanges: while nothing changes, there is no request; a restart costs one per
// Secret.
func TestNoRequestsWithoutChanges(t *testing.T) {
	s := newTestEnv(t)
	stop := s.start()
	s.create("metadata: {name: one, " + accountAnnotations("") + "}")
	s.waitForToken("one")
	s.waitUntilIdle()
	sent := s.takeRequests()
	stop()
	assert.Contains(t, sent, "POST /api/v1/namespaces/"+s.target+"/serviceaccounts/account/token")
	s.start()
	s.waitUntilIdle()
	var one []string
	for _, r := range s.takeRequests() {
		if strings.HasSuffix(r, "/one") {
			one = append(one, r)
		}
	}
	assert.Equal(t, []string{"GET /api/v1/namespaces/" + s.source + "/secrets/one"}, one)
}

// TestDeletedAccount checks that a token of a deleted account is replaced at once, or after the
// next start.
func TestDeletedAccount(t *testing.T) {
	s := newTestEnv(t)
	stop := s.start()
	s.create("metadata: {name: one, " + accountAnnotations("") + "}")
	first := s.waitForToken("one")
	s.waitUntilIdle()
	remove := func() {
		require.NoError(t, s.api.CoreV1().ServiceAccounts(s.target).Delete(s.ctx, "account", metav1.DeleteOptions{}))
	}
	remove()
	second := s.waitForToken("one", first)
	assert.NotEmpty(t, s.tokenUser(second))
	s.waitUntilIdle()
	stop()
	remove()
	_, err := s.api.CoreV1().ServiceAccounts(s.target).Create(s.ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "account"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	s.start()
	assert.NotEmpty(t, s.tokenUser(s.waitForToken("one", first, second)))
}

// TestForeignAccountChangesStay: changes of an account by others stay, and only the Secret is
// deleted.
func TestForeignAccountChangesStay(t *testing.T) {
	s := newTestEnv(t)
	_, err := s.api.CoreV1().ServiceAccounts(s.target).Create(s.ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "account", Labels: map[string]string{"a": "b"}}}, metav1.CreateOptions{})
	require.NoError(t, err)
	s.start()
	s.create(`metadata: {name: one, ` + accountAnnotations(`, serviceaccount.resources.gardener.cloud/labels: '{"c":"d","e":"f"}'`) + `}`)
	first := s.waitForToken("one")
	get := func() *corev1.ServiceAccount {
		account, err := s.api.CoreV1().ServiceAccounts(s.target).Get(s.ctx, "account", metav1.GetOptions{})
		require.NoError(t, err)
		return account
	}
	assert.Equal(t, map[string]string{"a": "b", "c": "d", "e": "f"}, get().Labels)
	s.patch("one", `metadata: {annotations: {serviceaccount.resources.gardener.cloud/labels: '{"c":"d"}', `+AnnotationRenew+`: null}}`)
	s.waitForToken("one", first)
	assert.Equal(t, map[string]string{"a": "b", "c": "d"}, get().Labels)

	expirations := func() int {
		n, err := testutil.GatherAndCount(s.options.Metrics.(prometheus.Gatherer), metricsPrefix+"earliest_expiration_timestamp_seconds")
		require.NoError(t, err)
		return n
	}
	assert.Equal(t, 1, expirations())
	require.NoError(t, s.api.CoreV1().Secrets(s.source).Delete(s.ctx, "one", metav1.DeleteOptions{}))
	s.eventually("the Secret is forgotten", func() bool { return expirations() == 0 })
	assert.Empty(t, get().DeletionTimestamp)
}

// TestClasses checks that only Secrets of the class are reconciled, and that namespace and
// audiences can be set.
func TestClasses(t *testing.T) {
	const labelled = "metadata: {name: NAME, labels: {resources.gardener.cloud/purpose: token-requestor, resources.gardener.cloud/class: CLASS}, annotations: {serviceaccount.resources.gardener.cloud/name: account}}"
	for class, want := range map[string][]string{"": {"shoot"}, ClassGarden: {"garden"}, ClassAll: {"garden", "other", "shoot"}} {
		t.Run(class, func(t *testing.T) {
			s := newTestEnv(t)
			s.options.Class, s.options.TargetNamespace, s.options.Audiences = class, s.target, []string{AudienceGardener}
			for _, c := range []string{"shoot", "garden", "other"} {
				s.create(strings.NewReplacer("NAME", c, "CLASS", c).Replace(labelled))
			}
			s.create("metadata: {name: none, labels: {a: b}, annotations: {serviceaccount.resources.gardener.cloud/name: account}}")
			s.start()
			for _, c := range want {
				token := s.waitForToken(c)
				raw, ok := parseClaims(token)
				require.True(t, ok)
				assert.NotEmpty(t, raw.account)
				assert.Empty(t, s.tokenUser(token), "the API server of the test has another audience")
			}
			for _, c := range []string{"shoot", "garden", "other", "none"} {
				assert.Equal(t, len(s.get(s.source, c).Data) > 0, strings.Contains(strings.Join(want, " "), c), c)
			}
			// A Secret that leaves the class is ignored.
			s.patch(want[0], "{metadata: {labels: {resources.gardener.cloud/purpose: null}}, data: null}")
			s.create(strings.NewReplacer("NAME", "last", "CLASS", want[0]).Replace(labelled))
			s.waitForToken("last")
			assert.Empty(t, s.get(s.source, want[0]).Data)
		})
	}
}

// TestInvalidSecrets: problems of a Secret are reported, affect no other Secret, and end when they
// are fixed.
func TestInvalidSecrets(t *testing.T) {
	for name, test := range map[string]struct{ text, event, mended string }{
		"no namespace": {"metadata: {name: one, annotations: {serviceaccount.resources.gardener.cloud/name: account}}",
			"one: TokenRequestInvalid: annotation serviceaccount.resources.gardener.cloud/namespace is missing", "metadata: {annotations: {serviceaccount.resources.gardener.cloud/namespace: TARGET}}"},
		"kubeconfig": {"{metadata: {name: one, " + accountAnnotations("") + "}, stringData: {kubeconfig: '{hunter2'}}",
			"one: TokenRequestInvalid: data.kubeconfig is not a kubeconfig", "data: null"},
		"too short": {"metadata: {name: one, " + accountAnnotations(", serviceaccount.resources.gardener.cloud/token-expiration-duration: 5m") + "}",
			"one: TokenRequestFailed: requesting a token of the ServiceAccount TARGET/account of the target cluster: ", "metadata: {annotations: {serviceaccount.resources.gardener.cloud/token-expiration-duration: 10m}}"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTestEnv(t)
			s.start()
			s.create(test.text)
			want := strings.ReplaceAll(test.event, "TARGET", s.target)
			s.eventually(want, func() bool { return strings.Contains(strings.Join(s.takeEvents(), "\n"), want) })
			s.waitUntilIdle()
			assert.NotContains(t, s.get(s.source, "one").Data, keyToken)
			s.patch("one", strings.ReplaceAll(test.mended, "TARGET", s.target))
			assert.NotEmpty(t, s.tokenUser(s.waitForToken("one")))
			assert.NotContains(t, s.log.text()+strings.Join(s.takeEvents(), "\n"), "hunter2")
			assert.NotContains(t, s.log.text(), "Body", "of a request or an answer")
		})
	}
}

// TestConcurrentKubeconfigChange checks that concurrent changes of the kubeconfig stay.
func TestConcurrentKubeconfigChange(t *testing.T) {
	s := newTestEnv(t)
	kubeconfig := []byte(strings.ReplaceAll(kubeconfigText, "TOKEN", `""`))
	var once sync.Once
	s.interceptRequests(func(r *http.Request) *http.Response {
		if r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/secrets/one") {
			once.Do(func() {
				changed := strings.Replace(string(kubeconfig), "b2xk", "bmV3", 1)
				s.patch("one", "data: {kubeconfig: "+base64.StdEncoding.EncodeToString([]byte(changed))+"}")
			})
		}
		return nil
	})
	s.start()
	s.create("{metadata: {name: one, " + accountAnnotations("") + "}, data: {kubeconfig: " + base64.StdEncoding.EncodeToString(kubeconfig) + "}}")
	s.waitForToken("one")
	k, err := readKubeconfig(s.get(s.source, "one").Data[keyKubeconfig])
	require.NoError(t, err)
	assert.Equal(t, "new", string(k.cluster.CertificateAuthorityData))
	assert.Empty(t, s.takeEvents())
}

// TestFailedRequests checks that the failure of any request is reported without the token, and that
// a valid token exists in the end.
func TestFailedRequests(t *testing.T) {
	for name, fails := range map[string]func(method, path string) bool{
		"reading":        func(method, path string) bool { return method == "GET" && strings.HasSuffix(path, "/secrets/one") },
		"reading there":  func(method, path string) bool { return method == "GET" && strings.HasSuffix(path, "/secrets/there") },
		"account":        func(method, path string) bool { return method == "PATCH" && strings.HasSuffix(path, "/account") },
		"token":          func(_, path string) bool { return strings.HasSuffix(path, "/token") },
		"writing there":  func(method, path string) bool { return method == "POST" && strings.HasSuffix(path, "/secrets") },
		"writing":        func(method, path string) bool { return method == "PATCH" && strings.HasSuffix(path, "/secrets/one") },
		"watch accounts": func(method, path string) bool { return method == "GET" && strings.HasSuffix(path, "/serviceaccounts") },
	} {
		t.Run(name, func(t *testing.T) {
			s := newTestEnv(t)
			var failed sync.Once
			happened := make(chan struct{})
			s.interceptRequests(func(r *http.Request) *http.Response {
				if !fails(r.Method, r.URL.Path) {
					return nil
				}
				failed.Do(func() { close(happened) })
				return errorResponse(http.StatusInternalServerError, "no")
			})
			s.start()
			s.create("metadata: {name: one, " + accountAnnotations(targetSecretAnnotations) + "}")
			select {
			case <-happened:
			case <-time.After(deadline):
				require.Fail(t, "nothing failed")
			}
			s.interceptRequests(nil)
			s.eventually("there is a token", func() bool {
				s.clock.Step(time.Second) // the pauses after failures
				return s.get(s.source, "one").Annotations[AnnotationRenew] != ""
			})
			token := string(s.get(s.target, "there").Data[keyToken])
			assert.NotEmpty(t, s.tokenUser(token))
			said := s.log.text() + strings.Join(s.takeEvents(), "\n")
			assert.NotEmpty(t, said)
			assert.NotContains(t, said, token)
			assert.NotContains(t, said, "Body", "of a request or an answer")
			assert.NotRegexp(t, `eyJ[A-Za-z0-9_-]+\.`, said, "something like a token")
		})
	}
}

// TestMetrics checks the number of renewals and the first expiry by class.
func TestMetrics(t *testing.T) {
	s := newTestEnv(t)
	s.start()
	s.create("metadata: {name: one, " + accountAnnotations(", serviceaccount.resources.gardener.cloud/token-expiration-duration: 2h") + "}")
	s.create("metadata: {name: two, " + accountAnnotations("") + "}")
	c, ok := parseClaims(s.waitForToken("one"))
	require.True(t, ok)
	s.waitForToken("two")
	told := func(want string) func() bool {
		return func() bool {
			return testutil.GatherAndCompare(s.options.Metrics.(prometheus.Gatherer), strings.NewReader(want),
				metricsPrefix+"renewals_total", metricsPrefix+"tokens") == nil
		}
	}
	s.eventually("both are counted", told(`
# HELP pergola_token_requestor_renewals_total Attempts to renew the token of a Secret, by class of the Secret and result: success, error, or conflict (the Secret changed meanwhile).
# TYPE pergola_token_requestor_renewals_total counter
pergola_token_requestor_renewals_total{class="shoot",result="success"} 2
# HELP pergola_token_requestor_tokens Secrets that have a token.
# TYPE pergola_token_requestor_tokens gauge
pergola_token_requestor_tokens{class="shoot"} 2
`))
	assert.InDelta(t, c.expires.Unix(), earliestExpiration(t, s.options.Metrics, "shoot"), 2, "that of the first, not that of the second")
	require.NoError(t, s.api.CoreV1().Secrets(s.source).Delete(s.ctx, "one", metav1.DeleteOptions{}))
	s.eventually("the first is forgotten", func() bool { return earliestExpiration(t, s.options.Metrics, "shoot") > float64(c.expires.Unix()+3600) })
}

// earliestExpiration returns the metric of the first expiry; -1 without one.
func earliestExpiration(t *testing.T, from prometheus.Registerer, class string) float64 {
	families, err := from.(prometheus.Gatherer).Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() != metricsPrefix+"earliest_expiration_timestamp_seconds" {
			continue
		}
		for _, m := range f.GetMetric() {
			if m.GetLabel()[0].GetValue() == class {
				return m.GetGauge().GetValue()
			}
		}
	}
	return -1
}
