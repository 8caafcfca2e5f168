// SPDX-License-Identifier: Apache-2.0

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
	w := newTestEnv(t)
	type one struct {
		*servedRepository
		secret string
		data   map[string]string
		asked  func() int
	}
	withLogin := func(name string) one {
		o := one{servedRepository: w.newServedRepository(name), secret: name}
		server := gittest.ServeTLS(t, o.server.Root)
		requireLogin(server, "git", "a-token")
		o.data = map[string]string{"username": "git", "password": "a-token", "ca.crt": certificateOf(server)}
		o.asked = func() int { requests, _ := server.ResetCounters(); return len(requests) }
		w.createSecret(name, o.data)
		w.followServed(o.servedRepository, repositoryURL(server.URL), withSourceSecret(name))
		return o
	}
	byKey := one{servedRepository: w.newServedRepository("ssh"), secret: "ssh"}
	server := gittest.ServeSSH(t, byKey.server.Root)
	byKey.data = map[string]string{"identity": string(server.Identity), "known_hosts": string(server.KnownHosts)}
	w.createSecret("ssh", byKey.data)
	w.followServed(byKey.servedRepository, repositoryURL(server.URL), withSourceSecret("ssh"))
	kept, broken, lost := withLogin("kept"), withLogin("broken"), withLogin("lost")
	signed := one{servedRepository: w.newServedRepository("verified"), secret: "signers"}
	key, public := signingKey(t)
	signed.server.Git("-c", "gpg.format=ssh", "-c", "user.signingkey="+key, "commit", "--quiet", "--amend", "--no-edit", "-S")
	signed.server.Git("push", "--quiet", "--force", "origin", "HEAD:main")
	signed.data = map[string]string{"ada.pub": public}
	w.createSecret("signers", signed.data)
	w.followServed(signed.servedRepository, repositoryURL(gittest.ServeHTTP(t, signed.server.Root).URL), func(spec *landscapev1alpha1.LandscapeSpec) {
		spec.Source.Verify = &landscapev1alpha1.Verification{SecretRef: landscapev1alpha1.LocalSecretReference{Name: "signers"}}
	})

	stop := w.startOperator()
	all := []one{byKey, kept, broken, lost, signed}
	applied := map[string]string{}
	for _, o := range all {
		applied[o.name] = w.awaitApplied(o.servedRepository, "", "1").Status.LastAppliedRevision
	}
	stop()
	for _, o := range all {
		require.NoError(t, w.client.Delete(context.Background(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: o.secret}}))
	}
	w.createSecret(broken.secret, map[string]string{"username": "git"})
	require.NoError(t, os.RemoveAll(filepath.Join(w.cacheDir, "sources", w.namespace, lost.name)))
	kept.asked()
	w.startOperator()

	for _, o := range []one{byKey, kept} {
		l := w.awaitReady(o.name, "False SourceNotReady: spec.source.secretRef: Secret "+w.namespace+"/"+o.secret+" does not exist")
		assert.Contains(t, readyText(l), applied[o.name]+" stays applied")
		w.awaitRepaired(o.servedRepository, "1")
	}
	l := w.awaitReady(broken.name, "False Invalid: spec.source.secretRef: the Secret has username and no password")
	assert.Contains(t, readyText(l), applied[broken.name]+" stays applied")
	w.awaitRepaired(broken.servedRepository, "1")
	assert.Zero(t, kept.asked(), "nobody is asked without credentials")
	assert.True(t, w.hasEvent(kept.name, "SourceNotReady"), "it is told as an event")
	assert.False(t, w.hasEvent(kept.name, reasonNotMaintained))

	for o, why := range map[*one]string{
		&lost:   "does not hold it",
		&signed: "spec.source.verify.secretRef: Secret ",
	} {
		l := w.awaitLandscape(o.name, func(l *landscapev1alpha1.Landscape) bool {
			return strings.Contains(readyText(l), "is not maintained now: ")
		})
		assert.True(t, strings.HasPrefix(readyText(l), "False SourceNotReady"), readyText(l))
		assert.Contains(t, readyText(l), applied[o.name]+" was applied last and is not maintained")
		assert.Contains(t, readyText(l), why)
		assert.Equal(t, reasonNotMaintained, condition.Get(l.Status.Conditions, landscapev1alpha1.LandscapeApplied).Reason)
		w.eventually("it is told as an event", func() bool { return w.hasEvent(o.name, reasonNotMaintained) })
		assert.Equal(t, applied[o.name], l.Status.LastAppliedRevision)
	}

	// The access returns with an invalid revision: now the applied one can be fetched.
	bad := lost.push("break", map[string]string{"a.yaml": "a: b: c\n"})
	next := kept.pushValue("2")
	w.createSecret(kept.secret, kept.data)
	w.createSecret(lost.secret, lost.data)
	w.createSecret(signed.secret, signed.data)
	w.replaceSecret(broken.secret, broken.data)
	l = w.awaitApplied(kept.servedRepository, next, "2")
	assert.Equal(t, "main@sha1:"+next, l.Status.LastAppliedRevision)
	w.awaitReady(lost.name, "False Invalid: revision main@sha1:"+bad)
	w.awaitRepaired(lost.servedRepository, "1")
	l = w.awaitLandscape(lost.name, func(l *landscapev1alpha1.Landscape) bool { return strings.HasPrefix(readyText(l), "False Invalid") })
	assert.Contains(t, readyText(l), applied[lost.name]+" stays applied")
	for _, o := range []one{signed, broken} {
		l = w.awaitApplied(o.servedRepository, "", "1")
		assert.Equal(t, applied[o.name], l.Status.LastAppliedRevision)
	}
}

// awaitRepaired deletes a landscape's object and waits for its repair.
func (w *testEnv) awaitRepaired(s *servedRepository, value string) {
	w.Helper()
	require.NoError(w, w.client.Delete(context.Background(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: s.name}}))
	w.eventually("drift is repaired", func() bool { return w.configMapValue(s.name) == value })
}

// hasEvent reports whether a Landscape has an event with a reason.
func (w *testEnv) hasEvent(landscape, reason string) bool {
	w.Helper()
	return len(w.eventTexts(landscape, reason)) > 0
}
