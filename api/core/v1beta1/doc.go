// Package v1beta1 holds the kinds of core.gardener.cloud/v1beta1, one file each, and the values that every group of
// this API shares (Condition, LastOperation, LastError, ErrorCode).
//
// The wire format is upstream's, field by field; documentation, schema markers and list types are ours. List
// types matter: they decide how server-side apply merges and who owns what. Constants that belong to the API
// (annotations, labels, finalizers, condition types, operations) are in constants*.go. Static defaults are
// pure functions (SetDefaults_Seed, …); what depends on other objects (versions from a CloudProfile,
// networks from a Seed) is not defaulted here.
//
// Rules that need more than one field live in package schemas, reconcilers in package controllers.
//
// +kubebuilder:object:generate=true
// +groupName=core.gardener.cloud
package v1beta1
