// SPDX-License-Identifier: Apache-2.0

// Command snapshot saves the data of an Etcd of a local cluster with living pods. It restores data
// into the volume of an Etcd that has not started yet. It replaces etcdctl snapshot save and
// etcdutl snapshot restore, with the claims of etcd-druid. It is a separate program because no
// other one needs so much of etcd.
package main
