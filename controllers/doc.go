// SPDX-License-Identifier: Apache-2.0

// Package controllers contains the parts of Pergola that are specific to Gardener: one package per
// role or concern. They decide what happens and when; apply sends objects, and render makes them.
//
// Roles, each a separate process or part of a command:
//
//   - operator: applies Landscape objects from their Git repositories to their clusters
//   - gardenlet: reconciles, in a seed, the Seed and its Shoots from the virtual garden
//   - resourcemanager: a controller for the ManagedResources of a class. Below it: managedresource
//     (the ManagedResource contract), garbagecollector, tokenrequestor, networkpolicy and webhooks
//   - webhook: the servers of gardener-admission-controller. Below it: admission (the rules of
//     schemas as webhooks), authorizer (the permissions of gardenlets in the virtual garden) and
//     garden (its other paths)
//   - landscape: reconciles a whole landscape once, repairs its drift, plans it and reads its state
//
// Building blocks:
//
//   - permit: decides which deletions may happen
//   - conventions: the conventions of Gardener for the engine of apply
//   - owner: reconciles a Garden, Seed or Shoot by its flow, with conditions and lastOperation.
//     Below it: facts (about clusters), blockreasons (why a step did not start) and prerequisites
//     (kinds of a plan). Also finalizers, rendercache (between runs) and changecounts (of writes)
//   - access: finds the API servers that Pergola makes
//   - accesstokens: requests the tokens of control planes while no resource manager does
//   - rotation: the phases of credential rotations, and their effect on secrets
//   - references: the ConfigMaps and Secrets that a Garden or Shoot refers to
//   - fleet: reconciles many owners in order, repairs their drift and judges their health; used by
//     gardenlet and landscape
//   - charts: the Helm charts that Extensions and Gardenlets name
//   - prometheus: queries the Prometheus instances of a garden
//   - namespacepolicies: the network policies that every namespace of Gardener has, for operator
//     and gardenlet
//   - gardenletdeployer: the first installation of gardenlets that Gardenlets declare
//   - seedpublication: publishes the landscape settings of a seed through the virtual garden
//   - notification: notifies people about the progress of a Landscape
//
// The code of single commands is in commands. Test suites across packages are in test.
package controllers
