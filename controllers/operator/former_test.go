package operator

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/health/condition"
	"github.com/pergola-dev/pergola/source/gittest"
)

// TestRestartWithoutSecrets: an operator without access to a source maintains the applied revision
// from its cache, and reports that. It warns about missing or unverified revisions, and recovers
// with the Secret.
func TestRestartWithoutSecrets(t *testing.T) {
	w := newWorld(t)
	type one struct {
		*served
		secret string
		data   map[string]string
		asked  func() int
	}
	withLogin := func(name string) one {
		o := one{served: w.served(name), secret: name}
		server := gittest.ServeTLS(t, o.bare.Root)
		protect(server, "git", "a-token")
		o.data = map[string]string{"username": "git", "password": "a-token", "ca.crt": certificateOf(server)}
		o.asked = func() int { requests, _ := server.Reset(); return len(requests) }
		w.secret(name, o.data)
		w.follow(o.served, repositoryURL(server.URL), login(name))
		return o
	}
	byKey := one{served: w.served("ssh"), secret: "ssh"}
	server := gittest.ServeSSH(t, byKey.bare.Root)
	byKey.data = map[string]string{"identity": string(server.Identity), "known_hosts": string(server.KnownHosts)}
	w.secret("ssh", byKey.data)
	w.follow(byKey.served, repositoryURL(server.URL), login("ssh"))
	kept, broken, lost := withLogin("kept"), withLogin("broken"), withLogin("lost")
	signed := one{served: w.served("verified"), secret: "signers"}
	key, public := signingKey(t)
	signed.bare.Git("-c", "gpg.format=ssh", "-c", "user.signingkey="+key, "commit", "--quiet", "--amend", "--no-edit", "-S")
	signed.bare.Git("push", "--quiet", "--force", "origin", "HEAD:main")
	signed.data = map[string]string{"ada.pub": public}
	w.secret("signers", signed.data)
	w.follow(signed.served, repositoryURL(gittest.ServeHTTP(t, signed.bare.Root).URL), func(spec *landscapev1alpha1.LandscapeSpec) {
		spec.Source.Verify = &landscapev1alpha1.Verification{SecretRef: landscapev1alpha1.LocalSecretReference{Name: "signers"}}
	})

	stop := w.start()
	all := []one{byKey, kept, broken, lost, signed}
	applied := map[string]string{}
	for _, o := range all {
		applied[o.name] = w.applied(o.served, "", "1").Status.LastAppliedRevision
	}
	stop()
	for _, o := range all {
		require.NoError(t, w.client.Delete(context.Background(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: o.secret}}))
	}
	w.secret(broken.secret, map[string]string{"username": "git"})
	require.NoError(t, os.RemoveAll(filepath.Join(w.cache, "sources", w.namespace, lost.name)))
	kept.asked()
	w.start()

	for _, o := range []one{byKey, kept} {
		l := w.ready(o.name, "False SourceNotReady: spec.source.secretRef: there is no Secret "+w.namespace+"/"+o.secret)
		assert.Contains(t, readiness(l), applied[o.name]+" stays applied")
		w.repaired(o.served, "1")
	}
	l := w.ready(broken.name, "False Invalid: spec.source.secretRef: the Secret has username and no password")
	assert.Contains(t, readiness(l), applied[broken.name]+" stays applied")
	w.repaired(broken.served, "1")
	assert.Zero(t, kept.asked(), "nobody is asked without credentials")
	assert.True(t, w.told(kept.name, "SourceNotReady"), "it is told as an event")
	assert.False(t, w.told(kept.name, reasonNotKept))

	for o, why := range map[*one]string{
		&lost:   "does not hold it",
		&signed: "spec.source.verify.secretRef: there is no Secret",
	} {
		l := w.await(o.name, func(l *landscapev1alpha1.Landscape) bool { return strings.Contains(readiness(l), "nothing keeps it") })
		assert.True(t, strings.HasPrefix(readiness(l), "False SourceNotReady"), readiness(l))
		assert.Contains(t, readiness(l), applied[o.name]+" was applied last, and nothing keeps it")
		assert.Contains(t, readiness(l), why)
		assert.Equal(t, reasonNotKept, condition.Get(l.Status.Conditions, landscapev1alpha1.LandscapeApplied).Reason)
		w.eventually("it is told as an event", func() bool { return w.told(o.name, reasonNotKept) })
		assert.Equal(t, applied[o.name], l.Status.LastAppliedRevision)
	}

	// The access returns with an invalid revision: now the applied one can be fetched.
	bad := lost.push("break", map[string]string{"a.yaml": "a: b: c\n"})
	next := kept.set("2")
	w.secret(kept.secret, kept.data)
	w.secret(lost.secret, lost.data)
	w.secret(signed.secret, signed.data)
	w.replace(broken.secret, broken.data)
	l = w.applied(kept.served, next, "2")
	assert.Equal(t, "main@sha1:"+next, l.Status.LastAppliedRevision)
	w.ready(lost.name, "False Invalid: revision main@sha1:"+bad)
	w.repaired(lost.served, "1")
	l = w.await(lost.name, func(l *landscapev1alpha1.Landscape) bool { return strings.HasPrefix(readiness(l), "False Invalid") })
	assert.Contains(t, readiness(l), applied[lost.name]+" stays applied")
	for _, o := range []one{signed, broken} {
		l = w.applied(o.served, "", "1")
		assert.Equal(t, applied[o.name], l.Status.LastAppliedRevision)
	}
}

// repaired deletes a landscape's object and waits for its repair.
func (w *world) repaired(s *served, value string) {
	w.Helper()
	require.NoError(w, w.client.Delete(context.Background(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: s.name}}))
	w.eventually("drift is repaired", func() bool { return w.value(s.name) == value })
}

// told reports whether a Landscape has an event with a reason.
func (w *world) told(landscape, reason string) bool {
	w.Helper()
	return len(w.notes(landscape, reason)) > 0
}
