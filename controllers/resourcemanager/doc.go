// Package resourcemanager runs the engine of ManagedResources as a controller: it watches those of
// one class in a source cluster and keeps a target cluster as they say. It does the work of
// gardener-resource-manager's managedresource and health controllers.
//
// Manager is that controller. Role is the process around it: configuration (its form and its
// values), the lease, readiness, metrics, and the parts beside it (garbagecollector,
// tokenrequestor, networkpolicy, resourcewebhooks).
//
// What does not live here: what is done with one ManagedResource (managedresource), how objects
// reach a cluster (apply), flags (cmd).
//
// What makes it look again: a change of the ManagedResource or of its data Secrets, drift of an
// object that it applied, and, for health alone, any other change of such an object. While nothing
// changes there is no request.
package resourcemanager
