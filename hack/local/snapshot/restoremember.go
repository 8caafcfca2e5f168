// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	"go.etcd.io/etcd/server/v3/etcdserver/api/snap"
	"go.etcd.io/etcd/server/v3/etcdserver/cindex"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/datadir"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
)

// blockSize is the unit of database sizes; the remainder of a snapshot is its checksum.
const blockSize = 512

// clusterToken and the names of members are the same as in their configuration files; see
// living/etcds.
const clusterToken = "etcd-cluster"

// restoreMember creates the data folder of one member from a snapshot. peers has all members of the
// new cluster with their peer addresses. All members start with the same history, which contains
// only the members.
func restoreMember(snapshot, folder, member string, peers map[string]string) error {
	if _, err := os.Stat(datadir.ToMemberDir(folder)); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s has data: a snapshot is restored into an empty volume", folder)
	}
	urls := types.URLsMap{}
	for name, peer := range peers {
		found, err := types.NewURLs([]string{peer})
		if err != nil {
			return fmt.Errorf("the address of member %s: %w", name, err)
		}
		urls[name] = found
	}
	log := zap.NewNop()
	cluster, err := membership.NewClusterFromURLsMap(log, clusterToken, urls)
	if err != nil {
		return fmt.Errorf("naming the members: %w", err)
	}
	own := cluster.MemberByName(member)
	if own == nil {
		return fmt.Errorf("%s is not a member", member)
	}
	if err := os.MkdirAll(datadir.ToSnapDir(folder), 0o700); err != nil {
		return fmt.Errorf("creating the data folder: %w", err)
	}
	if err := copyDatabase(snapshot, datadir.ToBackendFileName(folder)); err != nil {
		return err
	}
	// One entry per member is the whole history.
	var entries []raftpb.Entry
	var voters []uint64
	for i, id := range cluster.MemberIDs() {
		about, err := json.Marshal(cluster.Member(id))
		if err != nil {
			return fmt.Errorf("writing about a member: %w", err)
		}
		change := raftpb.ConfChange{Type: raftpb.ConfChangeAddNode, NodeID: uint64(id), Context: about}
		data, err := change.Marshal()
		if err != nil {
			return fmt.Errorf("writing about a member: %w", err)
		}
		entries = append(entries, raftpb.Entry{Type: raftpb.EntryConfChange, Term: 1, Index: uint64(i + 1), Data: data})
		voters = append(voters, uint64(id))
	}
	end, state := uint64(len(entries)), raftpb.ConfState{Voters: voters}
	if err := replaceMembers(log, folder, cluster, end); err != nil {
		return err
	}
	identity, err := (&etcdserverpb.Metadata{NodeID: uint64(own.ID), ClusterID: uint64(cluster.ID())}).Marshal()
	if err != nil {
		return fmt.Errorf("writing the identity of the member: %w", err)
	}
	history, err := wal.Create(log, datadir.ToWALDir(folder), identity)
	if err != nil {
		return fmt.Errorf("creating the log: %w", err)
	}
	defer history.Close()
	if err := history.Save(raftpb.HardState{Term: 1, Vote: voters[0], Commit: end}, entries); err != nil {
		return fmt.Errorf("writing the log: %w", err)
	}
	start := raftpb.Snapshot{
		Data:     etcdserver.GetMembershipInfoInV2Format(log, cluster),
		Metadata: raftpb.SnapshotMetadata{Index: end, Term: 1, ConfState: state},
	}
	if err := snap.New(log, datadir.ToSnapDir(folder)).SaveSnap(start); err != nil {
		return fmt.Errorf("writing the start of the log: %w", err)
	}
	if err := history.SaveSnapshot(walpb.Snapshot{Index: end, Term: 1, ConfState: &state}); err != nil {
		return fmt.Errorf("writing the log: %w", err)
	}
	return nil
}

// replaceMembers writes the new members to the database, without the saved cluster's members, and
// marks the new log as applied.
func replaceMembers(log *zap.Logger, folder string, cluster *membership.RaftCluster, end uint64) error {
	database := backend.NewDefaultBackend(log, datadir.ToBackendFileName(folder))
	defer database.Close()
	known := schema.NewMembershipBackend(log, database)
	known.MustCreateBackendBuckets()
	if err := known.TrimMembershipFromBackend(); err != nil {
		return fmt.Errorf("removing the previous members: %w", err)
	}
	cluster.SetBackend(known)
	for _, m := range cluster.Members() {
		cluster.AddMember(m, membership.ApplyBoth)
	}
	cindex.UpdateConsistentIndexForce(database.BatchTx(), end, 1)
	database.ForceCommit()
	return nil
}

// copyDatabase copies a snapshot without the checksum at its end, and verifies the checksum.
func copyDatabase(snapshot, to string) error {
	in, err := os.Open(filepath.Clean(snapshot))
	if err != nil {
		return fmt.Errorf("reading the snapshot: %w", err)
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return fmt.Errorf("reading the snapshot: %w", err)
	}
	size := info.Size() - sha256.Size
	if size <= 0 || size%blockSize != 0 {
		return fmt.Errorf("%s is not a complete snapshot of an etcd", snapshot)
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("writing the database: %w", err)
	}
	defer out.Close()
	sum := sha256.New()
	if _, err := io.CopyN(io.MultiWriter(out, sum), in, size); err != nil {
		return fmt.Errorf("copying the snapshot: %w", err)
	}
	want, err := io.ReadAll(in)
	if err != nil {
		return fmt.Errorf("reading the snapshot: %w", err)
	}
	if !bytes.Equal(want, sum.Sum(nil)) {
		return fmt.Errorf("%s is damaged: its checksum differs", snapshot)
	}
	if err := out.Sync(); err != nil {
		return fmt.Errorf("writing the database: %w", err)
	}
	return nil
}
