// Package tokenrequestor keeps Secrets filled with tokens of ServiceAccounts in another cluster. It
// does the work of gardener-resource-manager's (and, with other options, gardenlet's and
// gardener-operator's) controller of the same name.
//
// A Secret in the source cluster with the label resources.gardener.cloud/purpose=token-requestor
// says by annotations which ServiceAccount of the target cluster it is about; the account is kept,
// a token is requested for it and renewed at 80 % of its lifetime, and written to data.token, or
// into data.kubeconfig where there is one, here or in a Secret of the target cluster.
//
// Differences to upstream, which all make a token come sooner:
//
//   - a token is renewed when its ServiceAccount was deleted or made anew, which makes it invalid
//     at once: accounts are watched in the namespaces that are in use;
//   - it is renewed by its own times of issue and expiry too, so that a clock that was wrong does
//     not leave an expired one, and when the annotation's time is more than a day ahead or is none;
//   - what is wrong with a Secret is told as an event.
//
// As upstream does since 2021, nothing is deleted with the Secret: several may be about one
// account, and its rights come from elsewhere. A renewal is asked for by removing the annotation
// with its time, which is how gardenlet does renew-garden-access-secrets; no component asks here.
//
// A Secret of the target cluster that somebody else changes or deletes is noticed at the next
// renewal, as upstream does.
//
// Only metadata of Secrets are watched and kept. Tokens are in memory while one is written, and
// never in logs, events or errors: for that reason errors of decoding kubeconfigs are not passed
// on.
//
// What does not live here: who makes the Secrets (components, controllers), and what the accounts
// may do.
package tokenrequestor
