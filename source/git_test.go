// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/source/gittest"
)

func newTestRemote(t *testing.T, options Options) Remote {
	t.Helper()
	if options.Dir == "" {
		options.Dir = filepath.Join(t.TempDir(), "cache")
	}
	r, err := NewRemote(options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	return r
}

// resolveAndFetch resolves and fetches.
func resolveAndFetch(t *testing.T, r Remote) *Snapshot {
	t.Helper()
	head, err := r.Resolve(t.Context())
	require.NoError(t, err)
	snapshot, err := r.Fetch(t.Context(), head)
	require.NoError(t, err)
	return snapshot
}

func readSnapshotFile(t *testing.T, s *Snapshot, name string) string {
	t.Helper()
	data, err := fs.ReadFile(s.FS, name)
	require.NoError(t, err)
	return string(data)
}

func requireReason(t *testing.T, want Reason, err error) {
	t.Helper()
	require.Error(t, err)
	require.Equal(t, want, ReasonOf(err), "%v", err)
	require.Equal(t, want.isPermanent(), IsPermanent(err))
}

// incompleteFiles returns the incomplete files of a cache.
func incompleteFiles(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	require.NoError(t, filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(d.Name(), incomingPrefix) {
			out = append(out, name)
		}
		return err
	}))
	return out
}

func TestPollAndFetchOverHTTP(t *testing.T) {
	root := t.TempDir()
	repo := gittest.New(t, root, "landscape")
	for i := range 40 {
		repo.WriteFile(fmt.Sprintf("seeds/%03d.yaml", i), strings.Repeat(fmt.Sprintf("line %d\n", i), 50))
	}
	first := repo.PushFile("landscape.yaml", "one", "first\n\nbody")
	server := gittest.ServeHTTP(t, root)
	dir := filepath.Join(t.TempDir(), "cache")
	r := newTestRemote(t, Options{URL: server.URL + "/landscape.git", Dir: dir})

	s := resolveAndFetch(t, r)
	assert.Equal(t, Head{Name: "main", Commit: first}, s.Head)
	assert.Equal(t, "main@sha1:"+first, s.Revision())
	assert.Equal(t, "Ada <ada@example.com>", s.Author)
	assert.Equal(t, "first", s.Subject)
	assert.Empty(t, s.Rewritten)
	assert.Equal(t, "one", readSnapshotFile(t, s, "landscape.yaml"))
	require.NoError(t, fstest.TestFS(s.FS, "landscape.yaml", "seeds/039.yaml"))
	requests, _ := server.ResetCounters()
	assert.Equal(t, []string{"GET /landscape.git/info/refs?service=git-upload-pack", "POST /landscape.git/git-upload-pack"}, requests)

	// Nothing new: one request, and no objects are fetched again.
	again := resolveAndFetch(t, r)
	assert.Equal(t, s.Head, again.Head)
	requests, _ = server.ResetCounters()
	assert.Equal(t, []string{"GET /landscape.git/info/refs?service=git-upload-pack"}, requests)

	// One more commit costs a few more bytes.
	second := repo.PushFile("landscape.yaml", "two", "second")
	s = resolveAndFetch(t, r)
	assert.Equal(t, second, s.Commit)
	assert.Empty(t, s.Rewritten)
	assert.Equal(t, "two", readSnapshotFile(t, s, "landscape.yaml"))
	assert.Equal(t, "one", readSnapshotFile(t, again, "landscape.yaml"), "a former snapshot stays as it is")
	requests, sent := server.ResetCounters()
	assert.Len(t, requests, 2)
	assert.Less(t, sent, int64(4096))

	// After a restart both are available without a request for commits.
	require.NoError(t, r.Close())
	r = newTestRemote(t, Options{URL: server.URL + "/landscape.git", Dir: dir})
	s, err := r.At(t.Context(), first)
	require.NoError(t, err)
	assert.Equal(t, "one", readSnapshotFile(t, s, "landscape.yaml"))
	s, err = r.Fetch(t.Context(), Head{Name: "main", Commit: second})
	require.NoError(t, err)
	assert.Equal(t, "two", readSnapshotFile(t, s, "landscape.yaml"))
	requests, _ = server.ResetCounters()
	assert.Empty(t, requests)
	assert.Empty(t, incompleteFiles(t, dir))
}

// TestMergeOfAnOldBranch: a shallow cache fetches a merge of an older branch without the rest of
// the history.
func TestMergeOfAnOldBranch(t *testing.T) {
	root := t.TempDir()
	repo := gittest.New(t, root, "landscape")
	repo.PushFile("a.yaml", "0", "start")
	repo.Git("branch", "old")
	repo.CommitMany(30, "a.yaml")
	repo.Git("push", "--quiet", "origin", "HEAD:main")
	server := gittest.ServeHTTP(t, root)
	r := newTestRemote(t, Options{URL: server.URL + "/landscape.git"})
	resolveAndFetch(t, r)
	repo.Git("checkout", "--quiet", "old")
	repo.WriteFile("b.yaml", "b")
	repo.Commit("on the side")
	repo.Git("checkout", "--quiet", "main")
	repo.Git("merge", "--quiet", "--no-ff", "--message", "merge", "old")
	repo.Git("push", "--quiet", "origin", "HEAD:main")
	server.ResetCounters()
	s := resolveAndFetch(t, r)
	assert.Equal(t, "b", readSnapshotFile(t, s, "b.yaml"))
	assert.Empty(t, s.Rewritten)
	_, sent := server.ResetCounters()
	assert.Less(t, sent, int64(4096))
}

func TestForcePushIsFollowedAndTold(t *testing.T) {
	root := t.TempDir()
	repo := gittest.New(t, root, "landscape")
	repo.PushFile("a.yaml", "0", "start")
	repo.CommitMany(60, "b.yaml")
	former := repo.PushFile("a.yaml", "1", "one")
	server := gittest.ServeHTTP(t, root)
	dir := filepath.Join(t.TempDir(), "cache")
	r := newTestRemote(t, Options{URL: server.URL + "/landscape.git", Dir: dir})
	resolveAndFetch(t, r)

	repo.Git("reset", "--quiet", "--hard", "HEAD~3")
	repo.WriteFile("a.yaml", "2")
	now := repo.Commit("instead")
	repo.Git("push", "--quiet", "--force", "origin", "HEAD:main")
	s := resolveAndFetch(t, r)
	assert.Equal(t, now, s.Commit)
	assert.Equal(t, former, s.Rewritten)
	assert.Equal(t, former, resolveAndFetch(t, r).Rewritten, "as long as the branch stays there")
	require.NoError(t, r.Close())
	r = newTestRemote(t, Options{URL: server.URL + "/landscape.git", Dir: dir})
	assert.Equal(t, former, resolveAndFetch(t, r).Rewritten)
	old, err := r.At(t.Context(), former)
	require.NoError(t, err, "the former commit is still in the cache")
	assert.Equal(t, "1", readSnapshotFile(t, old, "a.yaml"))

	// More commits than one fetch transfers are not a force-push.
	repo.CommitMany(120, "b.yaml")
	repo.PushFile("a.yaml", "3", "after many")
	assert.Empty(t, resolveAndFetch(t, r).Rewritten)
}

func TestReferences(t *testing.T) {
	root := t.TempDir()
	repo := gittest.New(t, root, "landscape")
	one := repo.PushFile("a.yaml", "1", "one")
	repo.Git("tag", "v1.0.0")
	two := repo.PushFile("a.yaml", "2", "two")
	repo.Git("tag", "--annotate", "--message", "x", "v1.2.0")
	three := repo.PushFile("a.yaml", "3", "three")
	repo.Git("tag", "v2.0.0-rc.1")
	repo.Git("tag", "nightly")
	repo.Git("branch", "side", one)
	repo.Git("checkout", "--quiet", "side")
	side := repo.Commit("aside")
	repo.Git("push", "--quiet", "--tags", "origin", "main", "side")
	server := gittest.ServeHTTP(t, root)
	url := server.URL + "/landscape.git"
	for name, c := range map[string]struct {
		ref    landscapev1alpha1.Reference
		commit string
		name   string
		reason Reason
	}{
		"default":                  {commit: three, name: "main"},
		"branch":                   {ref: landscapev1alpha1.Reference{Branch: "side"}, commit: side, name: "side"},
		"tag":                      {ref: landscapev1alpha1.Reference{Tag: "v1.0.0", Branch: "side"}, commit: one, name: "v1.0.0"},
		"annotated tag":            {ref: landscapev1alpha1.Reference{Tag: "v1.2.0"}, commit: two, name: "v1.2.0"},
		"range":                    {ref: landscapev1alpha1.Reference{SemVer: ">=1.0.0", Tag: "v1.0.0"}, commit: two, name: "v1.2.0"},
		"range with pre-releases":  {ref: landscapev1alpha1.Reference{SemVer: ">=1.0.0-0"}, commit: three, name: "v2.0.0-rc.1"},
		"commit":                   {ref: landscapev1alpha1.Reference{Commit: one}, commit: one},
		"commit on its branch":     {ref: landscapev1alpha1.Reference{Commit: one, Branch: "side"}, commit: one, name: "side"},
		"commit on another branch": {ref: landscapev1alpha1.Reference{Commit: two, Branch: "side"}, reason: ReasonReferenceNotFound},
		"no such commit":           {ref: landscapev1alpha1.Reference{Commit: strings.Repeat("1", 40)}, reason: ReasonReferenceNotFound},
		"no such branch":           {ref: landscapev1alpha1.Reference{Branch: "gone"}, reason: ReasonReferenceNotFound},
		"no such tag":              {ref: landscapev1alpha1.Reference{Tag: "gone"}, reason: ReasonReferenceNotFound},
		"nothing in the range":     {ref: landscapev1alpha1.Reference{SemVer: ">=9"}, reason: ReasonReferenceNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTestRemote(t, Options{URL: url, Ref: c.ref})
			head, err := r.Resolve(t.Context())
			var s *Snapshot
			if err == nil {
				s, err = r.Fetch(t.Context(), head)
			}
			if c.reason != "" {
				requireReason(t, c.reason, err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, c.commit, s.Commit)
			assert.Equal(t, c.name, s.Name)
		})
	}
	// The branch is deleted while it is used.
	r := newTestRemote(t, Options{URL: url, Ref: landscapev1alpha1.Reference{Branch: "side"}})
	resolveAndFetch(t, r)
	repo.Git("push", "--quiet", "origin", ":side")
	_, err := r.Resolve(t.Context())
	requireReason(t, ReasonReferenceNotFound, err)
	s, err := r.At(t.Context(), side)
	require.NoError(t, err, "what was fetched stays")
	assert.Equal(t, side, s.Commit)
}

func TestRewrittenTagIsRefused(t *testing.T) {
	root := t.TempDir()
	repo := gittest.New(t, root, "landscape")
	one := repo.PushFile("a.yaml", "1", "one")
	repo.Git("tag", "v1.0.0")
	repo.Git("push", "--quiet", "--tags", "origin")
	server := gittest.ServeHTTP(t, root)
	dir := filepath.Join(t.TempDir(), "cache")
	options := Options{URL: server.URL + "/landscape.git", Dir: dir, Ref: landscapev1alpha1.Reference{Tag: "v1.0.0"}}
	r := newTestRemote(t, options)
	resolveAndFetch(t, r)
	require.NoError(t, r.Close())

	two := repo.PushFile("a.yaml", "2", "two")
	repo.Git("tag", "--force", "v1.0.0")
	repo.Git("push", "--quiet", "--force", "--tags", "origin")
	r = newTestRemote(t, options)
	_, err := r.Resolve(t.Context())
	requireReason(t, ReasonTagRewritten, err)
	require.ErrorContains(t, err, one)
	require.ErrorContains(t, err, "ref.commit: "+two)
	_, err = r.Fetch(t.Context(), Head{Name: "v1.0.0", Commit: two})
	requireReason(t, ReasonTagRewritten, err)
	require.NoError(t, r.Close())

	// Without the cache, the applied revision identifies the tag.
	lost := options
	lost.Dir, lost.AppliedRevision = filepath.Join(t.TempDir(), "cache"), "v1.0.0@sha1:"+one
	_, err = newTestRemote(t, lost).Resolve(t.Context())
	requireReason(t, ReasonTagRewritten, err)

	// A user accepts it by naming the commit.
	accepted := options
	accepted.Ref.Commit = two
	r = newTestRemote(t, accepted)
	assert.Equal(t, "v1.0.0@sha1:"+two, resolveAndFetch(t, r).Revision())
	require.NoError(t, r.Close())
	assert.Equal(t, two, resolveAndFetch(t, newTestRemote(t, options)).Commit)
}

func TestBrokenCacheIsMadeAnew(t *testing.T) {
	root := t.TempDir()
	repo := gittest.New(t, root, "landscape")
	repo.PushFile("a.yaml", strings.Repeat("a", 1000), "one")
	server := gittest.ServeHTTP(t, root)
	for name, damage := range map[string]func(t *testing.T, dir string){
		"notes": func(t *testing.T, dir string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, metadataFile), []byte("{"), 0o600))
		},
		"no notes": func(t *testing.T, dir string) { require.NoError(t, os.Remove(filepath.Join(dir, metadataFile))) },
		"a pack": func(t *testing.T, dir string) {
			packs, err := filepath.Glob(filepath.Join(dir, "objects-*", "objects", "pack", "*.pack"))
			require.NoError(t, err)
			require.NotEmpty(t, packs)
			data, err := os.ReadFile(packs[0])
			require.NoError(t, err)
			data[len(data)/2] ^= 0xff
			require.NoError(t, os.Chmod(packs[0], 0o600))
			require.NoError(t, os.WriteFile(packs[0], data, 0o600))
		},
		"no index": func(t *testing.T, dir string) {
			indexes, err := filepath.Glob(filepath.Join(dir, "objects-*", "objects", "pack", "*.idx"))
			require.NoError(t, err)
			require.NoError(t, os.Remove(indexes[0]))
		},
		"no packs": func(t *testing.T, dir string) {
			require.NoError(t, os.RemoveAll(filepath.Join(dir, "objects-1", "objects")))
		},
		"half a transfer": func(t *testing.T, dir string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, incomingPrefix+"123"), []byte("PACK"), 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "cache")
			options := Options{URL: server.URL + "/landscape.git", Dir: dir}
			r := newTestRemote(t, options)
			resolveAndFetch(t, r)
			require.NoError(t, r.Close())
			damage(t, dir)
			assert.Equal(t, strings.Repeat("a", 1000), readSnapshotFile(t, resolveAndFetch(t, newTestRemote(t, options)), "a.yaml"))
			assert.Empty(t, incompleteFiles(t, dir))
		})
	}
	// A remote with another URL does not use the cache.
	dir := filepath.Join(t.TempDir(), "cache")
	r := newTestRemote(t, Options{URL: server.URL + "/landscape.git", Dir: dir})
	former := resolveAndFetch(t, r)
	require.NoError(t, r.Close())
	other := gittest.New(t, root, "other")
	other.PushFile("b.yaml", "b", "b")
	_, err := newTestRemote(t, Options{URL: server.URL + "/other.git", Dir: dir}).At(t.Context(), former.Commit)
	requireReason(t, ReasonReferenceNotFound, err)
}

func TestBrokenTransfer(t *testing.T) {
	root := t.TempDir()
	repo := gittest.New(t, root, "landscape")
	for i := range 50 {
		repo.WriteFile(fmt.Sprintf("%d.yaml", i), fmt.Sprintf("%d %x", i, time.Duration(i*7919)))
	}
	commit := repo.PushFile("a.yaml", "1", "one")
	server := gittest.ServeHTTP(t, root)
	dir := filepath.Join(t.TempDir(), "cache")
	r := newTestRemote(t, Options{URL: server.URL + "/landscape.git", Dir: dir})
	head, err := r.Resolve(t.Context())
	require.NoError(t, err)
	server.Intercept(func(w http.ResponseWriter, req *http.Request) bool {
		if req.Method != http.MethodPost {
			return false
		}
		w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
		_, _ = w.Write([]byte("0034shallow " + commit + "00000008NAK\n0020\x01PACK\x00\x00\x00\x02\x00\x00"))
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	_, err = r.Fetch(t.Context(), head)
	requireReason(t, ReasonUnreachable, err)
	assert.Empty(t, incompleteFiles(t, dir))
	server.Intercept(nil)
	s, err := r.Fetch(t.Context(), head)
	require.NoError(t, err)
	assert.Equal(t, "1", readSnapshotFile(t, s, "a.yaml"))
}

func TestAnswersOfHTTPServers(t *testing.T) {
	root := t.TempDir()
	repo := gittest.New(t, root, "landscape")
	repo.PushFile("a.yaml", "1", "one")
	server := gittest.ServeHTTP(t, root)
	const secret = "hunter2-secret"
	options := Options{URL: server.URL + "/landscape.git", Credentials: Credentials{Username: "bot", Password: secret}, Insecure: true}
	r := newTestRemote(t, options)
	resolveAndFetch(t, r)
	for status, want := range map[int]Reason{401: ReasonAuthenticationFailed, 403: ReasonAuthenticationFailed, 404: ReasonRepositoryNotFound,
		410: ReasonRepositoryNotFound, 500: ReasonUnreachable, 503: ReasonUnreachable, 302: ReasonRepositoryNotFound} {
		server.Intercept(func(w http.ResponseWriter, req *http.Request) bool {
			w.Header().Set("Location", "http://elsewhere.example.com/x/info/refs")
			w.WriteHeader(status)
			_, _ = w.Write([]byte("you sent " + req.Header.Get("Authorization") + " " + secret))
			return true
		})
		_, err := r.Resolve(t.Context())
		requireReason(t, want, err)
		assert.NotContains(t, err.Error(), secret)
	}
	server.Intercept(func(w http.ResponseWriter, req *http.Request) bool {
		name, password, _ := req.BasicAuth()
		assert.Equal(t, "bot:"+secret, name+":"+password)
		_, _ = w.Write([]byte("<html>hello</html>"))
		return true
	})
	_, err := r.Resolve(t.Context())
	requireReason(t, ReasonRepositoryNotFound, err)
	server.Intercept(nil)
	server.Close()
	_, err = r.Resolve(t.Context())
	requireReason(t, ReasonUnreachable, err)
}

func TestSlowServer(t *testing.T) {
	root := t.TempDir()
	repo := gittest.New(t, root, "landscape")
	repo.PushFile("a.yaml", "1", "one")
	server := gittest.ServeHTTP(t, root)
	stuck := make(chan struct{})
	defer close(stuck)
	server.Intercept(func(w http.ResponseWriter, req *http.Request) bool {
		select {
		case <-stuck:
		case <-req.Context().Done():
		}
		return true
	})
	r := newTestRemote(t, Options{URL: server.URL + "/landscape.git", Timeout: 50 * time.Millisecond})
	_, err := r.Resolve(t.Context())
	requireReason(t, ReasonTimeout, err)

	patient := newTestRemote(t, Options{URL: server.URL + "/landscape.git"})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := patient.Resolve(ctx)
		done <- err
	}()
	cancel()
	select {
	case err := <-done:
		require.True(t, errors.Is(err, context.Canceled))
	case <-time.After(5 * time.Second):
		t.Fatal("the end of the context does not end the request")
	}
}
