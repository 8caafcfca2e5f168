// Package controllers holds what is specific to Gardener: one package per role or
// concern. They decide when to do what; how objects reach a cluster is the matter of
// apply, what they look like that of render.
//
//   - managedresource: the ManagedResource contract (the work of gardener-resource-manager)
//   - resourcemanager: the ManagedResources of a class kept as a controller
//   - owner: a Garden, Seed or Shoot converged by its flow, with conditions and lastOperation
//   - landscape: a whole landscape converged once, kept, planned and shown
//   - drift: what repairs drift and has health judged between convergences, for landscape and gardenlet
//   - garbagecollector, tokenrequestor, networkpolicy, resourcewebhooks: what else the resource manager does, each for itself
//   - faults: tests that break what the resource manager stands on
//   - admission: the rules of schemas as admission webhooks, and their configurations
package controllers
