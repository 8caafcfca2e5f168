// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds Etcd and EtcdCopyBackupsTask of druid.gardener.cloud/v1alpha1, as served
// by etcd-druid v0.38. Pergola declares these objects and judges their status; etcd-druid
// reconciles them.
//
// +kubebuilder:object:generate=true
// +groupName=druid.gardener.cloud
package v1alpha1
