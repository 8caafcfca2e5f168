// SPDX-License-Identifier: Apache-2.0

// Package tokenrequestor writes tokens of ServiceAccounts of another cluster into Secrets. It does
// the work of gardener-resource-manager's (and, with other options, gardenlet's and
// gardener-operator's) controller of the same name.
//
// A Secret in the source cluster with the label resources.gardener.cloud/purpose=token-requestor
// names a ServiceAccount of the target cluster by annotations. The account is created or updated.
// Its token is requested, and renewed at 80 % of its lifetime. The token goes to data.token, or
// into an existing data.kubeconfig, of this Secret or of a Secret of the target cluster.
//
// Differences from upstream:
//
//   - a token is renewed when its ServiceAccount is deleted or recreated, which invalidates it at
//     once: accounts are watched in the namespaces in use;
//   - a token is also renewed by its own times of issue and expiry, so that a wrong clock leaves no
//     expired token;
//   - a token is renewed if the annotation's time is invalid or more than a day ahead;
//   - problems of a Secret are reported as events.
//
// Like upstream since 2021, deleting the Secret deletes nothing else: several Secrets may share an
// account, and its permissions come from elsewhere. Removing the annotation with the renewal time
// requests a renewal, as gardenlet does for renew-garden-access-secrets; no component does it here.
//
// A change or deletion of a Secret of the target cluster is noticed at the next renewal, as in
// upstream.
//
// Only metadata of Secrets is watched and cached. Tokens are in memory while they are written, and
// never in logs, events or errors: decoding errors of kubeconfigs are therefore dropped.
//
// Other packages create the Secrets (components, controllers) and grant permissions to the
// accounts.
package tokenrequestor
