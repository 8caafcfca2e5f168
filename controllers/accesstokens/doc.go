// SPDX-License-Identifier: Apache-2.0

// Package accesstokens fills the Secrets shoot-access-… of control planes for the reconciler of a
// Garden or Shoot. The processes of a control plane authenticate at its API server with them, and
// do not start without.
//
// In a control plane with a gardener-resource-manager, that component does this. A Keeper does it
// while none exists or none of its pods is ready: it waits for its own token, or its pods are
// played. The Keeper runs the controller of package tokenrequestor for each namespace as soon as
// the API server answers. It needs no step in the flow: the Secrets come with the components that
// mount them, and the controller watches them.
package accesstokens
