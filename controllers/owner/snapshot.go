// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"context"
	"fmt"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/rotation"
)

// annotationSnapshotted on the Deployment of an API server means that a snapshot of etcd was taken
// after the rewrite (upstream's).
const annotationSnapshotted = "credentials.gardener.cloud/etcd-snapshotted"

// snapshotEtcd takes one snapshot of etcd after the rewrite, and none when the reconciliation
// continues after an interruption.
func (r *run) snapshotEtcd(ctx context.Context) error {
	marked, err := r.owner.apiServerMarks(ctx, annotationSnapshotted)
	if err != nil {
		return err
	}
	if areAllMarked(marked) {
		return nil
	}
	etcd := apply.Ref{APIVersion: "druid.gardener.cloud/v1alpha1", Kind: "Etcd", Namespace: r.owner.ControlPlane(), Name: settingsByKind[r.owner.renderOwner().Kind].etcd}
	backup, err := rotation.FindBackup(ctx, r.owner.Local, etcd)
	if err != nil || backup == nil {
		return err
	}
	r.reportProgress("snapshot", "etcd is saved with its current encryption")
	if err := backup.TakeSnapshot(ctx); err != nil {
		return fmt.Errorf("cluster %s: %s: %w", r.owner.Local.Name(), etcd, err)
	}
	return r.owner.markAPIServers(ctx, annotationSnapshotted, true)
}
