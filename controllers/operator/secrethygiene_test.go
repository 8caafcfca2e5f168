// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/health/condition"
	"github.com/pergola-dev/pergola/source/gittest"
)

// TestSecretHygiene: data of Secrets, in the cluster or in Git, is in no log, status, event, metric
// or answer, even if everything fails.
func TestSecretHygiene(t *testing.T) {
	w := newTestEnv(t)
	s := w.newServedRepository("hygiene")
	server := gittest.ServeTLS(t, s.server.Root)
	change := requireLogin(server, "git", "source-secret")
	fitting, encrypted := encryptedSecret(t)
	stranger, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, client.IgnoreNotFound(w.client.Delete(context.Background(), &corev1.Secret{ObjectMeta: decryptedSecretMeta})))
	})
	w.createSecret("git", map[string]string{"username": "git", "password": "source-secret", "ca.crt": certificateOf(server)})
	w.createSecret("hook", map[string]string{"token": "hook-secret"})
	w.createSecret("age", map[string]string{"x.agekey": fitting})
	w.createSecret("stranger", map[string]string{"x.agekey": stranger.String()})
	w.createSecret("no-key", map[string]string{"x.agekey": "AGE-SECRET-KEY-1BROKENSECRET"})
	w.createSecret("broken", map[string]string{"kubeconfig": "{users: [{user: {token: broken-secret}}]"})
	w.createSecret("refused", map[string]string{"kubeconfig": tokenKubeconfig(t, "cluster-secret")})
	decryption := func(name string) {
		t.Helper()
		w.changeLandscape(s.name, func(l *landscapev1alpha1.Landscape) {
			l.Spec.Decryption = &landscapev1alpha1.Decryption{SecretRef: landscapev1alpha1.LocalSecretReference{Name: name}}
		})
	}
	s.push("a Secret", map[string]string{"secret.yaml": encrypted})
	w.startOperator()
	w.followServed(s, repositoryURL(server.URL), withSourceSecret("git"), w.addReceiver, func(spec *landscapev1alpha1.LandscapeSpec) {
		spec.Source.Interval = &metav1.Duration{Duration: testInterval}
		spec.Decryption = &landscapev1alpha1.Decryption{SecretRef: landscapev1alpha1.LocalSecretReference{Name: "age"}}
	})
	w.awaitApplied(s, "", "1")
	content := func() string {
		secret := &corev1.Secret{}
		require.NoError(t, client.IgnoreNotFound(w.client.Get(context.Background(), client.ObjectKey{Namespace: decryptedSecretMeta.Namespace, Name: decryptedSecretMeta.Name}, secret)))
		return string(secret.Data["password"])
	}
	require.Equal(t, "correct-horse-battery", content())
	secret := &corev1.Secret{ObjectMeta: decryptedSecretMeta}
	require.NoError(t, w.client.Patch(context.Background(), secret, client.RawPatch(types.MergePatchType, []byte(`{"stringData":{"password":"drifted-secret"}}`)), client.FieldOwner("somebody")))
	w.eventually("it is told", func() bool { return w.hasEvent(s.name, "DriftNotRepaired") })
	stands := readyText(w.awaitReady(s.name, "False DriftNotRepaired: the clusters differ from main@sha1:"))
	assert.Contains(t, stands, "data.password is owned by somebody")
	assert.Contains(t, stands, "kubectl get secret -n garden")
	require.NoError(t, w.client.Delete(context.Background(), secret))
	w.eventually("drift is repaired", func() bool { return content() == "correct-horse-battery" })
	w.eventually("it is told", func() bool { return w.hasEvent(s.name, "DriftRepaired") })

	change("renewed-secret")
	w.awaitRefused(s, "AuthenticationFailed", "1")
	change("source-secret")
	w.awaitReady(s.name, "True Applied")
	decryption("stranger")
	l := w.awaitReady(s.name, "False ApplyFailed: revision main@sha1:")
	assert.Contains(t, readyText(l), "the given age key "+stranger.Recipient().String()+" does not open Secrets that are encrypted for ")
	assert.Contains(t, readyText(l), "Secret garden/one: add a matching age key to Secret stranger")
	w.awaitRepaired(s, "1")
	decryption("no-key")
	w.awaitReady(s.name, "False ApplyFailed: spec.decryption.secretRef: Secret no-key, key x.agekey")
	decryption("age")
	w.awaitReady(s.name, "True Applied")
	// The Secret cannot be updated to Git's content.
	w.suspend(s.name, true)
	require.NoError(t, w.client.Patch(context.Background(), secret, client.RawPatch(types.MergePatchType, []byte(`{"immutable":true,"stringData":{"password":"frozen-secret"}}`)), client.FieldOwner("somebody")))
	w.suspend(s.name, false)
	w.awaitReady(s.name, "False ApplyFailed")
	for name, want := range map[string]string{"refused": "Unauthorized", "broken": "access to the virtual garden: the kubeconfig in its Secret cannot be read"} {
		w.changeLandscape(s.name, func(l *landscapev1alpha1.Landscape) {
			l.Spec.Clusters = &landscapev1alpha1.Clusters{Virtual: &landscapev1alpha1.ClusterAccess{SecretRef: &landscapev1alpha1.SecretKeyReference{Name: name}}}
		})
		w.awaitLandscape(s.name, func(l *landscapev1alpha1.Landscape) bool {
			return strings.HasPrefix(readyText(l), "False ApplyFailed") && strings.Contains(readyText(l), want)
		})
	}

	planted := []string{"source-secret", "renewed-secret", "hook-secret", "BROKENSECRET", "broken-secret", "cluster-secret", "correct-horse-battery", "drifted-secret", "frozen-secret",
		stranger.String(), strings.TrimSpace(fitting[strings.Index(fitting, "AGE-SECRET-KEY-"):]), "PRIVATE KEY"}
	said := w.visibleTexts(s)
	for where, text := range said {
		require.NotEmpty(t, text, where)
		for _, secret := range planted {
			assert.NotContains(t, text, secret, where)
			assert.NotContains(t, text, base64.StdEncoding.EncodeToString([]byte(secret)), where)
		}
	}
	for _, failure := range []string{"access to the virtual garden", "Unauthorized", "spec.decryption.secretRef", "does not open Secrets that are encrypted for", "DriftRepaired", "DriftNotRepaired"} {
		assert.Contains(t, said["log"], failure, "what goes wrong is logged")
	}
}

// decryptedSecretMeta is the Secret of the encryption tests.
var decryptedSecretMeta = metav1.ObjectMeta{Namespace: "garden", Name: "one"}

// encryptedSecret returns the key and the file of that Secret.
func encryptedSecret(t *testing.T) (key, file string) {
	t.Helper()
	var out [2]string
	for i, name := range []string{"age.key", "secret.yaml"} {
		data, err := os.ReadFile("../../landscapes/testdata/sops/" + name)
		require.NoError(t, err)
		out[i] = string(data)
	}
	return out[0], out[1]
}

// tokenKubeconfig returns a kubeconfig with a token that the server does not know.
func tokenKubeconfig(t *testing.T, token string) string {
	t.Helper()
	data, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:  map[string]*clientcmdapi.Cluster{"c": {Server: testServer.config.Host, CertificateAuthorityData: testServer.config.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"u": {Token: token}},
		Contexts:  map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}}, CurrentContext: "x",
	})
	require.NoError(t, err)
	return string(data)
}

// visibleTexts returns all texts that the operator shows of a Landscape.
func (w *testEnv) visibleTexts(s *servedRepository) map[string]string {
	w.Helper()
	text := func(o any) string {
		data, err := json.Marshal(o)
		require.NoError(w, err)
		return string(data)
	}
	answer, err := http.Post(w.receiverAddress+"/hooks/"+w.namespace+"/"+s.name+"/push", "application/json", strings.NewReader(`{"ref":"refs/heads/main"}`))
	require.NoError(w, err)
	answered, err := io.ReadAll(answer.Body)
	require.NoError(w, err)
	require.NoError(w, answer.Body.Close())
	events, core, maps := &eventsv1.EventList{}, &corev1.EventList{}, &corev1.ConfigMapList{}
	require.NoError(w, w.client.List(context.Background(), events, client.InNamespace(w.namespace)))
	require.NoError(w, w.client.List(context.Background(), core, client.InNamespace(w.namespace)))
	require.NoError(w, w.client.List(context.Background(), maps, client.InNamespace("garden")))
	return map[string]string{"log": w.log.String(), "metrics": httpBody(w.T, w.metricsAddress), "answer": string(answered), "object": text(w.getLandscape(s.name)), "events": text([]any{core, events}), "inventories": text(maps)}
}

func httpBody(t *testing.T, address string) string {
	t.Helper()
	answer, err := http.Get(address)
	require.NoError(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return string(text)
}

// TestNoRequestsWithoutChanges: without changes the clusters get only lease renewals, and the
// source gets one request per poll.
func TestNoRequestsWithoutChanges(t *testing.T) {
	w := newTestEnv(t)
	s := w.newServedRepository("quiet")
	server := gittest.ServeHTTP(t, s.server.Root)
	p := newProxy(t)
	w.createSecret("counted", map[string]string{"kubeconfig": p.kubeconfig(t)})
	w.startOperator(func(r *Role) { r.Config = p.clientConfig() })
	w.followServed(s, repositoryURL(server.URL), func(spec *landscapev1alpha1.LandscapeSpec) {
		spec.Source.Interval = &metav1.Duration{Duration: time.Second}
		spec.Clusters.Virtual.SecretRef.Name = "counted"
	})
	w.awaitApplied(s, "", "1")
	unexpected := func(r recordedRequest) bool { return !strings.Contains(r.uri, "/leases/") }
	// Quiet means no request for two seconds.
	since := time.Now()
	w.eventually("it settles", func() bool {
		if len(p.takeRequests(unexpected)) > 0 {
			since = time.Now()
		}
		return time.Since(since) > 2*time.Second
	})
	server.ResetCounters()
	require.Never(t, func() bool {
		if requests := p.takeRequests(unexpected); len(requests) > 0 {
			t.Log(requests)
			return true
		}
		return false
	}, 5*time.Second, 200*time.Millisecond, "a cluster is asked although nothing changes")
	requests, _ := server.ResetCounters()
	assert.Positive(t, len(requests))
	assert.LessOrEqual(t, len(requests), 6)
	for _, r := range requests {
		assert.Contains(t, r, "/info/refs")
	}
}

// TestDependencyOrder: three dependent Landscapes are applied in order, and none before its
// dependency.
func TestDependencyOrder(t *testing.T) {
	w := newTestEnv(t)
	var all []*servedRepository
	stop := w.startOperator()
	for _, name := range []string{"ground", "middle", "top"} {
		s := w.newServedRepository(name)
		all = append(all, s)
	}
	for i := len(all) - 1; i >= 0; i-- {
		w.followServed(all[i], repositoryURL(gittest.ServeHTTP(t, all[i].server.Root).URL), func(spec *landscapev1alpha1.LandscapeSpec) {
			if i > 0 {
				spec.DependsOn = []landscapev1alpha1.Dependency{{Name: all[i-1].name}}
			}
		})
		if i > 0 {
			w.awaitReady(all[i].name, "Unknown Waiting: waiting for Landscape "+all[i-1].name)
		}
	}
	var began []metav1.Time
	for _, s := range all {
		l := w.awaitApplied(s, "", "1")
		began = append(began, l.Status.History[len(l.Status.History)-1].StartTime)
	}
	assert.False(t, began[1].Before(&began[0]))
	assert.False(t, began[2].Before(&began[1]))

	all[0].push("break", map[string]string{"a.yaml": "a: b: c\n"})
	w.awaitReady(all[0].name, "False Invalid")
	next := all[1].pushValue("2")
	l := w.awaitLandscape(all[1].name, func(l *landscapev1alpha1.Landscape) bool { return strings.Contains(readyText(l), next) })
	assert.Contains(t, readyText(l), "waiting for Landscape "+all[0].name+": it is not ready (Invalid)")
	assert.Equal(t, "1", w.configMapValue(all[1].name))
	// After a restart the order still holds.
	stop()
	w.changeLandscape(all[0].name, func(l *landscapev1alpha1.Landscape) {
		l.Annotations = map[string]string{landscapev1alpha1.AnnotationSyncRequested: "anew"}
	})
	w.startOperator()
	w.awaitLandscape(all[0].name, func(l *landscapev1alpha1.Landscape) bool {
		return l.Status.LastHandledSyncRequest == "anew" && strings.HasPrefix(readyText(l), "False Invalid")
	})
	assert.Equal(t, "1", w.configMapValue(all[1].name), "it waits still")
	all[0].pushValue("2")
	w.awaitApplied(all[1], next, "2")

	// A missing dependency is reported, also without a new revision. The applied revision stays,
	// and the sync continues once the dependency exists.
	missing := func(l *landscapev1alpha1.Landscape) string {
		c := condition.Get(l.Status.Conditions, landscapev1alpha1.LandscapeDependenciesMissing)
		if c == nil {
			return ""
		}
		return c.Message
	}
	late := w.newServedRepository("late")
	w.changeLandscape(all[1].name, func(l *landscapev1alpha1.Landscape) {
		l.Spec.DependsOn = append(l.Spec.DependsOn, landscapev1alpha1.Dependency{Name: late.name})
	})
	l = w.awaitLandscape(all[1].name, func(l *landscapev1alpha1.Landscape) bool { return missing(l) != "" })
	const text = " of spec.dependsOn does not exist: no newer revision is applied until it exists"
	assert.Equal(t, "Landscape "+late.name+text, missing(l))
	assert.True(t, strings.HasPrefix(readyText(l), "True Applied"), readyText(l))
	assert.Contains(t, readyText(l), text)
	w.eventually("it is told", func() bool {
		return slices.Contains(w.eventTexts(all[1].name, reasonDependencyMissing), "Landscape "+late.name+text)
	})
	next = all[1].pushValue("3")
	w.awaitReady(all[1].name, "True Waiting")
	w.followServed(late, repositoryURL(gittest.ServeHTTP(t, late.server.Root).URL))
	w.awaitApplied(all[1], next, "3")
	assert.Empty(t, missing(w.getLandscape(all[1].name)))

	// A circle is reported, too.
	w.changeLandscape(all[0].name, func(l *landscapev1alpha1.Landscape) {
		l.Spec.DependsOn = []landscapev1alpha1.Dependency{{Name: all[2].name}}
	})
	w.eventually("it is told", func() bool {
		notes := w.eventTexts(all[0].name, reasonStalled)
		return len(notes) == 1 && strings.Contains(notes[0], "spec.dependsOn has a cycle: ")
	})
}
