// SPDX-License-Identifier: Apache-2.0

// Package admission serves the rules of package schemas and the API's mutations and defaults as
// webhooks. The API server calls both before it stores an object (POST /default, POST /validate),
// and the latter before it deletes one. The package also creates the webhook configurations.
//
// Rules that need other objects read them. Gardens serves the rules that only one Garden exists and
// that namespace garden stays while it does. Surroundings reads the virtual garden (cloud profiles,
// Seeds, Projects …) for mutations and for rules across the landscape. Secrets and ConfigMaps are
// never read.
//
// Rules are in packages schemas and crosscheck, mutations in package mutation, defaults in api
// (SetDefaults_*), and flags in cmd/pergola.
package admission
