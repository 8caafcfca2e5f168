// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/source/gittest"
)

func TestLimits(t *testing.T) {
	root := t.TempDir()
	repo := gittest.New(t, root, "landscape")
	noise := make([]byte, 1<<20)
	_, err := rand.Read(noise)
	require.NoError(t, err)
	repo.WriteFile("noise", string(noise))
	for i := range 20 {
		repo.WriteFile(fmt.Sprintf("many/%d", i), fmt.Sprint(i))
	}
	// A megabyte of zeros is a kilobyte of transfer.
	repo.WriteFile("zeros", strings.Repeat("\x00", 4<<20))
	repo.PushFile("a.yaml", "1", "one")
	server := gittest.ServeHTTP(t, root)
	for name, limits := range map[string]Limits{
		"transferred": {Transferred: 100 << 10},
		"a file":      {Object: 2 << 20},
		"unpacked":    {Unpacked: 3 << 20},
		"files":       {Files: 15},
		"objects":     {Files: 1},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "cache")
			r := newTestRemote(t, Options{URL: server.URL + "/landscape.git", Dir: dir, Limits: limits})
			head, err := r.Resolve(t.Context())
			require.NoError(t, err)
			_, err = r.Fetch(t.Context(), head)
			requireReason(t, ReasonTooLarge, err)
			assert.Empty(t, incompleteFiles(t, dir))
			if name != "files" {
				packs, err := filepath.Glob(filepath.Join(dir, "objects-*", "objects", "pack", "*"))
				require.NoError(t, err)
				assert.Empty(t, packs)
			}
		})
	}
}

// TestLargeFiles: a large file that no one reads is accepted. The error about one that is read has
// its size and a remedy. A file above the transfer limit blocks its revision; the next revision
// without it is fetched, whatever its history.
func TestLargeFiles(t *testing.T) {
	for name, url := range map[string]func(*gittest.Repository) string{
		"http": func(repo *gittest.Repository) string { return gittest.ServeHTTP(t, repo.Root).URL + "/landscape.git" },
		"file": func(repo *gittest.Repository) string { return "file://" + repo.Bare },
	} {
		t.Run(name, func(t *testing.T) {
			repo := gittest.New(t, t.TempDir(), "landscape")
			repo.PushFile("a.yaml", "1", "one")
			options := Options{URL: url(repo)}
			options.Dir, options.Limits = filepath.Join(t.TempDir(), "cache"), Limits{File: 1 << 20, Object: 3 << 20}
			r := newTestRemote(t, options)
			resolveAndFetch(t, r)
			repo.PushFile("big/zeros.yaml", strings.Repeat("\x00", 2<<20), "large")
			s := resolveAndFetch(t, r)
			assert.Equal(t, "1", readSnapshotFile(t, s, "a.yaml"))
			for _, read := range []func() error{
				func() error { _, err := fs.ReadFile(s.FS, "big/zeros.yaml"); return err },
				func() error { _, err := s.FS.Open("big/zeros.yaml"); return err },
			} {
				err := read()
				requireReason(t, ReasonTooLarge, err)
				require.ErrorContains(t, err, "big/zeros.yaml has 2 MiB, and a file may have at most 1 MiB: make it smaller")
			}
			info, err := fs.Stat(s.FS, "big/zeros.yaml")
			require.NoError(t, err)
			assert.EqualValues(t, 2<<20, info.Size())
			require.NoError(t, CheckFiles(s.FS, "."))

			repo.PushFile("big/zeros.yaml", strings.Repeat("\x00", 5<<20), "huge")
			head, err := r.Resolve(t.Context())
			require.NoError(t, err)
			_, err = r.Fetch(t.Context(), head)
			requireReason(t, ReasonTooLarge, err)
			require.ErrorContains(t, err, "a commit has a file of 5 MiB, and at most 3 MiB are transferred: find it by `git ls-tree -r -l COMMIT")

			repo.Git("rm", "--quiet", "big/zeros.yaml")
			for _, value := range []string{"2", "3"} {
				repo.PushFile("a.yaml", value, "without")
				s = resolveAndFetch(t, r)
				assert.Equal(t, value, readSnapshotFile(t, s, "a.yaml"))
				assert.Empty(t, s.Rewritten, "the branch moved on")
				_, err = fs.Stat(s.FS, "big/zeros.yaml")
				require.ErrorIs(t, err, fs.ErrNotExist)
			}
			// A new cache starts with the objects that fit.
			options.Dir = filepath.Join(t.TempDir(), "cache")
			assert.Equal(t, "3", readSnapshotFile(t, resolveAndFetch(t, newTestRemote(t, options)), "a.yaml"))
		})
	}
}

func TestManyReferencesAreBounded(t *testing.T) {
	line := strings.Repeat("a", 40) + " refs/heads/" + strings.Repeat("b", 1000) + "\n"
	packet := []byte(fmt.Sprintf("%04x%s", len(line)+4, line))
	first := strings.Repeat("a", 40) + " HEAD\x00agent=x\n"
	endless := &endlessReader{start: []byte(fmt.Sprintf("%04x%s", len(first)+4, first)), packet: packet}
	_, err := readReferences(endless)
	requireReason(t, ReasonTooLarge, err)
}

type endlessReader struct{ start, packet []byte }

func (e *endlessReader) Read(p []byte) (int, error) {
	if len(e.start) == 0 {
		e.start = e.packet
	}
	n := copy(p, e.start)
	e.start = e.start[n:]
	return n, nil
}

func TestNoGoroutineIsLeaked(t *testing.T) {
	root := t.TempDir()
	repo := gittest.New(t, root, "landscape")
	noise := make([]byte, 1<<20)
	_, err := rand.Read(noise)
	require.NoError(t, err)
	repo.PushFile("noise", string(noise), "one")
	server := gittest.ServeHTTP(t, root)
	secure := gittest.ServeSSH(t, root)
	before := runtime.NumGoroutine()
	server.Intercept(func(w http.ResponseWriter, req *http.Request) bool {
		if req.Method != http.MethodPost {
			return false
		}
		w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
		_, _ = w.Write([]byte("0008NAK\n"))
		_ = http.NewResponseController(w).Flush()
		<-req.Context().Done()
		return true
	})
	credentials, err := CredentialsOf(secure.URL, map[string][]byte{"identity": secure.Identity, "known_hosts": secure.KnownHosts})
	require.NoError(t, err)
	for _, options := range []Options{
		{URL: server.URL + "/landscape.git", Timeout: 100 * time.Millisecond},
		{URL: secure.URL + "/landscape.git", Credentials: credentials, Limits: Limits{Transferred: 1000}},
		{URL: "file://" + repo.Bare, Limits: Limits{Transferred: 1000}},
	} {
		r, err := NewRemote(options)
		require.NoError(t, err)
		head, err := r.Resolve(t.Context())
		require.NoError(t, err)
		_, err = r.Fetch(t.Context(), head)
		require.Error(t, err)
		require.NoError(t, r.Close())
	}
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= before+2 }, 10*time.Second, 20*time.Millisecond, "goroutines are left")
}

func TestConcurrentFetches(t *testing.T) {
	root := t.TempDir()
	repo := gittest.New(t, root, "landscape")
	one := repo.PushFile("a.yaml", "1", "one")
	two := repo.PushFile("a.yaml", "2", "two")
	server := gittest.ServeHTTP(t, root)
	r := newTestRemote(t, Options{URL: server.URL + "/landscape.git"})
	var done sync.WaitGroup
	for range 8 {
		done.Go(func() {
			head, err := r.Resolve(t.Context())
			if !assert.NoError(t, err) {
				return
			}
			s, err := r.Fetch(t.Context(), head)
			if !assert.NoError(t, err) {
				return
			}
			assert.Equal(t, two, s.Commit)
			data, err := fs.ReadFile(s.FS, "a.yaml")
			assert.NoError(t, err)
			assert.Equal(t, "2", string(data))
			old, err := r.At(t.Context(), one)
			if !assert.NoError(t, err) {
				return
			}
			data, err = fs.ReadFile(old.FS, "a.yaml")
			assert.NoError(t, err)
			assert.Equal(t, "1", string(data))
		})
	}
	done.Wait()
	requests, _ := server.ResetCounters()
	transfers := 0
	for _, request := range requests {
		if strings.HasPrefix(request, http.MethodPost) {
			transfers++
		}
	}
	assert.Equal(t, 1, transfers)
}

// TestManyFetches: the number of the cache's files does not grow with each commit.
func TestManyFetches(t *testing.T) {
	root := t.TempDir()
	repo := gittest.New(t, root, "landscape")
	first := repo.PushFile("a.yaml", "0", "0")
	dir := filepath.Join(t.TempDir(), "cache")
	r := newTestRemote(t, Options{URL: "file://" + repo.Bare, Dir: dir})
	former := resolveAndFetch(t, r)
	for i := range maxPacks + 5 {
		repo.PushFile("a.yaml", fmt.Sprint(i), "more")
		assert.Equal(t, fmt.Sprint(i), readSnapshotFile(t, resolveAndFetch(t, r), "a.yaml"))
	}
	packs, err := filepath.Glob(filepath.Join(dir, "objects-*", "objects", "pack", "*.pack"))
	require.NoError(t, err)
	assert.Less(t, len(packs), 10)
	assert.Equal(t, "0", readSnapshotFile(t, former, "a.yaml"), "a snapshot from before is still there")
	s, err := r.At(t.Context(), first)
	require.NoError(t, err)
	assert.Equal(t, "0", readSnapshotFile(t, s, "a.yaml"))
}

func TestInvalidEntryNames(t *testing.T) {
	root := t.TempDir()
	repo := gittest.New(t, root, "landscape")
	repo.PushFile("a.yaml", "1", "one")
	blob := repo.Git("rev-parse", "HEAD:a.yaml")
	for _, name := range []string{"..", ".git", ".GIT", "."} {
		var raw bytes.Buffer
		fmt.Fprintf(&raw, "100644 %s\x00", name)
		for i := 0; i < len(blob); i += 2 {
			var b byte
			_, err := fmt.Sscanf(blob[i:i+2], "%02x", &b)
			require.NoError(t, err)
			raw.WriteByte(b)
		}
		file := filepath.Join(t.TempDir(), "tree")
		require.NoError(t, os.WriteFile(file, raw.Bytes(), 0o600))
		tree := repo.Git("hash-object", "-t", "tree", "-w", "--literally", file)
		commit := repo.Git("commit-tree", "-m", "bad", tree)
		repo.Git("push", "--quiet", "--force", "origin", commit+":main")
		r := newTestRemote(t, Options{URL: "file://" + repo.Bare})
		head, err := r.Resolve(t.Context())
		require.NoError(t, err)
		_, err = r.Fetch(t.Context(), head)
		require.Error(t, err, name)
		require.ErrorContains(t, err, "name")
	}
}
