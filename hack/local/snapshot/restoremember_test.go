// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/pergola-dev/pergola/hack/local/childprocess"
)

// etcdExecutable returns the etcd of local clusters.
func etcdExecutable(t *testing.T) string {
	t.Helper()
	path := filepath.Join(cmp.Or(os.Getenv("KUBEBUILDER_ASSETS"), filepath.Join("..", "bin")), "etcd")
	if _, err := os.Stat(path); err != nil {
		t.Skip("etcd is not built: run `bin/pergola-local build` once, or set KUBEBUILDER_ASSETS")
	}
	return path
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return "http://" + l.Addr().String()
}

// startMember runs one member until the returned function is called.
func startMember(t *testing.T, folder, name string, peers string, peer string) (client *clientv3.Client, stop func()) {
	t.Helper()
	address := freeAddress(t)
	command := exec.Command(etcdExecutable(t), "--data-dir", folder, "--name", name, "--initial-cluster-token", clusterToken, "--initial-cluster", peers, "--unsafe-no-fsync",
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--listen-client-urls", address, "--advertise-client-urls", address, "--log-level", "error")
	command.Stdout, command.Stderr = t.Output(), t.Output()
	require.NoError(t, childprocess.Start(command))
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{address}, DialTimeout: 10 * time.Second, Logger: zap.NewNop()})
	require.NoError(t, err)
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			_ = client.Close()
			_ = command.Process.Kill()
			_ = command.Wait()
		}
	}
	t.Cleanup(stop)
	return client, stop
}

// TestRestoreMember saves one etcd and starts another one from it, with the same revisions, as one
// member and as three.
func TestRestoreMember(t *testing.T) {
	etcdExecutable(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	dir := t.TempDir()
	peer := freeAddress(t)
	client, stop := startMember(t, filepath.Join(dir, "first"), "a", "a="+peer, peer)
	for i := range 100 {
		_, err := client.Put(ctx, fmt.Sprintf("key-%d", i%10), fmt.Sprintf("value-%d", i))
		require.NoError(t, err)
	}
	file := filepath.Join(dir, "snapshot.db")
	data, err := client.Snapshot(ctx)
	require.NoError(t, err)
	raw, err := io.ReadAll(data)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, raw, 0o600))
	before, err := client.Get(ctx, "key-3")
	require.NoError(t, err)
	stop()

	for _, members := range []int{1, 3} {
		t.Run(fmt.Sprintf("%d members", members), func(t *testing.T) {
			peers, all := map[string]string{}, ""
			for i := range members {
				name := fmt.Sprintf("new-%d", i)
				peers[name] = freeAddress(t)
				all += "," + name + "=" + peers[name]
			}
			var client *clientv3.Client
			for name, peer := range peers {
				folder := filepath.Join(dir, fmt.Sprintf("%s-of-%d", name, members))
				require.NoError(t, restoreMember(file, folder, name, peers))
				require.ErrorContains(t, restoreMember(file, folder, name, peers), "has data")
				client, _ = startMember(t, folder, name, all[1:], peer)
			}
			var after *clientv3.GetResponse
			require.Eventually(t, func() bool {
				limited, cancel := context.WithTimeout(ctx, 5*time.Second)
				defer cancel()
				after, err = client.Get(limited, "key-3")
				return err == nil
			}, time.Minute, 100*time.Millisecond)
			require.Len(t, after.Kvs, 1)
			assert.Equal(t, "value-93", string(after.Kvs[0].Value))
			assert.Equal(t, before.Kvs[0].ModRevision, after.Kvs[0].ModRevision)
			listed, err := client.MemberList(ctx)
			require.NoError(t, err)
			assert.Len(t, listed.Members, members, "nobody of before is a member")
			_, err = client.Put(ctx, "key-3", "later")
			require.NoError(t, err)
		})
	}

	damaged := append([]byte{}, raw...)
	damaged[len(damaged)/2] ^= 1
	for name, test := range map[string]struct {
		content []byte
		want    string
	}{
		"damaged": {damaged, "is damaged: its checksum differs"},
		"short":   {raw[:len(raw)-5], "is not a complete snapshot of an etcd"},
		"empty":   {nil, "is not a complete snapshot of an etcd"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "x.db")
			require.NoError(t, os.WriteFile(file, test.content, 0o600))
			require.ErrorContains(t, restoreMember(file, filepath.Join(t.TempDir(), "d"), "a", map[string]string{"a": "http://127.0.0.1:1"}), test.want)
		})
	}
	require.ErrorContains(t, restoreMember(file, filepath.Join(dir, "other"), "b", map[string]string{"a": "http://127.0.0.1:1"}), "b is not a member")
}

func TestClaimTemplate(t *testing.T) {
	for etcd, want := range map[string]string{
		"virtual-garden-etcd-main": "main-virtual-garden-etcd", "virtual-garden-etcd-events": "virtual-garden-etcd-events", "etcd-main": "main-etcd", "etcd-events": "etcd-events",
	} {
		assert.Equal(t, want, claimTemplate(etcd))
	}
}
