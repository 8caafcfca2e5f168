// SPDX-License-Identifier: Apache-2.0

// Package resourcemanager reconciles the ManagedResources of one class: it reads them in a source
// cluster and applies their objects to a target cluster. It does the work of
// gardener-resource-manager's managedresource and health controllers.
//
// Manager is that controller. Role is the process around it: configuration, lease, readiness,
// metrics and the other controllers (garbagecollector, tokenrequestor, networkpolicy, webhooks).
//
// Other packages reconcile a single ManagedResource (managedresource), apply objects to a cluster
// (apply) and define the flags (cmd).
//
// A ManagedResource is reconciled when it or its data Secrets change, or when an applied object
// drifts. Other changes of these objects trigger only a health check. While nothing changes, there
// are no requests.
package resourcemanager
