// SPDX-License-Identifier: Apache-2.0

// Package managedresource reconciles ManagedResources of one class. It reads the data Secrets in a
// source cluster and applies the objects to a target cluster. It stores the inventory in
// status.resources and judges health. The contract is upstream's (docs/concepts/resource-manager.md
// of Gardener).
//
// Other packages watch ManagedResources, request tokens and serve webhooks.
package managedresource
