// Package accesstokens keeps the Secrets shoot-access-… of control planes filled, for whoever
// reconciles a Garden or Shoot: their processes read from them who they are in the API server that
// the control plane serves, and do not start without.
//
// In a control plane with a gardener-resource-manager that one does this, and it is left alone. As
// long as there is none, or no pod of it is ready (it waits for its own token, or its pods are only
// played), a Keeper runs the controller of package tokenrequestor for each namespace, from when the
// API server answers. It needs no turn in the flow: the Secrets come with the components that mount
// them, after the API server, and are seen at once.
package accesstokens
