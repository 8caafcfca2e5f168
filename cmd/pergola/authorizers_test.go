// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestAuthorizersBeforeTheGarden: without an API server the process serves, and reports that it is
// not ready.
func TestAuthorizersBeforeTheGarden(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := closed.Addr().String()
	require.NoError(t, closed.Close())
	dir := t.TempDir()
	kubeconfig := filepath.Join(dir, "virtual.yaml")
	require.NoError(t, os.WriteFile(kubeconfig, []byte(`{apiVersion: v1, kind: Config, current-context: v, contexts: [{name: v, context: {cluster: v, user: v}}], users: [{name: v, user: {token: t}}], clusters: [{name: v, cluster: {server: "http://`+address+`"}}]}`), 0o600))

	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	_, healthPort, err := net.SplitHostPort(free.Addr().String())
	require.NoError(t, err)
	require.NoError(t, free.Close())
	lines, stderr := io.Pipe()
	root := newRoot()
	root.SetErr(stderr)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, root, []string{"admission-controller", "--bind-address", "127.0.0.1", "--port", "0", "--health-port", healthPort, "--self-signed", "--ca-file", filepath.Join(dir, "ca.crt"), "--virtual-kubeconfig", kubeconfig})
		_ = stderr.Close()
	}()
	log := bufio.NewScanner(lines)
	require.True(t, log.Scan())
	var serving struct {
		Msg, Webhooks, Health string
		Authorizers           bool
	}
	require.NoError(t, json.Unmarshal(log.Bytes(), &serving), log.Text())
	require.Equal(t, "serving", serving.Msg, log.Text())
	assert.True(t, serving.Authorizers)
	go func() { _, _ = io.Copy(io.Discard, lines) }()

	get := func(path string) (int, string) {
		response, err := http.Get("http://" + serving.Health + path)
		require.NoError(t, err)
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return response.StatusCode, string(body)
	}
	status, body := get("/readyz")
	assert.Equal(t, http.StatusServiceUnavailable, status)
	assert.Contains(t, body, "shoots.core.gardener.cloud")
	status, _ = get("/healthz")
	assert.Equal(t, http.StatusOK, status, "a restart would not help")
	_, body = get("/metrics")
	assert.Contains(t, body, "pergola_admission_panics_total 0")
	assert.Contains(t, body, "pergola_authorizer_ready 0")
	assert.Equal(t, 1, strings.Count(body, "# HELP pergola_authorizer_ready"))
	cancel()
	assert.Equal(t, exitOK, <-code)
}
