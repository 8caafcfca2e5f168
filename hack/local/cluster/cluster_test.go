// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/hack/local/process"
	"github.com/pergola-dev/pergola/hack/local/statedir"
)

func newTestManager(t *testing.T) *Manager {
	t.Helper()
	dir, err := statedir.Open(filepath.Join(t.TempDir(), "state"))
	require.NoError(t, err)
	return &Manager{Dir: dir, Out: io.Discard, Now: time.Now}
}

func TestParseParts(t *testing.T) {
	for _, test := range []struct{ names, want []string }{
		{nil, []string{PartAPIServer}},
		{[]string{"apiserver"}, []string{PartAPIServer}},
		{[]string{"scheduler", "controller-manager"}, []string{PartAPIServer, PartControllerManager, PartScheduler}},
		{[]string{"kwok"}, []string{PartAPIServer, PartKwok, PartStages}},
		{AllParts(), AllParts()},
	} {
		got, err := ParseParts(test.names)
		require.NoError(t, err)
		assert.Equal(t, test.want, got)
	}
	_, err := ParseParts([]string{"kubelet"})
	assert.ErrorContains(t, err, `unknown part "kubelet"`)
}

func TestAssignResources(t *testing.T) {
	m := newTestManager(t)
	options := Options{Clusters: []string{"runtime", "virtual"}, Nodeless: []string{"virtual"}, Nodes: 3}
	first, err := m.assignResources(options)
	require.NoError(t, err)
	assert.Equal(t, AllParts(), first.Cluster("runtime").Parts)
	assert.Equal(t, 3, first.Cluster("runtime").Nodes)
	assert.Equal(t, nodelessParts(), first.Cluster("virtual").Parts)
	assert.Zero(t, first.Cluster("virtual").Nodes)
	seen := map[int]bool{}
	for _, port := range first.Ports() {
		assert.NotZero(t, port)
		assert.False(t, seen[port])
		seen[port] = true
	}

	again, err := m.assignResources(options)
	require.NoError(t, err)
	assert.Equal(t, first, again, "what was decided stays")

	listener, err := net.Listen("tcp", first.Cluster("runtime").Server()[len("https://"):])
	require.NoError(t, err)
	defer listener.Close()
	moved, err := m.assignResources(Options{Clusters: []string{"runtime"}})
	require.NoError(t, err)
	assert.NotEqual(t, first.Cluster("runtime").Port, moved.Cluster("runtime").Port, "a port that somebody else took meanwhile")
	assert.Equal(t, first.Cluster("virtual"), moved.Cluster("virtual"), "clusters that are not named stay")
}

func TestRetryPorts(t *testing.T) {
	m := newTestManager(t)
	state := &statedir.State{Version: 1}
	c := state.Add("one")
	inUse := &PartEndedError{Cluster: "one", Part: PartAPIServer, Tail: []string{"listen tcp 127.0.0.1:1: bind: address already in use"}}
	tried := map[int]bool{}
	err := m.retryPorts(state, []*int{&c.Port}, func() error {
		tried[c.Port] = true
		if len(tried) < 3 {
			return inUse
		}
		return nil
	})
	require.NoError(t, err)
	assert.Len(t, tried, 3)
	calls := 0
	err = m.retryPorts(state, []*int{&c.Port}, func() error { calls++; return inUse })
	require.ErrorIs(t, err, error(inUse))
	assert.Equal(t, 3, calls)
	other := errors.New("something else")
	assert.Equal(t, other, m.retryPorts(state, nil, func() error { return other }))
}

// TestWaitForReportsEndedPart starts a process that dies during a wait.
func TestWaitForReportsEndedPart(t *testing.T) {
	m := newTestManager(t)
	spec := process.Spec{Binary: "/bin/sh", Args: []string{"-c", "echo cannot open database; exit 1"}, Log: m.Dir.Log("one", "etcd")}
	require.NoError(t, m.ensureRunning(t.Context(), "one", "etcd", spec))
	err := m.waitFor(t.Context(), "a miracle", []watchedPart{{cluster: "one", part: "etcd"}}, func(context.Context) error { return errors.New("not yet") })
	var died *PartEndedError
	require.ErrorAs(t, err, &died)
	assert.Equal(t, []string{"cannot open database"}, died.Tail)
	assert.Contains(t, err.Error(), "one/etcd has ended unexpectedly")
	assert.Contains(t, err.Error(), "cannot open database")
}

func TestWaitForReportsLastError(t *testing.T) {
	m := newTestManager(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	err := m.waitFor(ctx, "nodes", nil, func(context.Context) error {
		cancel(errors.New("not ready after 3m"))
		return errors.New("node one-0 is not ready")
	})
	assert.EqualError(t, err, "waiting for nodes: not ready after 3m (last: node one-0 is not ready)")
}

// TestStatusAfterReboot checks that processes of an earlier boot do not count as crashed.
func TestStatusAfterReboot(t *testing.T) {
	m := newTestManager(t)
	state := &statedir.State{Version: 1}
	c := state.Add("one")
	c.Parts, c.ShouldRun = []string{PartAPIServer}, true
	require.NoError(t, m.Dir.Save(state))
	for name, test := range map[string]struct{ born, state string }{
		"this boot":    {"", Crashed},
		"earlier boot": {"earlier-boot/12345", Stopped},
	} {
		t.Run(name, func(t *testing.T) {
			spec := process.Spec{Binary: "/bin/sh", Args: []string{"-c", "exit"}, Log: m.Dir.Log("one", PartAPIServer)}
			record, err := process.Start(spec, m.Dir.Record("one", PartAPIServer))
			require.NoError(t, err)
			require.Eventually(t, func() bool { return !record.IsAlive() }, 5*time.Second, time.Millisecond)
			if test.born != "" {
				text := `{"pid":1,"born":"` + test.born + `","digest":"x","command":"kube-apiserver"}`
				require.NoError(t, os.WriteFile(m.Dir.Record("one", PartAPIServer), []byte(text), 0o600))
			}
			status, err := m.Status(t.Context())
			require.NoError(t, err)
			assert.Equal(t, test.state, status.Clusters[0].State)
			assert.False(t, status.IsHealthy())
			require.NoError(t, m.Down(t.Context()))
			assert.NoFileExists(t, m.Dir.Record("one", PartAPIServer))
			state.Clusters[0].ShouldRun = true
			require.NoError(t, m.Dir.Save(state))
		})
	}
}

func TestKubeconfigs(t *testing.T) {
	m := newTestManager(t)
	state := &statedir.State{}
	one, two := state.Add("one"), state.Add("two")
	one.Port, two.Port = 1001, 1002
	for _, c := range state.Clusters {
		renewed, err := m.ensureCredentials(c, time.Now())
		require.NoError(t, err)
		assert.True(t, renewed)
		renewed, err = m.ensureCredentials(c, time.Now())
		require.NoError(t, err)
		assert.False(t, renewed)
		renewed, err = m.ensureCredentials(c, time.Now().Add(360*24*time.Hour))
		require.NoError(t, err)
		assert.True(t, renewed, "certificates are renewed before they expire")
	}
	state.Living, state.ProxyPort = true, 1003
	require.NoError(t, m.setInputs(nil, state))
	require.NoError(t, m.writeMerged(state))
	for file, want := range map[string][]string{
		m.Dir.Kubeconfig("one"):  {"current-context: pergola-one", "https://127.0.0.1:1001"},
		m.Dir.MergedKubeconfig(): {"current-context: pergola-one", "name: pergola-two", "https://127.0.0.1:1002", "proxy-url: http://127.0.0.1:1003"},
	} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, part := range want {
			assert.Contains(t, string(text), part)
		}
		info, err := os.Stat(file)
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	}
}
