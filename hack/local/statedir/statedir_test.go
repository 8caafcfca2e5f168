// SPDX-License-Identifier: Apache-2.0

package statedir

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func openTestDir(t *testing.T) Dir {
	t.Helper()
	dir, err := Open(filepath.Join(t.TempDir(), "state"))
	require.NoError(t, err)
	return dir
}

func TestSaveAndLoad(t *testing.T) {
	dir := openTestDir(t)
	assert.False(t, dir.HasState())
	state, err := dir.Load()
	require.NoError(t, err)
	state.EtcdPort = 1234
	state.Add("one").Parts = []string{"a", "b"}
	state.Add("two").Port = 4321
	require.NoError(t, dir.Save(state))
	assert.True(t, dir.HasState())
	again, err := dir.Load()
	require.NoError(t, err)
	assert.Equal(t, state, again)
	assert.True(t, again.Cluster("one").HasPart("b"))
	assert.False(t, again.Cluster("one").HasPart("c"))
	assert.Nil(t, again.Cluster("three"))
	assert.Equal(t, []int{1234, 0, 0, 4321}, again.Ports())
	ignore, err := os.ReadFile(filepath.Join(string(dir), ".gitignore"))
	require.NoError(t, err)
	assert.Equal(t, "*\n", string(ignore))
}

func TestBrokenState(t *testing.T) {
	dir := openTestDir(t)
	for text, want := range map[string]string{"{": "clean removes it", `{"version": 99}`: "has format 99"} {
		require.NoError(t, os.WriteFile(dir.stateFile(), []byte(text), 0o600))
		_, err := dir.Load()
		assert.ErrorContains(t, err, want)
	}
}

func TestClustersHaveTheirOwnRanges(t *testing.T) {
	state := &State{}
	a, b := state.Add("a"), state.Add("b")
	assert.NotEqual(t, a.ServiceCIDR(), b.ServiceCIDR())
	assert.NotEqual(t, a.PodCIDR(), b.PodCIDR())
	for _, address := range []string{a.PodCIDR(), b.PodCIDR()} {
		_, network, err := net.ParseCIDR(address)
		require.NoError(t, err)
		assert.True(t, network.IP.IsMulticast())
		assert.False(t, network.IP.IsLinkLocalMulticast(), "API servers refuse those as endpoints")
	}
	assert.True(t, net.ParseIP(a.NodeIP(2)).IsMulticast())
	state.Clusters = state.Clusters[1:]
	assert.Equal(t, a.Index, state.Add("c").Index, "indexes are used again")
}

// TestFakeAddressesFailAtOnce checks the addresses of fake pods, on which webhooks rely.
func TestFakeAddressesFailAtOnce(t *testing.T) {
	cluster := (&State{}).Add("a")
	ip, _, err := net.ParseCIDR(cluster.PodCIDR())
	require.NoError(t, err)
	start := time.Now()
	_, err = net.DialTimeout("tcp", net.JoinHostPort(ip.String(), "443"), 10*time.Second)
	require.Error(t, err)
	assert.Less(t, time.Since(start), time.Second)
}

func TestPorts(t *testing.T) {
	port, err := FreePort(nil)
	require.NoError(t, err)
	assert.True(t, IsPortFree(port))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	assert.False(t, IsPortFree(listener.Addr().(*net.TCPAddr).Port))
	all := make([]int, 0, lastPort-firstPort)
	for port := firstPort; port < lastPort; port++ {
		all = append(all, port)
	}
	_, err = FreePort(all)
	assert.ErrorContains(t, err, "free port")
}

func TestLock(t *testing.T) {
	dir := openTestDir(t)
	unlock, err := dir.Lock(t.Context(), func(string) { t.Error("nobody holds it") })
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	holder := ""
	_, err = dir.Lock(ctx, func(h string) { holder = h; cancel() })
	require.ErrorIs(t, err, context.Canceled)
	assert.Contains(t, holder, "process ")

	// The holder removes the folder, as clean does: a waiter must not lock a removed file.
	got := make(chan error, 1)
	waiting := make(chan struct{})
	go func() {
		free, err := dir.Lock(context.WithoutCancel(ctx), func(string) { close(waiting) })
		if err == nil {
			defer free()
			if _, statErr := os.Stat(dir.lockFile()); statErr != nil {
				err = statErr
			}
		}
		got <- err
	}()
	<-waiting
	require.NoError(t, os.RemoveAll(string(dir)))
	require.NoError(t, os.MkdirAll(string(dir), 0o700))
	unlock()
	require.NoError(t, <-got)
}
