// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/source/receiver"
)

const hookToken = "hook-t0ken-not-to-be-seen"

// fakeOperator is the receiving side: a real Receiver with scripted syncs.
type fakeOperator struct {
	mu       sync.Mutex
	pushes   map[string][]receiver.Push
	progress []receiver.Progress
}

func (o *fakeOperator) Receiver(_ context.Context, namespace, landscape, name string) (receiver.Target, bool) {
	ref := map[string]landscapev1alpha1.Reference{"prod": {Branch: "main"}, "dev": {Branch: "dev"}}
	r, ok := ref[landscape]
	return receiver.Target{Type: landscapev1alpha1.ReceiverHMAC, Token: []byte(hookToken), Ref: r}, ok && namespace == "garden" && name == "push"
}

func (o *fakeOperator) Request(_ context.Context, key receiver.Key, push receiver.Push) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.pushes[key.Name] = append(o.pushes[key.Name], push)
}

func (o *fakeOperator) Follow(_ context.Context, key receiver.Key, _ string) (<-chan receiver.Progress, error) {
	out := make(chan receiver.Progress, len(o.progress))
	for _, p := range o.progress {
		out <- p
	}
	return out, nil
}

func (o *fakeOperator) pushesTo(name string) []receiver.Push {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.pushes[name]
}

func startFakeOperator(t *testing.T, follows ...receiver.Progress) (*fakeOperator, string) {
	t.Helper()
	o := &fakeOperator{pushes: map[string][]receiver.Push{}, progress: follows}
	server := httptest.NewServer(receiver.New(receiver.Options{Requester: o, Log: logr.Discard()}))
	t.Cleanup(server.Close)
	return o, server.URL
}

// newBareRepository creates a bare repository with the hook of the docs, and a clone of it to push
// from.
func newBareRepository(t *testing.T, url string) (push func(script string) string) {
	t.Helper()
	dir := t.TempDir()
	self, err := os.Executable()
	require.NoError(t, err)
	token := filepath.Join(dir, "token")
	require.NoError(t, os.WriteFile(token, []byte(hookToken+"\n"), 0o600))
	shell := func(script string) string {
		cmd := exec.Command("sh", "-c", script)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GL_USER=ada", "GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@example.org", "GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@example.org")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		assert.NotContains(t, string(out), hookToken)
		return string(out)
	}
	shell("git init -q --bare -b main r.git && git init -q -b main clone && cd clone && git remote add origin ../r.git && git commit -q --allow-empty -m first")
	script := "#!/bin/sh\n" + envRunAsProgram + "=1 exec " + self + " hook post-receive --url " + url + " --token-file " + token + " --landscape garden/prod --landscape garden/dev --timeout 20s\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "r.git", "hooks", "post-receive"), []byte(script), 0o755))
	return func(script string) string { return shell("cd clone && " + script) }
}

func TestPusherSeesTheSync(t *testing.T) {
	now := time.Now()
	o, url := startFakeOperator(t,
		receiver.Progress{Time: now, Phase: receiver.PhaseFetching}, receiver.Progress{Time: now, Phase: receiver.PhaseApplying, Message: "seed a\x1b[2J"},
		receiver.Progress{Time: now, Phase: receiver.PhaseApplied, Message: "142 objects, all healthy.", Done: true})
	push := newBareRepository(t, url)
	text := push("git push -q origin main main:refs/heads/other")
	for _, line := range []string{"garden/prod: Queued: A sync was requested.", "garden/prod: Fetching", "garden/prod: Applying: seed a[2J", "garden/prod: Applied: 142 objects, all healthy."} {
		assert.Contains(t, text, "remote: "+line)
	}
	assert.NotContains(t, text, "garden/dev", "its branch was not pushed")
	require.Len(t, o.pushesTo("prod"), 1)
	pushed := o.pushesTo("prod")[0]
	assert.Equal(t, "refs/heads/main", pushed.Ref)
	assert.Equal(t, strings.TrimSpace(push("git rev-parse HEAD")), pushed.Commit)
	assert.Equal(t, "ada", pushed.Pusher)
	assert.Contains(t, push("git push -q origin main:dev"), "remote: garden/dev: Applied")
	push("git push -q origin :dev") // a deleted branch is sent, too
	require.Eventually(t, func() bool { return len(o.pushesTo("dev")) == 2 }, 10*time.Second, 10*time.Millisecond)
	assert.Empty(t, o.pushesTo("dev")[1].Commit)
}

func TestPusherSeesAFailure(t *testing.T) {
	for name, test := range map[string]struct {
		end  receiver.Progress
		says []string
	}{
		"not applied": {receiver.Progress{Phase: receiver.PhaseFailed, Done: true, Err: "landscape/seed.yaml:3:1: error: no such field"},
			[]string{"remote: garden/prod: SYNC FAILED of garden/prod: landscape/seed.yaml:3:1: error: no such field", "Objects that were applied before stay."}},
		"not on a seed": {receiver.Progress{Phase: receiver.PhaseFailed, Done: true, Applied: true, Message: "2 objects changed", Err: "the gardenlet of seed a does not work"},
			[]string{"remote: garden/prod: NOT DONE ON ALL SEEDS of garden/prod: the gardenlet of seed a does not work", "The commit is applied in the runtime cluster and the virtual garden."}},
	} {
		t.Run(name, func(t *testing.T) {
			_, url := startFakeOperator(t, test.end)
			text := newBareRepository(t, url)("git push -q origin main && echo pushed")
			for _, line := range append(test.says, "pushed\n") {
				assert.Contains(t, text, line)
			}
		})
	}
}

func TestPushWithoutAnOperator(t *testing.T) {
	server := httptest.NewServer(nil)
	url := server.URL
	server.Close()
	text := newBareRepository(t, url)("git push -q origin main && echo pushed")
	assert.Contains(t, text, "remote: garden/prod: A sync cannot be requested now (dial tcp")
	assert.Contains(t, text, "pushed\n")
	assert.NotContains(t, text, "Error")
}

func TestHookRefused(t *testing.T) {
	_, url := startFakeOperator(t)
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte("another"), 0o600))
	line := strings.Repeat("0", 40) + " " + strings.Repeat("1", 40) + " refs/heads/main\n"
	run := func(stdin string, more ...string) commandResult {
		return pergolaWith(t, stdin, append([]string{"hook", "post-receive", "--url", url, "--token-file", token}, more...)...)
	}
	out := run(line, "--landscape", "garden/prod")
	assert.Equal(t, 0, out.code)
	assert.Contains(t, out.stdout, "it answered 404: no such receiver, or a wrong secret")
	for _, c := range []struct {
		stdin string
		more  []string
		says  string
	}{
		{line, []string{"--landscape", "prod"}, "want NAMESPACE/NAME"}, {line, nil, "--landscape (Landscape to sync, and its receiver; may be given several times) is missing"}, {"hello\n", []string{"--landscape", "garden/prod"}, "OLD NEW REF"},
		{line, []string{"--landscape", "garden/prod", "--url", "x"}, "--url"}, {line, []string{"--landscape", "garden/prod", "--ca-file", token}, "PEM"},
	} {
		out := run(c.stdin, c.more...)
		assert.Equal(t, 2, out.code)
		assert.Contains(t, out.stderr, c.says)
		assert.NotContains(t, out.stderr, "another")
	}
}
