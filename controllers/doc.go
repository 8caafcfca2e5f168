// Package controllers holds what is specific to Gardener: one package per role or
// concern. They decide when to do what; how objects reach a cluster is the matter of
// apply, what they look like that of render.
//
// Roles, each a process of its own or part of a command:
//
//   - operator: the clusters of each Landscape object kept as its Git repository says
//   - gardenlet: in a seed, the Seed and its Shoots kept as the virtual garden says
//   - resourcemanager: the ManagedResources of a class kept as a controller, with managedresource
//     (the ManagedResource contract), garbagecollector, tokenrequestor, networkpolicy and webhooks
//     below it, each for itself
//   - webhook: what gardener-admission-controller serves: admission (the rules of schemas as
//     webhooks, and their configurations), authorizer (what gardenlets may do in the virtual
//     garden) and garden (what it is asked besides, at its paths)
//   - landscape: a whole landscape converged once, kept and planned, and its state read
//
// What they are made of:
//
//   - permit: which deletions may happen
//   - conventions: what is Gardener's about the engine of apply
//   - owner: a Garden, Seed or Shoot converged by its flow, with conditions and lastOperation.
//     Beside it: owner/facts, what rendering has to know of clusters; owner/blocked, why a step was
//     not started; owner/coming, what a plan will have made; owner/finalizers; owner/renders, kept
//     from run to run; owner/tally, what was written
//   - access: how the API servers that Pergola makes are found
//   - accesstokens: the tokens of control planes, while no resource manager keeps them
//   - rotation: how rotations of credentials stand, and what follows for secrets
//   - references: the ConfigMaps and Secrets that a Garden or Shoot refers to
//   - fleet: many owners, each converged in its turn and again, with drift repaired and health
//     judged between; for gardenlet, and its loop for landscape
//   - charts: the Helm charts that Extensions and Gardenlets name
//   - prometheus: what the instances of Prometheus of a garden see
//   - namespacepolicies: the network policies that every namespace of Gardener has, for operator
//     and gardenlet
//   - gardenletdeployer: the gardenlets that Gardenlets declare, installed for the first time
//   - seedpublication: what a seed needs of a landscape folder, carried through the virtual garden
//   - notification: who is told what becomes of a Landscape
//
// The work of single commands is in commands. Suites of tests across packages are in test.
package controllers
