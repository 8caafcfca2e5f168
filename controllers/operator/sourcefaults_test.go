// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/health/condition"
	"github.com/pergola-dev/pergola/source/gittest"
)

func withSourceSecret(name string) func(*landscapev1alpha1.LandscapeSpec) {
	return func(s *landscapev1alpha1.LandscapeSpec) {
		s.Source.SecretRef = &landscapev1alpha1.LocalSecretReference{Name: name}
	}
}

// TestSourceFaultsKeepRevision: whatever a Git server does, the applied revision stays, the reason
// is reported, and the operator recovers by itself. One operator has all faults at the same time.
func TestSourceFaultsKeepRevision(t *testing.T) {
	w := newTestEnv(t)
	w.startOperator()
	for name, test := range map[string]func(*testEnv){
		"credentials": expiredCredentials, "plain credentials": plainCredentials, "host key": anotherHostKey, "certificate": anotherCertificate,
		"gone": repositoryGone, "tag": rewrittenTag, "signatures": wrongSignatures, "huge": hugeFile, "endless": endlessPack, "timeout": slowServer,
		"busy": suspendDuringHang, "half": halfFinishedFetch, "missing Secret": missingSecret,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(w.withTest(t))
		})
	}
}

func expiredCredentials(w *testEnv) {
	s := w.newServedRepository("credentials")
	server := gittest.ServeTLS(w, s.server.Root)
	expire := requireLogin(server, "git", "first-token")
	data := map[string]string{"username": "git", "password": "first-token", "ca.crt": certificateOf(server)}
	w.createSecret("credentials", data)
	w.followServed(s, repositoryURL(server.URL), withSourceSecret("credentials"), func(spec *landscapev1alpha1.LandscapeSpec) {
		spec.Source.Interval = &metav1.Duration{Duration: time.Second}
	})
	w.awaitApplied(s, "", "1")

	expire("second-token")
	w.awaitRefused(s, "AuthenticationFailed", "1")
	// Forges lock accounts after many failures, so the operator sends one request per poll.
	server.ResetCounters()
	began := time.Now()
	asked := 0
	w.eventually("it is asked again", func() bool {
		requests, _ := server.ResetCounters()
		asked += len(requests)
		return asked >= 4
	})
	assert.Greater(w, time.Since(began), time.Second, "a server that refuses is asked no more often than others")
	next := s.pushValue("2")
	data["password"] = "second-token"
	w.replaceSecret("credentials", data)
	l := w.awaitApplied(s, next, "2")
	assert.NotContains(w, fmt.Sprint(l.Status), "token")
}

func plainCredentials(w *testEnv) {
	s := w.newServedRepository("plain")
	server := gittest.ServeHTTP(w, s.server.Root)
	requireLogin(server, "git", "a-token")
	w.createSecret("plain", map[string]string{"username": "git", "password": "a-token"})
	w.followServed(s, repositoryURL(server.URL), withSourceSecret("plain"))
	w.awaitReady(s.name, "False Invalid: "+server.URL+"/landscape.git: credentials over plain HTTP can be read by others")
	w.changeLandscape(s.name, func(l *landscapev1alpha1.Landscape) { l.Spec.Source.Insecure = true })
	w.awaitApplied(s, "", "1")
}

func anotherHostKey(w *testEnv) {
	s := w.newServedRepository("hostkey")
	server, other := gittest.ServeSSH(w, s.server.Root), gittest.ServeSSH(w, s.server.Root)
	data := map[string]string{"identity": string(server.Identity), "known_hosts": string(server.KnownHosts)}
	w.createSecret("hostkey", data)
	w.followServed(s, repositoryURL(server.URL), withSourceSecret("hostkey"))
	w.awaitApplied(s, "", "1")

	// The server of this name has another key.
	wrong := strings.Replace(string(other.KnownHosts), addressPort(other.Address), addressPort(server.Address), 1)
	data["known_hosts"] = wrong
	w.replaceSecret("hostkey", data)
	// A changeLandscape of the spec reopens it.
	w.changeLandscape(s.name, func(l *landscapev1alpha1.Landscape) { l.Spec.Source.Timeout = &metav1.Duration{Duration: time.Minute} })
	w.awaitRefused(s, "HostKeyMismatch", "1")
	// The sync after the change takes a while.
	w.awaitLandscape(s.name, func(l *landscapev1alpha1.Landscape) bool {
		return condition.Get(l.Status.Conditions, landscapev1alpha1.LandscapeStalled) != nil
	})
	next := s.pushValue("2")
	data["known_hosts"] = string(server.KnownHosts)
	w.replaceSecret("hostkey", data)
	w.awaitApplied(s, next, "2")
}

func addressPort(address string) string { return address[strings.LastIndex(address, ":")+1:] }

func anotherCertificate(w *testEnv) {
	s := w.newServedRepository("certificate")
	server := gittest.ServeTLS(w, s.server.Root)
	w.createSecret("certificate", map[string]string{"bearerToken": "nobody-asks"})
	w.followServed(s, repositoryURL(server.URL), withSourceSecret("certificate"))
	w.awaitReady(s.name, "False Unreachable")
	w.replaceSecret("certificate", map[string]string{"ca.crt": certificateOf(server)})
	w.awaitApplied(s, "", "1")
}

func repositoryGone(w *testEnv) {
	s := w.newServedRepository("gone")
	server := gittest.ServeHTTP(w, s.server.Root)
	w.followServed(s, repositoryURL(server.URL))
	w.awaitApplied(s, "", "1")
	require.NoError(w, os.Rename(s.server.Bare, s.server.Bare+".away"))
	w.awaitRefused(s, "RepositoryNotFound", "1")
	require.NoError(w, os.Rename(s.server.Bare+".away", s.server.Bare))
	w.awaitApplied(s, s.pushValue("2"), "2")
}

func rewrittenTag(w *testEnv) {
	s := w.newServedRepository("tag")
	server := gittest.ServeHTTP(w, s.server.Root)
	tag := func() { s.server.Git("push", "--quiet", "--force", "origin", "HEAD:refs/tags/v1") }
	tag()
	w.followServed(s, repositoryURL(server.URL), func(spec *landscapev1alpha1.LandscapeSpec) {
		spec.Source.Ref = &landscapev1alpha1.Reference{Tag: "v1"}
	})
	w.awaitApplied(s, "", "1")
	next := s.pushValue("2")
	tag()
	l := w.awaitRefused(s, "TagRewritten", "1")
	assert.Contains(w, readyText(l), next)
	w.changeLandscape(s.name, func(l *landscapev1alpha1.Landscape) { l.Spec.Source.Ref.Commit = next })
	w.awaitApplied(s, next, "2")
	w.changeLandscape(s.name, func(l *landscapev1alpha1.Landscape) { l.Spec.Source.Ref.Commit = "" })
	w.awaitLandscape(s.name, func(l *landscapev1alpha1.Landscape) bool {
		return strings.HasPrefix(readyText(l), "True Applied: v1@sha1:"+next) && l.Status.ObservedGeneration == l.Generation
	})
}

func wrongSignatures(w *testEnv) {
	s := w.newServedRepository("signed")
	server := gittest.ServeHTTP(w, s.server.Root)
	good, public := signingKey(w.T)
	bad, stranger := signingKey(w.T)
	signed := func(key, value string) string {
		s.Helper()
		s.pushValue(value)
		s.server.Git("-c", "gpg.format=ssh", "-c", "user.signingkey="+key, "commit", "--quiet", "--amend", "--no-edit", "-S")
		s.server.Git("push", "--quiet", "--force", "origin", "HEAD:main")
		return s.server.Git("rev-parse", "HEAD")
	}
	first := signed(good, "2")
	w.createSecret("signers", map[string]string{"ada.pub": public})
	w.followServed(s, repositoryURL(server.URL), func(spec *landscapev1alpha1.LandscapeSpec) {
		spec.Source.Verify = &landscapev1alpha1.Verification{SecretRef: landscapev1alpha1.LocalSecretReference{Name: "signers"}}
	})
	l := w.awaitApplied(s, first, "2")
	assert.NotEmpty(w, l.Status.History[0].Signer)

	unsigned := s.pushValue("3")
	l = w.awaitLandscape(s.name, func(l *landscapev1alpha1.Landscape) bool {
		return strings.HasPrefix(readyText(l), "False VerificationFailed") && strings.Contains(readyText(l), unsigned)
	})
	assert.Contains(w, readyText(l), "it is not signed")
	assert.Contains(w, readyText(l), "main@sha1:"+first+" stays applied")
	assert.Equal(w, "2", w.configMapValue(s.name))
	assert.NotNil(w, condition.Get(l.Status.Conditions, landscapev1alpha1.LandscapeStalled))
	assert.Equal(w, landscapev1alpha1.SyncFailed, l.Status.History[0].Result)

	wrong := signed(bad, "4")
	w.awaitLandscape(s.name, func(l *landscapev1alpha1.Landscape) bool {
		return strings.HasPrefix(readyText(l), "False VerificationFailed") && strings.Contains(readyText(l), wrong)
	})
	assert.Equal(w, "2", w.configMapValue(s.name))
	w.awaitApplied(s, signed(good, "5"), "5")

	// A newly trusted key counts at once.
	late := signed(bad, "6")
	w.awaitLandscape(s.name, func(l *landscapev1alpha1.Landscape) bool {
		return strings.Contains(readyText(l), late) && strings.HasPrefix(readyText(l), "False")
	})
	w.replaceSecret("signers", map[string]string{"ada.pub": public, "bob.pub": stranger})
	w.awaitApplied(s, late, "6")
}

func hugeFile(w *testEnv) {
	s := w.newServedRepository("huge")
	server := gittest.ServeHTTP(w, s.server.Root)
	w.followServed(s, repositoryURL(server.URL))
	w.awaitApplied(s, "", "1")
	// A large file that the landscape does not read is allowed.
	w.awaitApplied(s, s.push("large", map[string]string{"zeros": strings.Repeat("\x00", 33<<20), "a.yaml": s.configMap(s.name, "2")}), "2")
	s.push("read", map[string]string{"zeros.yaml": strings.Repeat("\x00", 33<<20), "a.yaml": s.configMap(s.name, "3")})
	l := w.awaitRefused(s, "Invalid", "2")
	assert.Contains(w, readyText(l), "zeros.yaml")
	assert.Contains(w, readyText(l), "has 33 MiB, and a file may have at most 32 MiB: make it smaller, or keep it out of the folders of the landscape")
	s.push("huge", map[string]string{"zeros.yaml": "", "zeros": strings.Repeat("\x00", 129<<20), "a.yaml": s.configMap(s.name, "4")})
	l = w.awaitRefused(s, "TooLarge", "2")
	assert.Contains(w, readyText(l), "a commit has a file of 129 MiB, and at most 128 MiB are transferred: ")
	assert.NotNil(w, condition.Get(l.Status.Conditions, landscapev1alpha1.LandscapeStalled))
	// A commit that removes the file suffices; no force-push is needed.
	w.awaitApplied(s, s.push("mended", map[string]string{"zeros": "", "a.yaml": s.configMap(s.name, "5")}), "5")
}

// endlessPack: a transfer ends at the limit, and nothing of it stays in the cache.
func endlessPack(w *testEnv) {
	const limit = 256 << 20
	s := w.newServedRepository("endless")
	server := gittest.ServeHTTP(w, s.server.Root)
	w.followServed(s, repositoryURL(server.URL))
	w.awaitApplied(s, "", "1")
	server.Intercept(func(rw http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPost {
			return false
		}
		rw.Header().Set("Content-Type", "application/x-git-upload-pack-result")
		_, _ = io.WriteString(rw, "00000008NAK\n")
		noise := strings.Repeat("x", 60000)
		for _, content := range []string{"PACK\x00\x00\x00\x02\x7f\xff\xff\xff", noise} {
			packet := fmt.Sprintf("%04x\x01%s", len(content)+5, content)
			for {
				if _, err := io.WriteString(rw, packet); err != nil {
					return true
				}
				if content != noise {
					break
				}
			}
		}
		return true
	})
	server.ResetCounters()
	s.pushValue("2")
	l := w.awaitRefused(s, "TooLarge", "1")
	assert.Contains(w, readyText(l), "the repository is too large: more than 256 MiB would be transferred at once")
	assert.NotNil(w, condition.Get(l.Status.Conditions, landscapev1alpha1.LandscapeStalled))
	// Nothing beyond the limit is read: the server only sends what connection buffers take.
	w.eventually("the connection ends", func() bool {
		_, sent := server.ResetCounters()
		if sent > 0 {
			assert.Greater(w, sent, int64(limit))
			assert.Less(w, sent, int64(2*(limit+limit/8)), "once with the history, and once without")
		}
		return sent > 0
	})
	require.NoError(w, filepath.WalkDir(filepath.Join(w.cacheDir, "sources", w.namespace, s.name), func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil {
			assert.Less(w, info.Size(), int64(1<<20), path)
		}
		return err
	}))
	server.Intercept(nil)
	w.awaitApplied(s, s.pushValue("3"), "3")
}

// hangServer makes a server answer nothing until release is called.
func hangServer(t *testing.T, server *gittest.HTTPServer, method string) (waiting *atomic.Int32, release func()) {
	waiting, stop := &atomic.Int32{}, make(chan struct{})
	release = sync.OnceFunc(func() {
		server.Intercept(nil)
		close(stop)
	})
	t.Cleanup(release)
	server.Intercept(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method != method {
			return false
		}
		_, _ = io.Copy(io.Discard, r.Body) // else the server does not notice the closed connection
		waiting.Add(1)
		defer waiting.Add(-1)
		select {
		case <-r.Context().Done():
		case <-stop:
		}
		panic(http.ErrAbortHandler)
	})
	return waiting, release
}

func slowServer(w *testEnv) {
	s := w.newServedRepository("slow")
	server := gittest.ServeHTTP(w, s.server.Root)
	w.followServed(s, repositoryURL(server.URL), func(spec *landscapev1alpha1.LandscapeSpec) {
		spec.Source.Timeout = &metav1.Duration{Duration: time.Second}
	})
	w.awaitApplied(s, "", "1")
	_, release := hangServer(w.T, server, http.MethodGet)
	w.awaitRefused(s, "Timeout", "1")
	release()
	w.awaitApplied(s, s.pushValue("2"), "2")
	// The server hangs in the middle of the transfer.
	_, release = hangServer(w.T, server, http.MethodPost)
	next := s.pushValue("3")
	w.awaitRefused(s, "Timeout", "2")
	release()
	w.awaitApplied(s, next, "3")
}

// suspendDuringHang: a hanging server does not block a suspension or a change of the source.
func suspendDuringHang(w *testEnv) {
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		s := w.newServedRepository("busy-" + strings.ToLower(method))
		server, other := gittest.ServeHTTP(w, s.server.Root), gittest.ServeHTTP(w, s.server.Root)
		w.followServed(s, repositoryURL(server.URL), func(spec *landscapev1alpha1.LandscapeSpec) {
			spec.Source.Timeout = &metav1.Duration{Duration: 10 * time.Minute}
		})
		w.awaitApplied(s, "", "1")
		waiting, _ := hangServer(w.T, server, method)
		next := s.pushValue("2")
		w.eventually("it waits", func() bool { return waiting.Load() > 0 })
		w.changeLandscape(s.name, func(l *landscapev1alpha1.Landscape) {
			l.Spec.Suspend, l.Spec.Suspension = true, &landscapev1alpha1.Suspension{Reason: "the server is slow"}
		})
		w.awaitReady(s.name, "Unknown Suspended: suspended: the server is slow")
		w.changeLandscape(s.name, func(l *landscapev1alpha1.Landscape) { l.Spec.Suspend, l.Spec.Suspension = false, nil })
		w.eventually("it waits again", func() bool { return waiting.Load() > 0 })
		w.changeLandscape(s.name, func(l *landscapev1alpha1.Landscape) { l.Spec.Source.URL = repositoryURL(other.URL) })
		w.awaitApplied(s, next, "2")
		w.eventually("the former server is left alone", func() bool { return waiting.Load() == 0 })
	}
}

func halfFinishedFetch(w *testEnv) {
	s := w.newServedRepository("half")
	server := gittest.ServeHTTP(w, s.server.Root)
	w.followServed(s, repositoryURL(server.URL))
	w.awaitApplied(s, "", "1")
	broken := &atomic.Int32{}
	server.Intercept(func(rw http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPost || broken.Load() >= 2 {
			return false
		}
		broken.Add(1)
		rw.Header().Set("Content-Type", "application/x-git-upload-pack-result")
		_, _ = rw.Write([]byte("0008NAK\nPACK\x00\x00\x00\x02\x00\x00\x00\x05\x99"))
		_ = http.NewResponseController(rw).Flush()
		panic(http.ErrAbortHandler)
	})
	next := s.pushValue("2")
	l := w.awaitApplied(s, next, "2")
	assert.EqualValues(w, 2, broken.Load())
	require.GreaterOrEqual(w, len(l.Status.History), 2)
	assert.Equal(w, landscapev1alpha1.SyncSucceeded, l.Status.History[0].Result)
	assert.Equal(w, landscapev1alpha1.SyncFailed, l.Status.History[1].Result)
	assert.Len(w, l.Status.History, 3, "the same failure again is no other record")
}

func missingSecret(w *testEnv) {
	s := w.newServedRepository("missing")
	server := gittest.ServeTLS(w, s.server.Root)
	requireLogin(server, "git", "t")
	w.followServed(s, repositoryURL(server.URL), withSourceSecret("missing"))
	w.awaitReady(s.name, "False SourceNotReady: spec.source.secretRef: Secret "+w.namespace+"/missing does not exist")
	w.createSecret("missing", map[string]string{"username": "git", "password": "", "ca.crt": certificateOf(server)})
	w.awaitReady(s.name, "False Invalid: spec.source.secretRef: the Secret has username and no password")
	w.replaceSecret("missing", map[string]string{"username": "git", "password": "t", "ca.crt": certificateOf(server)})
	w.awaitApplied(s, "", "1")
}
