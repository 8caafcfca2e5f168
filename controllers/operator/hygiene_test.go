package operator

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/source/gittest"
)

// TestSecretHygiene: what is in Secrets is in no log, status, event, metric or answer, also when everything fails.
func TestSecretHygiene(t *testing.T) {
	w := newWorld(t)
	s := w.served("hygiene")
	server := gittest.ServeTLS(t, s.bare.Root)
	change := protect(server, "git", "source-secret")
	data := map[string]string{"username": "git", "password": "source-secret", "ca.crt": certificateOf(server)}
	w.secret("git", data)
	w.secret("hook", map[string]string{"token": "hook-secret"})
	w.secret("age", map[string]string{"x.agekey": "AGE-SECRET-KEY-1BROKENSECRET"})
	w.secret("broken", map[string]string{"kubeconfig": "{users: [{user: {token: cluster-secret}}]"})
	w.start()
	w.follow(s, repositoryURL(server.URL), login("git"), w.hooked, func(spec *landscapev1alpha1.LandscapeSpec) {
		spec.Source.Interval = &metav1.Duration{Duration: time.Second}
	})
	w.applied(s, "", "1")
	change("renewed-secret")
	w.refuses(s, "AuthenticationFailed", "1")
	change("source-secret")
	w.ready(s.name, "True Applied")
	w.change(s.name, func(l *landscapev1alpha1.Landscape) {
		l.Spec.Decryption = &landscapev1alpha1.Decryption{SecretRef: landscapev1alpha1.LocalSecretReference{Name: "age"}}
	})
	w.ready(s.name, "False ApplyFailed: spec.decryption.secretRef: Secret age, key x.agekey")
	w.change(s.name, func(l *landscapev1alpha1.Landscape) {
		l.Spec.Decryption = nil
		l.Spec.Clusters.Virtual.SecretRef.Name = "broken"
	})
	w.ready(s.name, "False ApplyFailed: access to the virtual garden")

	said := map[string]string{"log": w.log.String(), "metrics": body(t, w.metrics)}
	answer, err := http.Post(w.receivers+"/hooks/"+w.namespace+"/"+s.name+"/push", "application/json", strings.NewReader(`{"ref":"refs/heads/main"}`))
	require.NoError(t, err)
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	said["answer"] = string(text)
	status, err := json.Marshal(w.get(s.name))
	require.NoError(t, err)
	said["object"] = string(status)
	events := &eventsv1.EventList{}
	core := &corev1.EventList{}
	require.NoError(t, w.client.List(context.Background(), core, client.InNamespace(w.namespace)))
	require.NoError(t, w.client.List(context.Background(), events, client.InNamespace(w.namespace)))
	inEvents, err := json.Marshal([]any{core, events})
	require.NoError(t, err)
	said["events"] = string(inEvents)
	for where, text := range said {
		require.NotEmpty(t, text, where)
		for _, secret := range []string{"source-secret", "hook-secret", "BROKENSECRET", "cluster-secret", "PRIVATE KEY"} {
			assert.NotContains(t, text, secret, where)
		}
	}
	assert.Contains(t, said["log"], "access to the virtual garden", "what goes wrong is logged")
}

func body(t *testing.T, address string) string {
	t.Helper()
	answer, err := http.Get(address)
	require.NoError(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return string(text)
}

// TestQuiet: while nothing changes, the clusters get no request but the renewals of the lease, and the source one a poll.
func TestQuiet(t *testing.T) {
	w := newWorld(t)
	s := w.served("quiet")
	server := gittest.ServeHTTP(t, s.bare.Root)
	p := newProxy(t)
	w.secret("counted", map[string]string{"kubeconfig": p.kubeconfig(t)})
	w.start(func(r *Role) { r.Config = p.config() })
	w.follow(s, repositoryURL(server.URL), func(spec *landscapev1alpha1.LandscapeSpec) {
		spec.Source.Interval = &metav1.Duration{Duration: time.Second}
		spec.Clusters.Virtual.SecretRef.Name = "counted"
	})
	w.applied(s, "", "1")
	unexpected := func(r request) bool { return !strings.Contains(r.uri, "/leases/") }
	// It settles: for two seconds nothing is asked.
	since := time.Now()
	w.eventually("it settles", func() bool {
		if len(p.take(unexpected)) > 0 {
			since = time.Now()
		}
		return time.Since(since) > 2*time.Second
	})
	server.Reset()
	require.Never(t, func() bool {
		if requests := p.take(unexpected); len(requests) > 0 {
			t.Log(requests)
			return true
		}
		return false
	}, 5*time.Second, 200*time.Millisecond, "a cluster is asked although nothing changes")
	requests, _ := server.Reset()
	assert.Positive(t, len(requests))
	assert.LessOrEqual(t, len(requests), 6)
	for _, r := range requests {
		assert.Contains(t, r, "/info/refs")
	}
}

// TestOrder: three Landscapes that build on one another are applied one after the other, and none goes on without the one before.
func TestOrder(t *testing.T) {
	w := newWorld(t)
	var all []*served
	w.start()
	for _, name := range []string{"ground", "middle", "top"} {
		s := w.served(name)
		all = append(all, s)
	}
	for i := len(all) - 1; i >= 0; i-- {
		w.follow(all[i], repositoryURL(gittest.ServeHTTP(t, all[i].bare.Root).URL), func(spec *landscapev1alpha1.LandscapeSpec) {
			if i > 0 {
				spec.DependsOn = []landscapev1alpha1.Dependency{{Name: all[i-1].name}}
			}
		})
		if i > 0 {
			w.ready(all[i].name, "Unknown Pending: waiting for Landscape "+all[i-1].name)
		}
	}
	var began []metav1.Time
	for _, s := range all {
		l := w.applied(s, "", "1")
		began = append(began, l.Status.History[len(l.Status.History)-1].StartTime)
	}
	assert.False(t, began[1].Before(&began[0]))
	assert.False(t, began[2].Before(&began[1]))

	all[0].push("break", map[string]string{"a.yaml": "a: b: c\n"})
	w.ready(all[0].name, "False Invalid")
	next := all[1].set("2")
	l := w.await(all[1].name, func(l *landscapev1alpha1.Landscape) bool { return strings.Contains(readiness(l), next) })
	assert.Contains(t, readiness(l), "waiting for Landscape "+all[0].name+": it is not ready (Invalid)")
	assert.Equal(t, "1", w.value(all[1].name))
	all[0].set("2")
	w.applied(all[1], next, "2")
}
