// Package managedresource converges ManagedResources of one class: it reads the
// data Secrets in a source cluster, sends the objects to a target cluster, keeps the
// inventory in status.resources and judges health. The contract is upstream's
// (docs/concepts/resource-manager.md of Gardener).
//
// What does not live here: watching for ManagedResources of other classes, token
// requests, webhooks.
package managedresource
