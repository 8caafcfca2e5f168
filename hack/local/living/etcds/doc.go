// SPDX-License-Identifier: Apache-2.0

// Package etcds is the local stand-in for etcd-druid. It applies the StatefulSet, Services,
// ConfigMap and PodDisruptionBudget of an Etcd as etcd-druid v0.38 would, as far as etcd needs
// them. It reports the same status.
//
// As with Pergola's configuration of etcd-druid, a changed spec waits for the annotation
// gardener.cloud/operation: reconcile, which is removed when the spec is accepted. Members start
// together, or join one by one as learners when an Etcd grows. The annotation
// local.pergola.dev/fail: MESSAGE makes an Etcd fail with that message, and blocks its deletion,
// until it is removed.
//
// Left out are backups (the container backup-restore, its Leases and its port),
// EtcdCopyBackupsTasks, which kwok plays, and running the Pods, which kubelets do.
//
// It needs, in all namespaces: etcds.druid.gardener.cloud get, list, watch, patch; etcds/status
// patch. For StatefulSets it needs get, list, watch, patch, create, delete; for services,
// configmaps and poddisruptionbudgets get, patch, create, delete. For persistentvolumeclaims it
// needs list, patch, delete; for pods list; for secrets get.
package etcds
