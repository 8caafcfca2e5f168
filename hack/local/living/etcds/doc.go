// Package etcds is the local stand-in for etcd-druid: an Etcd object becomes the StatefulSet, the
// Services, the ConfigMap and the PodDisruptionBudget that etcd-druid v0.38 would make, as far as
// they matter for etcd to run, and gets the status that etcd-druid would give it.
//
// As with Pergola's configuration of etcd-druid, a changed spec waits for the annotation
// gardener.cloud/operation: reconcile, which is taken off when the spec is taken over. Members
// start with each other, or join one after the other as learners when an Etcd grows. An Etcd with
// the annotation local.pergola.dev/fail: MESSAGE fails with that message, and is not deleted, until
// it is taken off.
//
// Not here: backups (the container backup-restore, its Leases and its port), EtcdCopyBackupsTasks,
// which kwok plays, and running the Pods, which is the kubelets' business.
//
// Rights that it needs, in all namespaces: etcds.druid.gardener.cloud get, list, watch, patch;
// etcds/status patch; statefulsets get, list, watch, patch, create, delete; services, configmaps,
// poddisruptionbudgets get, patch, create, delete; persistentvolumeclaims list, patch, delete; pods
// list; secrets get.
package etcds
