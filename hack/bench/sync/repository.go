// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// repository is a bare repository behind a Git server on loopback, with a work tree to push from.
type repository struct {
	*httptest.Server
	root, work string
	shoots     []string

	mu     sync.Mutex
	counts map[string]int
}

// branch is the branch that is pushed and synced.
const branch = "main"

// benchHeader is a header of the benchmark's own requests, which are not counted; benchHeaderConfig
// is the setting of Git that sends it.
const (
	benchHeader       = "X-Bench"
	benchHeaderConfig = "http.extraHeader=" + benchHeader + ": floor"
)

// newRepository pushes a copy of a folder to a new repository, and serves it.
func newRepository(ctx context.Context, root, landscape string) (*repository, error) {
	r := &repository{root: root, work: filepath.Join(root, "work"), counts: map[string]int{}}
	if err := os.CopyFS(r.work, os.DirFS(landscape)); err != nil {
		return nil, err
	}
	bare := filepath.Join(root, "landscape.git")
	for _, args := range [][]string{
		{"init", "-q", "--bare", "-b", branch, bare}, {"-C", r.work, "init", "-q", "-b", branch}, {"-C", r.work, "remote", "add", "origin", bare},
	} {
		if _, err := git(ctx, args...); err != nil {
			return nil, err
		}
	}
	err := filepath.WalkDir(filepath.Join(r.work, "projects"), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && filepath.Base(filepath.Dir(path)) == "shoots" && !strings.HasSuffix(path, "-access.yaml") {
			r.shoots = append(r.shoots, path)
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // a Garden alone has no projects
		return nil, err
	}
	slices.Sort(r.shoots)
	if _, err := r.push(ctx, "all"); err != nil {
		return nil, err
	}
	return r, r.serve(ctx)
}

// writeFile puts a file into the work tree.
func (r *repository) writeFile(name, text string) error {
	path := filepath.Join(r.work, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o600)
}

// serve uses git-http-backend, as a Git server without a forge does.
func (r *repository) serve(ctx context.Context) error {
	path, err := git(ctx, "--exec-path")
	if err != nil {
		return err
	}
	backend := &cgi.Handler{Path: filepath.Join(path, "git-http-backend"), Env: []string{"GIT_PROJECT_ROOT=" + r.root, "GIT_HTTP_EXPORT_ALL=1"}}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		if req.Header.Get(benchHeader) == "" {
			r.counts["git "+strings.TrimPrefix(req.URL.Path, "/landscape.git/")]++
		}
		r.mu.Unlock()
		backend.ServeHTTP(w, req)
	}))
	return nil
}

func (r *repository) snapshot() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[string]int{}
	for k, n := range r.counts {
		out[k] = n
	}
	return out
}

func (r *repository) cloneURL() string { return r.URL + "/landscape.git" }

// push commits and pushes everything, and returns the commit.
func (r *repository) push(ctx context.Context, message string) (string, error) {
	for _, args := range [][]string{
		{"add", "-A"}, {"-c", "user.name=bench", "-c", "user.email=bench@example.com", "-c", "gc.auto=0", "commit", "-q", "-m", message}, {"push", "-q", "origin", branch},
	} {
		if _, err := git(ctx, append([]string{"-C", r.work}, args...)...); err != nil {
			return "", err
		}
	}
	return git(ctx, "-C", r.work, "rev-parse", "HEAD")
}

// shootStep is the distance between two Shoots that change: a prime.
const shootStep = 7919

// change changes a label of one Shoot, another Shoot each time.
func (r *repository) change(i int) error {
	file := r.shoots[i*shootStep%len(r.shoots)]
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	label := regexp.MustCompile(`revision: "[^"]*"`)
	if !label.Match(data) {
		return fmt.Errorf("%s has no label revision", file)
	}
	return os.WriteFile(file, label.ReplaceAll(data, fmt.Appendf(nil, `revision: "change-%d"`, i)), 0o644)
}

// git runs Git without configuration of the user or system, and returns its output.
func git(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out)), nil
}
