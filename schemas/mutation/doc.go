// SPDX-License-Identifier: Apache-2.0

// Package mutation fills in the values that the Gardener API takes from other objects. Versions and
// machine images come from the cloud profile, networks and the domain from the Seed, tolerations
// from the Project. The package is pure: Around provides other objects, and the caller the time.
//
// A mutation only uses values of existing objects, and gives a reason for each. Defaults that need
// no other object are in api (SetDefaults_*). The package excludes values that depend on the user
// (annotation created-by, creator of a Project) and tasks for controllers.
package mutation
