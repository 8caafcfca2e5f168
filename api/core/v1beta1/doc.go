// SPDX-License-Identifier: Apache-2.0

// Package v1beta1 holds the kinds of core.gardener.cloud/v1beta1, one file each, and the types that
// every group of this API shares (Condition, LastOperation, LastError, ErrorCode).
//
// The wire format is upstream's, field by field; documentation, schema markers and list types are
// ours. List types define how server-side apply merges lists and who owns their items. Constants of
// the API (annotations, labels, finalizers, condition types, operations) are in constants*.go.
// Static defaults are pure functions (SetDefaults_Seed, …). Defaults that depend on other objects
// (versions from a CloudProfile, networks from a Seed) are not set here.
//
// Rules over several fields are in package schemas, reconcilers in package controllers.
//
// +kubebuilder:object:generate=true
// +groupName=core.gardener.cloud
package v1beta1
