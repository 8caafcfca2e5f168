// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/source/gittest"
)

// TestSignedVersions: a Landscape follows the highest signed version. An untrusted signature, a
// moved tag and a deleted tag leave the applied revision.
func TestSignedVersions(t *testing.T) {
	w := newTestEnv(t)
	w.startOperator()
	s := w.newServedRepository("versions")
	key, public := signingKey(t)
	stranger, _ := signingKey(t)
	tag := func(name, key, value string) string {
		t.Helper()
		s.pushValue(value)
		args := []string{"tag", "--force", name}
		if key != "" {
			args = []string{"-c", "gpg.format=ssh", "-c", "user.signingkey=" + key, "tag", "--force", "--sign", "--message", name, name}
		}
		s.server.Git(args...)
		s.server.Git("push", "--quiet", "--force", "origin", "refs/tags/"+name)
		return s.server.Git("rev-parse", "HEAD")
	}
	first := tag("v1.0.0", key, "one")
	w.createSecret("signers", map[string]string{"ada.pub": public})
	w.followServed(s, repositoryURL(gittest.ServeHTTP(t, s.server.Root).URL), func(spec *landscapev1alpha1.LandscapeSpec) {
		spec.Source.Ref = &landscapev1alpha1.Reference{SemVer: ">=1.0.0 <2"}
		spec.Source.Verify = &landscapev1alpha1.Verification{Mode: landscapev1alpha1.VerifyTag, SecretRef: landscapev1alpha1.LocalSecretReference{Name: "signers"}}
	})
	l := w.awaitApplied(s, first, "one")
	assert.Equal(t, "v1.0.0@sha1:"+first, l.Status.LastAppliedRevision)
	assert.NotEmpty(t, l.Status.History[0].Signer)

	for name, key := range map[string]string{"v1.1.0": "", "v1.2.0": stranger} {
		tag(name, key, name)
		w.awaitRefused(s, "VerificationFailed", "one")
		s.server.Git("push", "--quiet", "origin", ":refs/tags/"+name)
		w.awaitApplied(s, first, "one") // a tag that was never applied may be deleted
	}
	second := tag("v1.3.0", key, "3")
	w.awaitApplied(s, second, "3")

	tag("v1.3.0", key, "4")
	l = w.awaitRefused(s, "TagRewritten", "3")
	assert.True(t, hasStalled(l))
	s.server.Git("push", "--quiet", "origin", ":refs/tags/v1.3.0")
	l = w.awaitRefused(s, "ReferenceNotFound", "3")
	assert.Contains(t, readyText(l), "tag v1.3.0 no longer exists, and v1.0.0, the highest")
	third := tag("v1.4.0", key, "5")
	w.awaitApplied(s, third, "5")
	// One commit gets an untrusted tag, then a trusted one. Each counts at once, not at the next
	// interval.
	same := func(name, key string) {
		t.Helper()
		s.server.Git("-c", "gpg.format=ssh", "-c", "user.signingkey="+key, "tag", "--sign", "--message", name, name)
		s.server.Git("push", "--quiet", "origin", "refs/tags/"+name)
	}
	same("v1.5.0", stranger)
	w.awaitRefused(s, "VerificationFailed", "5")
	same("v1.6.0", key)
	l = w.awaitApplied(s, third, "5")
	w.awaitLandscape(s.name, func(l *landscapev1alpha1.Landscape) bool { return l.Status.LastAppliedRevision == "v1.6.0@sha1:"+third })
	assert.Empty(t, l.Status.LastErrors)
	// A person goes back.
	w.changeLandscape(s.name, func(l *landscapev1alpha1.Landscape) { l.Spec.Source.Ref.SemVer = ">=1.0.0 <1.3.0" })
	w.awaitApplied(s, first, "one")
}

// TestSubmodules: a layer in a submodule is read at the commit that the landscape names.
func TestSubmodules(t *testing.T) {
	w := newTestEnv(t)
	w.startOperator()
	s := w.newServedRepository("modules")
	base := gittest.New(t, s.server.Root, "base")
	layer := func(value string) string {
		return base.PushFile("shared/base.yaml", s.configMap("base-"+s.namespace, value), "base "+value)
	}
	layer("1")
	s.server.Git("submodule", "--quiet", "add", "../base.git", "base")
	first := s.push("with a layer", map[string]string{"landscape.yaml": s.landscapeFile("  layers: [base/shared]\n")})
	w.followServed(s, repositoryURL(gittest.ServeHTTP(t, s.server.Root).URL))
	l := w.awaitReady(s.name, "False Invalid")
	assert.Contains(t, readyText(l), "base")
	assert.Contains(t, readyText(l), "submodule, which is not read: set source.submodules")

	w.changeLandscape(s.name, func(l *landscapev1alpha1.Landscape) { l.Spec.Source.Submodules = true })
	w.awaitApplied(s, first, "1")
	assert.Equal(t, "1", w.configMapValue("base-"+s.namespace))

	next := layer("2")
	require.Never(t, func() bool { return w.configMapValue("base-"+s.namespace) != "1" }, 3*testInterval, testInterval/4)
	s.server.Git("-C", "base", "fetch", "--quiet", "origin", "main")
	s.server.Git("-C", "base", "checkout", "--quiet", next)
	w.awaitApplied(s, s.push("newer layer", nil), "1")
	assert.Equal(t, "2", w.configMapValue("base-"+s.namespace))

	// The layer's repository disappears: the applied revision stays.
	gone := layer("3")
	s.server.Git("-C", "base", "fetch", "--quiet", "origin", "main")
	s.server.Git("-C", "base", "checkout", "--quiet", gone)
	require.NoError(t, os.Rename(base.Bare, base.Bare+".away"))
	third := s.push("layer away", nil)
	l = w.awaitReady(s.name, "False RepositoryNotFound: submodule base")
	assert.Contains(t, readyText(l), "stays applied")
	assert.Equal(t, "2", w.configMapValue("base-"+s.namespace))
	require.NoError(t, os.Rename(base.Bare+".away", base.Bare))
	w.awaitApplied(s, third, "1")
	assert.Equal(t, "3", w.configMapValue("base-"+s.namespace))
	require.DirExists(t, filepath.Join(w.cacheDir, "sources", w.namespace, s.name, "modules"))
}

// TestRequestFloodFromManyAddresses: forges, hooks and people announce one push from many addresses
// at once. All get an answer, and it is one sync.
func TestRequestFloodFromManyAddresses(t *testing.T) {
	w := newTestEnv(t)
	s := w.newServedRepository("sources")
	server := gittest.ServeHTTP(t, s.server.Root)
	w.createSecret("hook", map[string]string{"token": "hook-token"})
	w.startOperator(func(r *Role) { r.Serving.ReceiverProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} })
	w.followServed(s, repositoryURL(server.URL), w.addReceiver, func(spec *landscapev1alpha1.LandscapeSpec) {
		for name, kind := range map[string]landscapev1alpha1.ReceiverType{"github": landscapev1alpha1.ReceiverGitHub, "gitlab": landscapev1alpha1.ReceiverGitLab} {
			spec.Receivers = append(spec.Receivers, landscapev1alpha1.Receiver{Name: name, Type: kind, SecretRef: landscapev1alpha1.LocalSecretReference{Name: "hook"}})
		}
	})
	w.awaitApplied(s, "", "1")
	server.ResetCounters()
	next := s.pushValue("2")
	const senders = 150
	statuses := make([]int, senders)
	var group sync.WaitGroup
	for i := range senders {
		group.Go(func() {
			body := fmt.Sprintf(`{"ref":"refs/heads/main","after":%q,"checkout_sha":%q,"pusher":{"name":"ada %d"},"user_name":"ada %d"}`, next, next, i, i)
			to := []string{"github", "gitlab"}[i%2]
			req, err := http.NewRequest(http.MethodPost, w.receiverAddress+"/hooks/"+w.namespace+"/"+s.name+"/"+to, strings.NewReader(body))
			if !assert.NoError(t, err) {
				return
			}
			mac := hmac.New(sha256.New, []byte("hook-token"))
			mac.Write([]byte(body))
			for key, value := range map[string]string{
				"X-Forwarded-For": fmt.Sprintf("192.0.2.%d", i), "Content-Type": "application/json",
				"X-GitHub-Event": "push", "X-Hub-Signature-256": "sha256=" + hex.EncodeToString(mac.Sum(nil)),
				"X-Gitlab-Event": "Push Hook", "X-Gitlab-Token": "hook-token",
			} {
				req.Header.Set(key, value)
			}
			res, err := http.DefaultClient.Do(req)
			if assert.NoError(t, err) {
				statuses[i] = res.StatusCode
				assert.NoError(t, res.Body.Close())
			}
		})
	}
	group.Wait()
	for i, status := range statuses {
		assert.Equal(t, http.StatusAccepted, status, i)
	}
	l := w.awaitApplied(s, next, "2")
	assert.Len(t, l.Status.History, 2, "one sync for all of them")
	requests, _ := server.ResetCounters()
	assert.LessOrEqual(t, len(requests), 20, requests)
}
